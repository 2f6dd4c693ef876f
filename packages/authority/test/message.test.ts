import { describe, expect, test } from 'vitest'
import { EXTENSIONS, type JsonRpcRequest } from '@csb/core'
import { attachAuthority, authorityCopies, payloadDigest } from '@csb/authority'
import { HOUR, NOW, ownerGrant, stranger } from './cast.ts'
import { BODY, sign } from './speech.ts'

describe('DEL-002 authority in a message', () => {
  test('A2A-031, DEL-002.2.2 carries the members of the document', () => {
    const authority = sign([ownerGrant()])
    expect(authority).toMatchObject({
      delegated_by: 'Ada',
      scope: ['csb-protocol'],
      level: 'request',
      issued_at: NOW,
      expires_at: NOW + 300_000,
    })
    expect(authority.delegation_id).toMatch(/^del_/)
  })

  test('DEL-002.2.1 is found in all three places, and none of them changes the digest', () => {
    const authority = sign([ownerGrant()])
    const { message } = BODY.params as { message: object }
    const bodies: JsonRpcRequest[] = [
      attachAuthority(BODY, authority),
      { ...BODY, params: { ...BODY.params, authority } },
      { ...BODY, params: { ...BODY.params, metadata: { [EXTENSIONS.authority]: authority } } },
      { ...BODY, params: { authority, message: { ...message, metadata: { [EXTENSIONS.authority]: authority } } } },
    ]
    for (const body of bodies) {
      expect(payloadDigest(body)).toBe(payloadDigest(BODY))
      expect(authorityCopies(body)[0]).toEqual(authority)
    }
    const other = { ...BODY, params: { ...BODY.params, metadata: { trace: 1, [EXTENSIONS.authority]: authority } } }
    expect(payloadDigest(other)).not.toBe(payloadDigest(BODY))
  })

  test('the method is bound as it was spelled: tasks/send is another message than SendMessage', () => {
    expect(payloadDigest({ ...BODY, method: 'tasks/send' })).not.toBe(payloadDigest(BODY))
  })

  test('is signed only by the holder of the grant', () => {
    expect(() => sign([ownerGrant()], {}, stranger)).toThrow(expect.objectContaining({ code: 'GRANT_INVALID' }))
  })

  test('does not outlive the grant', () => {
    expect(sign([ownerGrant()], { ttlMs: 10 * HOUR }).expires_at).toBe(NOW + HOUR)
  })
})
