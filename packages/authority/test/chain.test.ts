import { describe, expect, test } from 'vitest'
import { LIMITS, createKeyPair, signDocument, type Grant, type Lease } from '@csb/core'
import { grantHash, signGrant, verifyChain, type ChainCheck, type GrantBody, type GrantInit } from '@csb/authority'
import {
  HOUR,
  NOW,
  agent,
  childDraft,
  childGrant,
  helper,
  node,
  otherNode,
  owner,
  ownerDraft,
  ownerGrant,
  party,
  refusal,
  stranger,
  thrownBy,
  wideLease,
} from './cast.ts'

const check = (chain: readonly unknown[], extra: Partial<ChainCheck> = {}): ChainCheck => ({
  chain,
  now: NOW,
  isRevoked: () => false,
  trustedRoot: (did) => (did === owner.did ? { ceiling: 'override' } : undefined),
  ...extra,
})
const verify = (chain: readonly unknown[], extra?: Partial<ChainCheck>) => verifyChain(check(chain, extra))
const refused = (chain: readonly unknown[], extra?: Partial<ChainCheck>) => thrownBy(() => verify(chain, extra))

/** Sign a body without the checks that signGrant makes: what a hostile grantor would do. */
const forge = (body: GrantBody, key = agent): Grant => ({
  ...body,
  delegation: { ...body.delegation, signature: signDocument('grant', body, key) },
})
const forgedChild = (parent: Grant, change: Partial<GrantBody['delegation']>, lease?: Lease) => {
  const body = childDraft(parent, lease === undefined ? {} : { lease })
  return forge({ ...body, delegation: { ...body.delegation, ...change } })
}

