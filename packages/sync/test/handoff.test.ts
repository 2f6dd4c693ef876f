import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createKeyPair, peerIdFromDid, signDocument, type Handoff, type KeyPair, type Lease } from '@csb/core'
import { allows, draftGrant, grantHash, isSubset, leaseOf, meet, signGrant, verifyChain } from '@csb/authority'
import {
  checkFiles,
  createHandoff,
  createResult,
  handoffBranch,
  handoffHash,
  newHandoffId,
  openHandoff,
  openResult,
  type HandoffFile,
} from '../src/index.ts'
import { ALL, HOME, NOW, TRUSTED } from './nodes.ts'

const owner = createKeyPair()
const nas = createKeyPair()
const friend = createKeyPair()
const HOUR = 3_600_000
const location = `nas://${peerIdFromDid(nas.did)}/${HOME}`

const wide: Lease = {
  type: 'urn:csb:lease:1',
  locations: [location],
  actions: ['list', 'read', 'write', 'propose', 'send'],
  paths: ['/'],
  branches: ['*'],
  labels_max: 'sealed',
  label_tags: ['*'],
}

const party = (name: string, key: KeyPair) => ({ name, did: key.did })
const root = signGrant(
  draftGrant({
    type: 'global',
    from: party('Ines', owner),
    to: party('nas', nas),
    audience: ['*'],
    scope: ['*'],
    level: 'request',
    now: NOW,
    ttlMs: null,
    maxDepth: 2,
    lease: wide,
  }),
  owner,
)

function packageOf({ files = [], lease }: { files?: readonly HandoffFile[]; lease?: Partial<Lease> } = {}) {
  const id = newHandoffId(NOW)
  const narrow: Lease = {
    type: 'urn:csb:lease:1',
    locations: [location],
    actions: ['read', 'propose'],
    paths: ['/results'],
    branches: [handoffBranch(id)],
    labels_max: 'trusted',
    ...lease,
  }
  const leaf = signGrant(
    draftGrant({
      type: 'single',
      from: party('nas', nas),
      to: party('friend', friend),
      audience: [friend.did],
      scope: ['agent-clerk'],
      level: 'request',
      now: NOW,
      ttlMs: HOUR,
      parent: root,
      task: id,
      lease: narrow,
    }),
    nas,
  )
  const handoff = createHandoff(
    {
      id,
      key: nas,
      to: friend.did,
      agent: 'clerk',
      home: HOME,
      base: null,
      text: 'summarise',
      context: null,
      files,
      chain: [root, leaf],
      taint: { level: 'public', integrity: 'owner', tags: [] },
      expiresAt: NOW + HOUR,
    },
    TRUSTED,
    NOW,
  )
  return { handoff, leaf, narrow }
}

const open = (value: unknown, at = NOW + 1) => openHandoff(value, nas.did, friend.did, ALL, at)

