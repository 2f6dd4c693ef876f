import { describe, expect, test } from 'vitest'
import { LIMITS, didFromPublicKey, digestOf, signDocument, toBase64Url, type Grant } from '@csb/core'
import { draftGrant, grantHash, leaseOf, readGrant, signGrant, verifyChain, type GrantBody } from '@csb/authority'
import { HOUR, NOW, agent, node, owner, ownerDraft, ownerGrant, party, refusal, thrownBy, wideLease } from './cast.ts'

const withDelegation = (body: GrantBody, change: object): GrantBody => ({
  ...body,
  delegation: { ...body.delegation, ...change },
})
const trustedRoot = (did: string) => (did === owner.did ? { ceiling: 'override' as const } : undefined)
const verify = (...chain: unknown[]) => verifyChain({ chain, now: NOW, isRevoked: () => false, trustedRoot })

describe('a grant', () => {
  test('A2A-032, DEL-003.3.1 carries the members of the document under their own names, and a signature that verifies', () => {
    const grant = ownerGrant()
    const members = ['id', 'grantor', 'grantee', 'granted_at', 'expires_at', 'scope', 'level', 'signature', 'revocable']
    expect(Object.keys(grant.delegation)).toEqual(expect.arrayContaining(members))
    expect(grant.delegation.grantee).toBe('若兰 🌸')
    expect(verify(grant).leaf).toEqual(grant)
  })

  test("DEL-003.3.1 the document's example signature, a digest, is refused", () => {
    const grant = ownerGrant()
    const digest = digestOf('whatever')
    const spoiled = { ...grant, delegation: { ...grant.delegation, signature: digest } }
    expect(thrownBy(() => verify(spoiled))).toMatchObject(refusal('bad_signature'))
    const example = { ...grant, delegation: { ...grant.delegation, signature: 'sha256:xxx...' } }
    expect(thrownBy(() => readGrant(example))).toMatchObject(refusal('bad_signature'))
  })

  test('is signed by its grantor only', () => {
    expect(thrownBy(() => signGrant(ownerDraft(), agent))).toMatchObject(refusal('holder_mismatch'))
  })

  test('has a hash that its signature has no part in', () => {
    const grant = ownerGrant()
    const respelled = { ...grant, delegation: { ...grant.delegation, signature: `ed25519:${'A'.repeat(86)}` } }
    expect(grantHash(respelled)).toBe(grantHash(grant))
    expect(grantHash(ownerGrant({ scope: ['notes'] }))).not.toBe(grantHash(grant))
  })

  test('attack 1: every changed byte of its text is found', () => {
    const text = JSON.stringify(ownerGrant({ lease: wideLease() }))
    for (let at = 0; at < text.length; at += 3) {
      const spoiled = `${text.slice(0, at)}${text[at] === 'x' ? 'y' : 'x'}${text.slice(at + 1)}`
      let value: unknown
      try {
        value = JSON.parse(spoiled)
      } catch {
        continue
      }
      expect(
        thrownBy(() => verify(value)),
        `byte ${at}`,
      ).toMatchObject({ code: 'GRANT_INVALID' })
    }
  })

  test('attack 5: a signature made for another kind of document is refused', () => {
    const { signature: _, ...delegation } = ownerGrant().delegation
    const forged = { delegation: { ...delegation, signature: signDocument('handoff', { delegation }, owner) } }
    expect(thrownBy(() => verify(forged))).toMatchObject(refusal('bad_signature'))
  })

  test('attack 4: a signature by another key, with the keys swapped in the text, is refused', () => {
    const grant = ownerGrant()
    const swapped = { ...grant, delegation: { ...grant.delegation, grantee_key: node.did } }
    expect(thrownBy(() => verify(swapped))).toMatchObject(refusal('bad_signature'))
  })

  test('attack 3: a key of small order is refused by name', () => {
    const weak = didFromPublicKey(Uint8Array.of(1, ...new Uint8Array(31)))
    const { delegation } = ownerGrant()
    // under this key R = identity, S = 0 is a signature of every message
    const signature = `ed25519:${toBase64Url(Uint8Array.of(1, ...new Uint8Array(63)))}`
    const chain = [{ delegation: { ...delegation, grantor_key: weak, signature } }]
    const error = thrownBy(() =>
      verifyChain({ chain, now: NOW, isRevoked: () => false, trustedRoot: () => ({ ceiling: 'override' }) }),
    )
    expect(error).toMatchObject(refusal('weak_key', { link: 0 }))
  })

  test.each<[string, { delegation?: object; authorization_details?: object[] }, string]>([
    ['an unknown member', { delegation: { surprise: 1 } }, 'malformed'],
    ['a newer version', { delegation: { v: 2 } }, 'unknown_version'],
    ['a time with a fraction', { delegation: { expires_at: NOW + 0.5 } }, 'malformed'],
    ['a time as text', { delegation: { expires_at: String(NOW) } }, 'malformed'],
    ['a name that is not NFC', { delegation: { grantor: 'e\u0301' } }, 'malformed'],
    ['a lone surrogate', { delegation: { grantor: '\ud800' } }, 'malformed'],
    ['a level outside the list', { delegation: { level: 'root' } }, 'malformed'],
    ['a path that climbs', { authorization_details: [wideLease({ paths: ['/notes/../secret'] })] }, 'malformed'],
    ['a lease of an unknown type', { authorization_details: [{ ...wideLease(), type: 'urn:other' }] }, 'malformed'],
    [
      'an action to delete snapshots',
      { authorization_details: [{ ...wideLease(), actions: ['delete_snapshot'] }] },
      'malformed',
    ],
    ['two leases', { authorization_details: [wideLease(), wideLease()] }, 'malformed'],
  ])('with %s is refused', (_name, change, reason) => {
    const grant = ownerGrant()
    const spoiled = { ...grant, ...change, delegation: { ...grant.delegation, ...change.delegation } }
    expect(thrownBy(() => readGrant(spoiled))).toMatchObject({ code: 'GRANT_INVALID', details: { reason } })
  })

  test('L1.4 no lease has a word for deleting a snapshot or writing a protected branch', () => {
    for (const action of ['delete_snapshot', 'delete', 'write_protected', 'merge', '*']) {
      const body = {
        ...ownerDraft(),
        authorization_details: [{ ...wideLease(), actions: [action] }],
      } as unknown as GrantBody
      expect(thrownBy(() => signGrant(body, owner))).toMatchObject({ code: 'GRANT_INVALID' })
    }
  })
})

