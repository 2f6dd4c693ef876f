/** Passing a delegation on: nowhere wider, and what is made verifies. */
import {
  array,
  assert,
  constantFrom,
  integer,
  option,
  property,
  record,
  subarray,
  tuple,
  uniqueArray,
} from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isNodeError, type Lease } from '@csb/core'
import { grantHash, isSubset, leaseOf, passOn, verifyChain, type Passing } from '@csb/authority'
import {
  HOUR,
  NOW,
  agent,
  helper,
  node,
  otherNode,
  owner,
  ownerGrant,
  party,
  stranger,
  thrownBy,
  wideLease,
} from './cast.ts'

const to = party('helper', helper)
const received = ownerGrant({
  audience: [node.did, otherNode.did],
  maxAgeMs: 30_000,
  lease: wideLease({ budget: { tokens: 100 }, max_children: 2 }),
})
const pass = (asked: Partial<Passing> = {}, chain = [received], signer = agent, now = NOW) =>
  passOn({ chain, asked: { to, ...asked }, statusKey: node.did, now }, signer)
const verify = (...chain: unknown[]) => verifyAt(NOW, ...chain)
const verifyAt = (now: number, ...chain: unknown[]) =>
  verifyChain({ chain, now, isRevoked: () => false, trustedRoot: () => ({ ceiling: 'override' }) })

