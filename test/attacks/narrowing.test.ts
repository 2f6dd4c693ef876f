/** Attacks 10 to 12 and 19: grants that reach further than the one above them, in time, scope, lease or shape. */
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import * as fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { signDocument, type Grant, type Lease } from '@csb/core'
import {
  allows,
  attachAuthority,
  grantHash,
  isScopeWithin,
  isSubset,
  meet,
  signGrant,
  verifyAuthority,
  verifyChain,
  type GrantBody,
  type LeaseRequest,
} from '@csb/authority'
import {
  HOUR,
  NOW,
  agent,
  childDraft,
  childGrant,
  helper,
  node,
  owner,
  ownerDraft,
  ownerGrant,
  party,
  refusal,
  stranger,
  thrownBy,
} from '../../packages/authority/test/cast.ts'
import { BODY, listening, sign } from '../../packages/authority/test/speech.ts'

const SECOND = 1000

const verify = (chain: readonly unknown[], now = NOW) =>
  verifyChain({
    chain,
    now,
    isRevoked: () => false,
    trustedRoot: (did) => (did === owner.did ? { ceiling: 'override' } : undefined),
  })

/** Signed without the checks that signGrant makes: what a hostile grantor would do. */
const forge = (body: GrantBody, key = agent): Grant => ({
  ...body,
  delegation: { ...body.delegation, signature: signDocument('grant', body, key) },
})

/** How often a signature is looked at while `work` runs. */
async function verifiesDuring(work: () => Promise<void> | void): Promise<number> {
  const real = crypto.verify
  let count = 0
  const restore = () => {
    crypto.verify = real
    syncBuiltinESMExports()
  }
  onTestFinished(restore)
  crypto.verify = ((...args: Parameters<typeof real>) => {
    count++
    return real(...args)
  }) as typeof real
  syncBuiltinESMExports()
  await work()
  restore()
  return count
}

describe('attack 10: clocks that differ', () => {
  test.each([
    [59, undefined],
    [60, undefined],
    [61, 'not_yet_valid'],
  ])('attack 10: a grant, and a message, from a clock that is %i s ahead', async (seconds, reason) => {
    const ahead = NOW + seconds * SECOND
    const grant = ownerGrant({ now: ahead })
    expect(thrownBy(() => verify([grant]))).toEqual(
      reason === undefined ? undefined : expect.objectContaining(refusal(reason, { link: 0 })),
    )
    const store = await listening()
    const body = attachAuthority(BODY, sign([ownerGrant()], { now: ahead }))
    const outcome = await store.transact((tx) => verifyAuthority(tx, { body, self: node.did, now: NOW }))
    expect(outcome).toMatchObject(reason === undefined ? { kind: 'accepted' } : { kind: 'downgraded', reason })
  })

  test.each([0, 1, 59 * SECOND, 60 * SECOND, 61 * SECOND])(
    'attack 10: an end that is past by %i ms has no grace, whatever the level',
    async (pastMs) => {
      const now = NOW + HOUR + pastMs
      expect(thrownBy(() => verify([ownerGrant()], now))).toMatchObject(refusal('expired'))
      for (const level of ['inform', 'request', 'execute'] as const) {
        const store = await listening()
        const body = attachAuthority(BODY, sign([ownerGrant()], { level, ttlMs: 2 * HOUR }))
        const outcome = await store.transact((tx) => verifyAuthority(tx, { body, self: node.did, now }))
        expect(outcome).toMatchObject({ kind: 'downgraded', reason: 'expired' })
      }
    },
  )
})