describe('DEL-001 the three types', () => {
  const rule = (body: GrantBody, field: string) =>
    expect(thrownBy(() => signGrant(body, owner))).toMatchObject(refusal('type_rule', { field }))
  const single = { type: 'single', task: 'task_1', maxDepth: 0 } as const

  test('global covers every scope and may live until revoked', () => {
    const grant = ownerGrant({ type: 'global', scope: ['*'], ttlMs: null, level: 'override', maxDepth: 0 })
    expect(grant.delegation.expires_at).toBeNull()
    expect(verify(grant).leaf.delegation.level).toBe('override')
    rule(ownerDraft({ type: 'global', scope: ['notes'] }), 'scope')
    rule(withDelegation(ownerDraft({ type: 'global', scope: ['*'] }), { revocable: false }), 'revocable')
    rule(ownerDraft({ type: 'global', scope: ['*'], level: 'override', maxDepth: 1 }), 'max_depth')
    rule(withDelegation(ownerDraft({ type: 'global', scope: ['*'] }), { parent: digestOf('x') }), 'type')
  })

  test('scoped names its scopes and ends within 90 days', () => {
    rule(ownerDraft({ scope: ['*'] }), 'scope')
    rule(ownerDraft({ ttlMs: null }), 'expires_at')
    rule(ownerDraft({ ttlMs: LIMITS.scopedGrantMs + 1 }), 'expires_at')
    rule(ownerDraft({ level: 'override' }), 'level')
    rule(ownerDraft({ task: 'task_1' }), 'task')
    expect(ownerGrant({ ttlMs: LIMITS.scopedGrantMs }).delegation.type).toBe('scoped')
    rule(withDelegation(ownerDraft({ ttlMs: HOUR + 1 }), { revocable: false }), 'revocable')
  })

  test('single is for one task, one node, at most 7 days, and is not passed on', () => {
    expect(ownerGrant(single).delegation.task).toBe('task_1')
    rule(ownerDraft({ ...single, audience: [node.did, agent.did] }), 'audience')
    rule(ownerDraft({ ...single, ttlMs: LIMITS.singleGrantMs + 1 }), 'expires_at')
    rule(ownerDraft({ ...single, maxDepth: 1 }), 'max_depth')
    rule(ownerDraft({ type: 'single', maxDepth: 0 }), 'task')
  })

  test('a grant to any node speaks at most at level request', () => {
    expect(ownerGrant({ audience: ['*'], level: 'request' }).delegation.audience).toEqual(['*'])
    rule(ownerDraft({ audience: ['*'], level: 'execute' }), 'audience')
    rule(ownerDraft({ audience: ['node.example'] }), 'audience')
  })

  test('times are in order', () => {
    rule(withDelegation(ownerDraft(), { not_before: NOW - 1 }), 'not_before')
    rule(withDelegation(ownerDraft(), { expires_at: NOW }), 'expires_at')
  })
})

test('a draft below a parent keeps to its times and hangs on its hash', () => {
  const parent: Grant = ownerGrant({ now: NOW + 5, ttlMs: HOUR })
  const draft = draftGrant({
    type: 'scoped',
    from: party('a', agent),
    to: party('b', node),
    audience: [node.did],
    scope: ['notes'],
    level: 'inform',
    now: NOW,
    ttlMs: 10 * HOUR,
    parent,
  })
  expect(draft.delegation).toMatchObject({
    parent: grantHash(parent),
    not_before: NOW + 5,
    expires_at: parent.delegation.expires_at,
    max_depth: 0,
  })
  expect(leaseOf(parent)).toBeNull()
})