describe('a chain of grants', () => {
  test('L1.2 that only becomes narrower is accepted, and its leaf counts', () => {
    const root = ownerGrant({ lease: wideLease() })
    const child = childGrant(root, { lease: wideLease({ actions: ['read'], paths: ['/notes'] }) })
    const result = verify([root, child], { audience: node.did })
    expect(result).toMatchObject({ leafHash: grantHash(child), rootDid: owner.did, lease: { actions: ['read'] } })
    expect(result.hashes).toEqual([grantHash(root), grantHash(child)])
  })

  test.each<[string, Partial<GrantBody['delegation']>, string, string]>([
    ['scope', { scope: ['csb-protocol-admin'] }, 'widened_scope', 'scope'],
    ['level', { level: 'execute' }, 'widened_level', 'level'],
    ['audience', { audience: [otherNode.did] }, 'wrong_audience', 'audience'],
    ['begin', { not_before: NOW - 1, granted_at: NOW - 1 }, 'widened_time', 'granted_at'],
    ['end', { expires_at: NOW + HOUR + 1 }, 'widened_time', 'expires_at'],
    ['depth', { max_depth: 3 }, 'too_deep', 'max_depth'],
    [
      'bound of revocation',
      { revocation: { max_age_ms: 60_001, status_key: agent.did } },
      'widened_time',
      'revocation.max_age_ms',
    ],
    ['revocability', { revocable: false, expires_at: NOW + 1000 }, 'type_rule', 'revocable'],
  ])('L1.2 attack 12: a child with a wider %s is refused', (_field, change, reason, field) => {
    const root = ownerGrant({ level: change.level === undefined ? 'execute' : 'request' })
    expect(verify([root, forgedChild(root, {})]).leaf.delegation.grantee).toBe('helper')
    expect(refused([root, forgedChild(root, change)])).toMatchObject(refusal(reason, { link: 1, field }))
  })

  test('L1.2 attack 12: a child that may be used before its parent is refused', () => {
    const later = ownerDraft({ lease: wideLease() })
    const root = forge({ ...later, delegation: { ...later.delegation, not_before: NOW + 1000 } }, owner)
    const begins = (at: number) => forgedChild(root, { granted_at: NOW, not_before: at })
    expect(verify([root, begins(NOW + 1000)])).toMatchObject({ rootDid: owner.did })
    expect(refused([root, begins(NOW + 999)])).toMatchObject({
      code: 'GRANT_INVALID',
      details: { reason: 'widened_time', field: 'not_before' },
    })
  })

  test.each<[string, Partial<Lease>]>([
    ['locations', { locations: ['nas://*/home_abcdefghijklmnopqrstuvwxyz'] }],
    ['actions', { actions: ['read', 'exec'] }],
    ['paths', { paths: ['/notes2'] }],
    ['deny_paths', { deny_paths: [] }],
    ['branches', { branches: ['*'] }],
    ['labels_max', { labels_max: 'sealed' }],
    ['label_tags', { label_tags: ['health', 'money'] }],
    ['label_floor', { label_floor: 'public' }],
    ['capabilities', { capabilities: ['B', 'C'] }],
    ['external', { external: 'taint' }],
    ['gates', { gates: [] }],
    ['budget.calls', { budget: { calls: 11 } }],
    ['max_children', { max_children: 3 }],
  ])('L1.2 attack 12: a child lease with wider %s is refused and the field is named', (field, wider) => {
    const lease = wideLease({
      paths: ['/notes'],
      deny_paths: ['/notes/private'],
      label_floor: 'trusted',
      capabilities: ['B'],
      external: 'deny',
      gates: ['send'],
      budget: { calls: 10 },
      max_children: 2,
    })
    const root = ownerGrant({ lease })
    expect(verify([root, forgedChild(root, {}, lease)]).lease).toEqual(lease)
    expect(refused([root, forgedChild(root, {}, { ...lease, ...wider })])).toMatchObject(
      refusal('widened_lease', { link: 1, field }),
    )
  })

  test('L1.2 a lease below a grant that has none is refused', () => {
    const root = ownerGrant()
    expect(refused([root, forgedChild(root, {}, wideLease())])).toMatchObject(refusal('widened_lease', { link: 1 }))
  })

  test('attack 11: a scope lies within another by whole segments only', () => {
    const root = ownerGrant({ scope: ['read', 'file/read'] })
    const fine = (scope: string[]) => verify([root, forgedChild(root, { scope })]).leaf.delegation.scope
    expect(fine(['read/notes', 'file/read'])).toEqual(['read/notes', 'file/read'])
    for (const scope of ['file', 'file/read-and-delete', 'reads', 'READ', 'rea']) {
      expect(refused([root, forgedChild(root, { scope: [scope] })]), scope).toMatchObject(refusal('widened_scope'))
    }
  })

  test('attack 26: override is lent to nobody further', () => {
    const root = ownerGrant({ type: 'global', scope: ['*'], level: 'execute' })
    expect(refused([root, forgedChild(root, { level: 'override', type: 'global', scope: ['*'] })])).toMatchObject(
      refusal('type_rule', { link: 1 }),
    )
  })

  test('attack 19: that is out of order, has a gap, a twin or nothing in it is refused', () => {
    const root = ownerGrant()
    const child = childGrant(root)
    const grandchild = signGrant(
      { ...childDraft(child, { from: party('helper', helper), to: party('x', stranger), maxDepth: 0 }) },
      helper,
    )
    expect(verify([root, child, grandchild]).hashes).toHaveLength(3)
    expect(refused([])).toMatchObject(refusal('chain_shape'))
    expect(refused([child])).toMatchObject(refusal('chain_shape'))
    expect(refused([child, root])).toMatchObject(refusal('chain_shape'))
    expect(refused([root, grandchild])).toMatchObject(refusal('broken_link', { link: 1 }))
    expect(refused([root, root])).toMatchObject(refusal('cycle'))
    expect(refused([root, child, child])).toMatchObject(refusal('cycle'))
  })

  test('attack 20: a child can not be moved below another grant of equal right to the same holder', () => {
    const one = ownerGrant()
    const other = ownerGrant()
    expect(refused([other, childGrant(one)])).toMatchObject(refusal('broken_link', { link: 1, field: 'parent' }))
  })

  test('a link by somebody who was not given anything is refused', () => {
    const root = ownerGrant()
    const body = childDraft(root, { from: party('stranger', stranger) })
    expect(refused([root, forge(body, stranger)])).toMatchObject(refusal('broken_link', { field: 'grantor_key' }))
  })

  test('that begins with a key nobody here trusts is refused', () => {
    const root = signGrant(ownerDraft({ from: party('Ada', stranger) }), stranger)
    expect(refused([root])).toMatchObject(refusal('untrusted_root'))
  })

  test('for another node is refused, one for any node is not', () => {
    expect(refused([ownerGrant()], { audience: otherNode.did })).toMatchObject(refusal('wrong_audience'))
    const forAny = ownerGrant({ audience: ['*'], level: 'request' })
    expect(verify([forAny], { audience: otherNode.did }).rootDid).toBe(owner.did)
    const forOne = childGrant(forAny, { audience: [otherNode.did] })
    expect(verify([forAny, forOne], { audience: otherNode.did }).leaf).toEqual(forOne)
    expect(refused([forAny, forOne], { audience: node.did })).toMatchObject(refusal('wrong_audience'))
  })

  test('attack 19: of ten thousand links is refused by its length, with no signature looked at', () => {
    let looks = 0
    const { signature, ...body } = ownerGrant().delegation
    const delegation = Object.defineProperty(body, 'signature', { enumerable: true, get: () => (looks++, signature) })
    expect(refused(Array.from({ length: 10_000 }, () => ({ delegation })))).toMatchObject(refusal('too_deep'))
    expect(looks).toBe(0)
    expect(refused(Array.from({ length: LIMITS.chainLinks }, () => ({ delegation })))).toMatchObject({})
    expect(looks).toBeGreaterThan(0)
    expect(LIMITS.chainLinks).toBe(5)
  })

  test('that is too large is refused before it is read', () => {
    const large = { delegation: { ...ownerGrant().delegation, grantor: 'x'.repeat(LIMITS.grantBytes) } }
    expect(refused([large])).toMatchObject(refusal('malformed', { link: 0, field: 'size' }))
    expect(refused([large, large, large, large])).toMatchObject(refusal('malformed', { field: 'size' }))
  })

  test('with one bad signature in the middle is refused and the link named', () => {
    const root = ownerGrant()
    const child = childGrant(root)
    const respelled: Grant = { ...root, delegation: { ...root.delegation, signature: child.delegation.signature } }
    expect(refused([respelled, child])).toMatchObject(refusal('bad_signature', { link: 0 }))
  })

  test('DEL-003.3.4 with a revoked ancestor is revoked', () => {
    const root = ownerGrant()
    const child = childGrant(root)
    const by = (hash: string, who: string) => ({
      isRevoked: (h: string, dids: readonly string[]) => h === hash && dids.includes(who),
    })
    expect(refused([root, child], by(grantHash(root), owner.did))).toMatchObject(refusal('revoked', { link: 0 }))
    expect(refused([root, child], by(grantHash(child), owner.did))).toMatchObject(refusal('revoked', { link: 1 }))
    expect(refused([root, child], by(grantHash(child), agent.did))).toMatchObject(refusal('revoked', { link: 1 }))
    expect(refused([root, child], by(grantHash(child), helper.did))).toMatchObject(refusal('revoked', { link: 1 }))
    expect(refused([root, child], by(grantHash(root), helper.did))).toBeUndefined()
    expect(refused([root, child], by(grantHash(child), stranger.did))).toBeUndefined()
  })
})