describe('a package', () => {
  const files: HandoffFile[] = [
    { path: 'notes/a.md', text: 'for friends', label: { level: 'trusted', integrity: 'owner', tags: [] } },
    { path: 'notes/b.md', text: 'Zq9 private', label: { level: 'private', integrity: 'owner', tags: [] } },
    { path: 'notes/c.md', text: 'Zq9 health', label: { level: 'public', integrity: 'owner', tags: ['health'] } },
  ]

  test('L4.4 opens at who it is for', () => {
    const { handoff } = packageOf()
    expect(open(structuredClone(handoff))).toEqual(handoff)
    expect(handoffHash(handoff)).toMatch(/^sha256:/)
  })

  test('L4.2 leaves out what the peer may not see, and is not tainted by it', () => {
    const { handoff } = packageOf({ files })
    expect(handoff.files.map(({ path }) => path)).toEqual(['notes/a.md'])
    expect(JSON.stringify(handoff)).not.toContain('Zq9 ')
    expect(handoff.taint).toBe('trusted:owner')
  })

  test('L4.2 with a file above what the receiver may hold is refused', () => {
    const { handoff } = packageOf({ files })
    expect(() => openHandoff(handoff, nas.did, friend.did, { level: 'public', tags: [] }, NOW)).toThrowError(
      expect.objectContaining({ code: 'CLEARANCE' }),
    )
  })

  test.each<[string, (handoff: Handoff) => unknown, string]>([
    ['another task', (h) => ({ ...h, task: { ...h.task, text: 'send me everything' } }), 'GRANT_INVALID'],
    ['another agent', (h) => ({ ...h, agent: 'banker' }), 'GRANT_INVALID'],
    ['a longer life', (h) => ({ ...h, expires_at: h.expires_at + HOUR }), 'GRANT_INVALID'],
    ['one more file', (h) => ({ ...h, files: [{ path: 'x', text: 'y', label: 'public:owner' }] }), 'GRANT_INVALID'],
    ['another receiver', (h) => ({ ...h, to: createKeyPair().did }), 'SENDER_MISMATCH'],
    ['another sender', (h) => ({ ...h, from: createKeyPair().did }), 'SENDER_MISMATCH'],
    ['a member too many', (h) => ({ ...h, extra: 1 }), 'MALFORMED'],
    ['no signature', ({ signature: _signature, ...h }) => h, 'MALFORMED'],
    ['nothing', () => null, 'MALFORMED'],
  ])('L4.4 with %s is refused', (_name, change, code) => {
    const { handoff } = packageOf()
    expect(() => open(change(handoff))).toThrowError(expect.objectContaining({ code }))
  })

  test('L4.4 signed by somebody else is refused', () => {
    const { signature: _signature, ...body } = packageOf().handoff
    const forged = { ...body, signature: signDocument('handoff', body, friend) }
    expect(() => open(forged)).toThrowError(expect.objectContaining({ code: 'GRANT_INVALID' }))
  })

  test.each([
    [HOUR - 1, true],
    [HOUR, false],
    [HOUR + 1, false],
  ])('L4.4 %i ms after it was made: opens is %s', (after, opens) => {
    const { handoff } = packageOf()
    const opened = () => open(handoff, NOW + after)
    if (opens) expect(opened()).toEqual(handoff)
    else expect(opened).toThrowError(expect.objectContaining({ code: 'LEASE_EXPIRED' }))
  })
})

describe('a result', () => {
  const resultOf = (handoff: Handoff, lease: string, key = friend, more: object = {}) =>
    createResult(
      {
        handoff: handoff.id,
        to: nas.did,
        outcome: 'completed',
        code: null,
        text: 'done',
        files: [{ path: 'results/summary.md', text: 'short' }],
        lease,
        record: { seq: 1, leaf: `sha256:${'0'.repeat(64)}` },
        finished_at: NOW + 5,
        ...more,
      },
      key,
    )

  test('L4.4 within the lease is taken', () => {
    const { handoff, leaf, narrow } = packageOf()
    const result = resultOf(handoff, grantHash(leaf))
    expect(openResult(structuredClone(result), handoff, narrow, grantHash(leaf))).toEqual(result)
  })

  test.each([
    'notes/2026/x.md',
    'results',
    'resultsx/a',
    'results/../notes/a',
    '/results/a',
    'results//a',
    '.csb/labels.json',
  ])('L4.4 with a file at %j lies outside the lease and is refused', (path) => {
    const { handoff, leaf, narrow } = packageOf()
    const result = resultOf(handoff, grantHash(leaf), friend, { files: [{ path, text: 'x' }] })
    if (path === 'results') expect(openResult(result, handoff, narrow, grantHash(leaf)).files).toHaveLength(1)
    else
      expect(() => openResult(result, handoff, narrow, grantHash(leaf))).toThrowError(
        expect.objectContaining({ code: 'SCOPE_EXCEEDED' }),
      )
  })

  test('L4.4 of somebody else, for something else, or under another lease is refused', () => {
    const { handoff, leaf, narrow } = packageOf()
    const hash = grantHash(leaf)
    const refused = (value: unknown, code: string) =>
      expect(() => openResult(value, handoff, narrow, hash)).toThrowError(expect.objectContaining({ code }))
    refused(resultOf(handoff, hash, createKeyPair()), 'SENDER_MISMATCH')
    refused(resultOf(packageOf().handoff, hash), 'SENDER_MISMATCH')
    refused(resultOf(handoff, grantHash(root)), 'GRANT_INVALID')
    refused({ ...resultOf(handoff, hash), text: 'changed' }, 'GRANT_INVALID')
    refused({ ...resultOf(handoff, hash), files: 'none' }, 'MALFORMED')
    refused(undefined, 'MALFORMED')
  })

  test('L0.1 another branch than the handoff has is not reached', () => {
    const { handoff, narrow } = packageOf({ lease: { branches: ['handoff/other'] } })
    expect(() => checkFiles({ ...narrow, branches: ['handoff/other'] }, handoff, [{ path: 'results/a' }])).toThrowError(
      expect.objectContaining({ code: 'SCOPE_EXCEEDED', details: { field: 'branches', path: 'results/a' } }),
    )
  })
})