describe('attack 11: a wider scope', () => {
  test.each([
    ['csb-protocol-admin', 'csb-protocol'],
    ['csb-protocol2', 'csb-protocol'],
    ['csb', 'csb-protocol'],
    // what a well-known library lets pass
    ['file/read-and-delete', 'file/read'],
    ['file', 'file/read'],
    ['file/readx', 'file/read'],
    ['FILE/read', 'file/read'],
    ['file//read', 'file/read/x'],
    ['*', 'file'],
    ['', 'file'],
    ['fіle', 'file'],
    ['file\u200b', 'file'],
  ])('attack 11: %j does not lie within %j, and no grant or message gets there', async (inner, outer) => {
    expect(isScopeWithin([inner], [outer])).toBe(false)
    const root = ownerGrant({ scope: [outer] })
    expect(thrownBy(() => verify([root, forge(childDraft(root, { scope: [inner] }))]))).toMatchObject({
      code: 'GRANT_INVALID',
    })
    const store = await listening()
    const body = attachAuthority(BODY, sign([root], { scope: [inner] }))
    const outcome = await store.transact((tx) => verifyAuthority(tx, { body, self: node.did, now: NOW }))
    expect(outcome.kind).toBe('downgraded')
  })

  test('attack 11: one token lies within another exactly where its segments begin with those of the other', () => {
    const token = fc
      .array(fc.constantFrom('a', 'ab', 'b', 'a-b', 'read', 'read-all'), { minLength: 1, maxLength: 4 })
      .map((segments) => segments.join('/'))
    let within = 0
    fc.assert(
      fc.property(token, token, (inner, outer) => {
        const [a, b] = [inner.split('/'), outer.split('/')]
        const expected = b.every((segment, at) => a[at] === segment)
        if (expected) within++
        expect(isScopeWithin([inner], [outer])).toBe(expected)
      }),
      { numRuns: 3000 },
    )
    expect(within).toBeGreaterThan(50)
  })
})