test('DEL-003.3.4 a grant that was declared irrevocable ends only with its grantee', () => {
  const body = ownerDraft({ ttlMs: HOUR, maxDepth: 0 })
  const final = signGrant({ ...body, delegation: { ...body.delegation, revocable: false } }, owner)
  const by = (did: string) => refused([final], { isRevoked: (_hash, dids) => dids.includes(did) })
  expect(by(owner.did)).toBeUndefined()
  expect(by(agent.did)).toMatchObject(refusal('revoked'))
})

describe('times, to the millisecond', () => {
  const at = (now: number, extra: Partial<GrantInit> = {}) => refused([ownerGrant(extra)], { now })

  test('attack 8: a grant is over at its end, without grace', () => {
    expect(at(NOW + HOUR - 1)).toBeUndefined()
    expect(at(NOW + HOUR)).toMatchObject(refusal('expired', { link: 0 }))
  })

  test('attack 8: a grant of a signer whose clock is a minute ahead is accepted, a minute and a millisecond not', () => {
    expect(at(NOW - LIMITS.clockSkewMs)).toBeUndefined()
    expect(at(NOW - LIMITS.clockSkewMs - 1)).toMatchObject(refusal('not_yet_valid', { link: 0 }))
  })
})

test('a chain of five is accepted, of six not even read', () => {
  const keys = [owner, ...Array.from({ length: 6 }, (_, i) => createKeyPair(new Uint8Array(32).fill(60 + i)))]
  const chain: Grant[] = []
  for (let i = 0; i < 5; i++) {
    const [from, to] = [keys[i] ?? owner, keys[i + 1] ?? owner]
    const parent = chain.at(-1)
    chain.push(
      signGrant(
        ownerDraft({
          from: party(`k${i}`, from),
          to: party(`k${i + 1}`, to),
          maxDepth: 4 - i,
          ...(parent === undefined ? {} : { parent }),
        }),
        from,
      ),
    )
  }
  expect(verify(chain).hashes).toHaveLength(5)
  expect(refused([...chain, chain[0]])).toMatchObject(refusal('too_deep'))
})