describe('DEL-001 what was received is passed on', () => {
  test('DEL-001 as it was received, where nothing else is said, without its lease and no further', () => {
    const child = pass()
    expect(child.delegation).toMatchObject({
      type: 'scoped',
      grantor_key: agent.did,
      grantee_key: helper.did,
      audience: received.delegation.audience,
      scope: received.delegation.scope,
      level: 'execute',
      max_depth: 0,
      parent: grantHash(received),
      expires_at: received.delegation.expires_at,
      revocation: { max_age_ms: 30_000, status_key: node.did },
    })
    expect(leaseOf(child)).toBeNull()
    expect(verify(received, child).leafHash).toBe(grantHash(child))
  })

  test('L1.2 with its lease, narrower, and its budget where none is named', () => {
    const child = pass({ lease: { paths: ['/drafts'] } })
    expect(leaseOf(child)).toMatchObject({ paths: ['/drafts'], budget: { tokens: 100 }, max_children: 0 })
    expect(leaseOf(pass({ lease: { budget: { calls: 3 } } }))?.budget).toEqual({ tokens: 100, calls: 3 })
    verify(received, child)
  })

  test.each<[string, Partial<Passing>]>([
    ['audience', { audience: [stranger.did] }],
    ['audience', { audience: ['*'], level: 'request' }],
    ['scope', { scope: ['payments'] }],
    ['scope', { scope: ['csb-protocol-admin'] }],
    ['scope', { scope: ['*'] }],
    ['level', { level: 'override' }],
    ['expires_at', { ttlMs: HOUR + 1 }],
    ['max_depth', { maxDepth: 3 }],
    ['revocation.max_age_ms', { maxAgeMs: 30_001 }],
    ['locations', { lease: { locations: ['nas://*/home_bbbbbbbbbbbbbbbbbbbbbbbbbb'] } }],
    ['actions', { lease: { actions: ['list', 'exec'] } }],
    ['branches', { lease: { branches: ['*'] } }],
    ['labels_max', { lease: { labels_max: 'sealed' } }],
    ['label_tags', { lease: { label_tags: ['*'] } }],
    ['budget.tokens', { lease: { budget: { tokens: 101 } } }],
    ['max_children', { lease: { max_children: 3 } }],
  ])('L1.2 wider is refused, and the field is named: %s', (field, asked) => {
    expect(thrownBy(() => pass(asked))).toMatchObject({ code: 'SCOPE_EXCEEDED', details: { field } })
  })

  test('DEL-001 what can not be passed on is not', () => {
    const once = { code: 'SCOPE_EXCEEDED', details: { field: 'max_depth' } }
    expect(thrownBy(() => pass({}, [ownerGrant({ maxDepth: 0 })]))).toMatchObject(once)
    expect(thrownBy(() => pass({}, [ownerGrant({ type: 'single', task: 'task_1', maxDepth: 0 })]))).toMatchObject(once)
    expect(thrownBy(() => pass({}, [received], stranger))).toMatchObject({
      details: { reason: 'holder_mismatch', field: 'grantee_key' },
    })
    expect(thrownBy(() => pass({ lease: {} }, [ownerGrant()]))).toMatchObject({
      details: { field: 'authorization_details' },
    })
    const global = ownerGrant({ type: 'global', scope: ['*'], ttlMs: null, level: 'request' })
    expect(thrownBy(() => pass({}, [global]))).toMatchObject({ code: 'INVALID_INPUT', details: { field: 'scope' } })
    verify(global, pass({ scope: ['anything'] }, [global]))
    for (const lease of [
      { paths: 'x' },
      { actions: [1] },
      { more: 1 },
      { budget: { tokens: -1 } },
      { paths: ['/a/../b'] },
    ])
      expect(thrownBy(() => pass({ lease: lease as Partial<Lease> }))).toMatchObject({
        code: 'GRANT_INVALID',
        details: { reason: 'malformed' },
      })
  })

  test('DEL-001 further, each time narrower, as deep as it was let', () => {
    const one = pass({ maxDepth: 1, level: 'request' })
    const next = (asked: Partial<Passing>) => pass({ to: party('third', stranger), ...asked }, [received, one], helper)
    expect(thrownBy(() => next({ level: 'execute' }))).toMatchObject({ details: { field: 'level' } })
    expect(thrownBy(() => next({ maxDepth: 1 }))).toMatchObject({ details: { field: 'max_depth' } })
    const two = next({ scope: ['csb-protocol/notes'], ttlMs: 1000 })
    expect(verify(received, one, two).rootDid).toBe(owner.did)
  })

  test('DEL-001 whatever is asked for: what is made verifies below what was received, or nothing is made', () => {
    const did = constantFrom(node.did, otherNode.did, stranger.did)
    const token = constantFrom('csb-protocol', 'csb-protocol/a', 'notes', 'notes/b', 'payments', '*')
    const lease = record(
      {
        actions: uniqueArray(constantFrom('list' as const, 'read' as const, 'write' as const, 'exec' as const), {
          minLength: 1,
        }),
        paths: array(constantFrom('/', '/notes', '/notes/a'), { minLength: 1, maxLength: 2 }),
        branches: array(constantFrom('main', 'runs/*', 'runs/7', '*'), { minLength: 1, maxLength: 2 }),
        labels_max: constantFrom('public' as const, 'private' as const, 'sealed' as const),
        budget: record({ tokens: integer({ min: 1, max: 150 }) }),
        max_children: integer({ min: 0, max: 3 }),
      },
      { requiredKeys: [] },
    )
    const all = record({
      audience: uniqueArray(did, { minLength: 1 }),
      scope: uniqueArray(token, { minLength: 1, maxLength: 3 }),
      level: constantFrom('inform' as const, 'request' as const, 'execute' as const, 'override' as const),
      ttlMs: integer({ min: 1000, max: 2 * HOUR }),
      maxDepth: integer({ min: 0, max: 4 }),
      maxAgeMs: integer({ min: 1000, max: 60_000 }),
      lease,
    })
    const names = ['audience', 'scope', 'level', 'ttlMs', 'maxDepth', 'maxAgeMs', 'lease'] as const
    // few at a time, so that not each of them is wider in something
    const asked = tuple(all, subarray([...names], { maxLength: 3 })).map(([members, few]): Partial<Passing> =>
      Object.fromEntries(few.map((name) => [name, members[name]])),
    )
    let made = 0
    assert(
      property(asked, option(constantFrom(1, HOUR / 2)), (one, later) => {
        try {
          const now = NOW + (later ?? 0)
          const child = pass(one, [received], agent, now)
          made++
          expect(verifyAt(now, received, child).chain).toHaveLength(2)
          const [inner, outer] = [leaseOf(child), leaseOf(received)]
          if (inner !== null && outer !== null) expect(isSubset(inner, outer)).toEqual({ ok: true })
        } catch (error) {
          expect(isNodeError(error, 'SCOPE_EXCEEDED') || isNodeError(error, 'INVALID_INPUT')).toBe(true)
        }
      }),
      { numRuns: 500 },
    )
    expect(made).toBeGreaterThan(50)
  })
})