describe('the lease of a package', () => {
  const lease: fc.Arbitrary<Lease> = fc.record({
    type: fc.constant('urn:csb:lease:1' as const),
    locations: fc.constant([location]),
    actions: fc.subarray<Lease['actions'][number]>(['list', 'read', 'write', 'propose', 'send'], { minLength: 1 }),
    paths: fc.subarray(['/', '/results', '/notes', '/notes/2026', '/resultsx'], { minLength: 1 }),
    deny_paths: fc.subarray(['/notes/2026', '/results/secret']),
    branches: fc.subarray(['handoff/*', 'handoff/a', 'memory', 'main', '*'], { minLength: 1 }),
    labels_max: fc.constantFrom('public' as const, 'trusted' as const, 'private' as const, 'sealed' as const),
    label_tags: fc.subarray(['health', 'work', '*']),
  })
  const request = fc.record({
    location: fc.constant(location),
    action: fc.constantFrom('read' as const, 'write' as const, 'propose' as const),
    path: fc.constantFrom('/results/a', '/notes/2026/b', '/notes/c', '/results/secret/d', '/resultsx/e'),
    branch: fc.constantFrom('handoff/a', 'handoff/b', 'memory', 'main'),
  })

  test('L4.4, L1.2: what is left of it at the receiver lies within it, and it within what the sender holds', () => {
    fc.assert(
      fc.property(lease, lease, lease, request, (held, asked, ceiling, wish) => {
        const leaf = meet(held, asked)
        if (leaf === null) return
        expect(isSubset(leaf, held)).toEqual({ ok: true })
        const local = meet(leaf, ceiling)
        if (local === null) return
        expect(isSubset(local, leaf)).toEqual({ ok: true })
        if (allows(local, wish).ok) {
          expect(allows(leaf, wish).ok).toBe(true)
          expect(allows(held, wish).ok).toBe(true)
        }
      }),
      { numRuns: 2000 },
    )
  })

  test('L4.4, L1.2: a leaf that is wider than its parent does not verify', () => {
    const narrowRoot = signGrant(
      draftGrant({
        type: 'global',
        from: party('Ines', owner),
        to: party('nas', nas),
        audience: ['*'],
        scope: ['*'],
        level: 'request',
        now: NOW,
        ttlMs: null,
        maxDepth: 2,
        lease: { ...wide, labels_max: 'public' },
      }),
      owner,
    )
    const { narrow, handoff } = packageOf()
    const leaf = signGrant(
      draftGrant({
        type: 'single',
        from: party('nas', nas),
        to: party('friend', friend),
        audience: [friend.did],
        scope: ['agent-clerk'],
        level: 'request',
        now: NOW,
        ttlMs: HOUR,
        parent: narrowRoot,
        task: handoff.id,
        lease: narrow,
      }),
      nas,
    )
    expect(leaseOf(leaf)?.labels_max).toBe('trusted')
    const check = { now: NOW, isRevoked: () => false, trustedRoot: () => ({ ceiling: 'request' as const }) }
    expect(() => verifyChain({ ...check, chain: [narrowRoot, leaf] })).toThrowError(
      expect.objectContaining({ code: 'GRANT_INVALID', details: expect.objectContaining({ reason: 'widened_lease' }) }),
    )
  })
})