describe('attack 12: a wider lease', () => {
  const LEVELS = ['public', 'trusted', 'private', 'sealed'] as const
  const ACTIONS = ['list', 'read', 'write', 'send'] as const
  const lease: fc.Arbitrary<Lease> = fc.record({
    type: fc.constant('urn:csb:lease:1' as const),
    locations: fc.subarray(['nas://a/h1', 'nas://a/*', 'nas://*/h1', 'nas://b/h1'], { minLength: 1 }),
    actions: fc.subarray([...ACTIONS], { minLength: 1 }),
    paths: fc.subarray(['/', '/notes', '/notes/2027', '/notes2', '/a'], { minLength: 1 }),
    deny_paths: fc.subarray(['/notes/2027', '/a/b'], { maxLength: 1 }),
    branches: fc.subarray(['runs/*', 'runs/7', 'runs7/*', 'memory'], { minLength: 1 }),
    labels_max: fc.constantFrom(...LEVELS),
    label_tags: fc.subarray(['health', 'work']),
    label_floor: fc.constantFrom(...LEVELS),
    capabilities: fc.subarray(['B' as const, 'C' as const]),
  }) as fc.Arbitrary<Lease>
  const request: fc.Arbitrary<LeaseRequest> = fc.record(
    {
      location: fc.constantFrom('nas://a/h1', 'nas://a/h2', 'nas://b/h1', 'nas://c/h1'),
      action: fc.constantFrom(...ACTIONS),
      path: fc.constantFrom('/x', '/notes/1', '/notes/2027/1', '/notes2/1', '/notes20', '/a/b/c'),
      branch: fc.constantFrom('runs/7', 'runs/8', 'runs7/1', 'memory'),
      label: fc.record({
        level: fc.constantFrom(...LEVELS),
        integrity: fc.constant('owner' as const),
        tags: fc.subarray(['health', 'work']),
      }),
      capability: fc.constantFrom('B' as const, 'C' as const),
    },
    { requiredKeys: ['location', 'action'] },
  ) as fc.Arbitrary<LeaseRequest>

  const FIELDS = [
    'locations',
    'actions',
    'paths',
    'deny_paths',
    'branches',
    'labels_max',
    'label_tags',
    'label_floor',
    'capabilities',
  ] as const

  type Relation = (child: Lease, parent: Lease) => boolean
  const sound: Relation = (child, parent) => isSubset(child, parent).ok

  /** A relation that forgot a field sees the parent's in the child. */
  const without =
    (field: keyof Lease): Relation =>
    (child, parent) =>
      sound({ ...child, [field]: parent[field] }, parent)
  /** A relation that compares letters sees `/notes2` in `/notes`, as if a slash stood there. */
  const byLetters =
    (field: 'paths' | 'branches', separate: (text: string) => string): Relation =>
    (child, parent) =>
      sound({ ...child, [field]: child[field]?.map(separate) }, parent)

  const pairs = fc.sample(fc.tuple(lease, lease, fc.array(request, { minLength: 16, maxLength: 16 })), {
    numRuns: 2500,
    seed: 20260523,
  })

  /** Requests that the child may do and the parent may not, among random pairs that `relation` lets pass. */
  function violationsOf(relation: Relation): number {
    let found = 0
    for (const [a, parent, requests] of pairs) {
      // whole other leases, the common part of both, and those that differ in a single field
      const oneField = FIELDS.map((field) => ({ ...parent, [field]: a[field] }))
      for (const child of [a, meet(a, parent), ...oneField]) {
        if (child === null || !relation(child, parent)) continue
        found += requests.filter((asked) => allows(child, asked).ok && !allows(parent, asked).ok).length
      }
    }
    return found
  }
  test('attack 12: nothing that lies within a lease may do what the lease may not', () => {
    expect(violationsOf(sound)).toBe(0)
  })

  test.each<[string, Relation]>([
    ...FIELDS.map((field): [string, Relation] => [`forgets ${field}`, without(field)]),
    ['compares paths by letters', byLetters('paths', (path) => path.replace(/^\/notes2$/, '/notes/2'))],
    ['compares branches by letters', byLetters('branches', (branch) => branch.replace(/^runs7\//, 'runs/7/'))],
  ])('attack 12: a relation that %s is caught by that', (_, relation) => {
    expect(violationsOf(relation)).toBeGreaterThan(0)
  })
})

describe('attack 19: the shape of a chain', () => {
  const root = ownerGrant()
  const child = childGrant(root)
  const grandchild = signGrant(
    childDraft(child, { from: party('helper', helper), to: party('x', stranger), maxDepth: 0 }),
    helper,
  )
  const foreign = signGrant(ownerDraft({ from: party('Ada', stranger) }), stranger)
  /** Points at itself: its own hash can not stand in it, so what stands there is another one. */
  const looped = forge({ delegation: { ...childDraft(root).delegation, parent: grantHash(child) } })

  test.each<[string, readonly unknown[], string]>([
    ['nothing', [], 'chain_shape'],
    ['its root missing', [child, grandchild], 'chain_shape'],
    ['shuffled', [child, root, grandchild], 'chain_shape'],
    ['a link missing', [root, grandchild], 'broken_link'],
    ['shuffled behind its root', [root, grandchild, child], 'broken_link'],
    ['a link twice', [root, child, child], 'cycle'],
    ['its root twice', [root, root], 'cycle'],
    ['a circle', [root, child, looped, child], 'cycle'],
    ['a foreign root', [foreign], 'untrusted_root'],
    ['a foreign root above an own chain', [foreign, root, child], 'broken_link'],
    ['too deep for its root', [ownerGrant({ maxDepth: 0 }), childGrant(root)], 'broken_link'],
    ['too many links', [root, child, grandchild, root, child, grandchild], 'too_deep'],
    ['something else in it', [root, 'child'], 'malformed'],
  ])('attack 19: %s', async (_, chain, reason) => {
    const looks = await verifiesDuring(() => {
      expect(thrownBy(() => verify(chain))).toMatchObject({ code: 'GRANT_INVALID', details: { reason } })
    })
    expect(looks, 'signatures that were looked at').toBe(0)
  })

  test('attack 19: a depth that was not given is not taken', () => {
    const flat = ownerGrant({ maxDepth: 0 })
    const below = forge(childDraft(flat, { maxDepth: 0 }))
    expect(thrownBy(() => verify([flat, below]))).toMatchObject(refusal('too_deep', { link: 1 }))
  })

  test('attack 19: ten thousand links cost no look at a signature, in a chain or in a message', async () => {
    const many = Array.from({ length: 10_000 }, (_, n) => ({ delegation: { ...root.delegation, id: `del_${n}` } }))
    const store = await listening()
    const good = sign([root])
    const looks = await verifiesDuring(async () => {
      expect(thrownBy(() => verify(many))).toMatchObject(refusal('too_deep'))
      const body = attachAuthority(BODY, { ...good, chain: many })
      const outcome = await store.transact((tx) => verifyAuthority(tx, { body, self: node.did, now: NOW }))
      expect(outcome).toMatchObject({ kind: 'downgraded', reason: 'too_deep' })
    })
    expect(looks).toBe(0)
    // the count does count
    expect(await verifiesDuring(() => void verify([root, child]))).toBe(2)
  })
})
