/** Attacks 1 to 5 and 18: documents that were changed, turned, or signed by something that signs nothing. */
import { describe, expect, test } from 'vitest'
import {
  DOMAINS,
  canonicalize,
  didFromPublicKey,
  digestOf,
  fromBase64Url,
  fromHex,
  isNodeError,
  parseStrict,
  publicKeyFromDid,
  signDocument,
  toBase64Url,
  utf8,
  type Authority,
  type Domain,
  type Grant,
  type KeyPair,
} from '@csb/core'
import { prefix, type Store } from '@csb/store'
import {
  attachAuthority,
  grantHash,
  isRevoked,
  revoke,
  signRevocation,
  signStatus,
  takeStatus,
  trust,
  verifyAuthority,
  verifyChain,
  type Outcome,
} from '@csb/authority'
import {
  NOW,
  agent,
  helper,
  node,
  owner,
  ownerGrant,
  refusal,
  stranger,
  testStore,
  thrownBy,
  wideLease,
} from '../../packages/authority/test/cast.ts'
import { BODY, listening, sign } from '../../packages/authority/test/speech.ts'
import { areMissing, readVector } from '../../packages/core/test/vectors.ts'

/** The points of small order in their canonical spelling: under each, R = identity and S = 0 signs some messages. */
const WEAK = [
  '0100000000000000000000000000000000000000000000000000000000000000',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0000000000000000000000000000000000000000000000000000000000000080',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
].map((hex) => didFromPublicKey(fromHex(hex) ?? new Uint8Array()))
const EMPTY_SIGNATURE = `ed25519:${toBase64Url(Uint8Array.of(1, ...new Uint8Array(63)))}`

const verify = (...chain: unknown[]) =>
  verifyChain({ chain, now: NOW, isRevoked: () => false, trustedRoot: () => ({ ceiling: 'override' }) })
const judge = (store: Store, authority: unknown): Promise<Outcome> =>
  store.transact((tx) =>
    verifyAuthority(tx, { body: attachAuthority(BODY, authority as Authority), self: node.did, now: NOW }),
  )
const withSignature = (grant: Grant, signature: string): Grant => ({
  ...grant,
  delegation: { ...grant.delegation, signature },
})

/** Every text that differs from `text` in one byte, in its lowest bit. */
function* flipped(text: string): Generator<readonly [number, string]> {
  const bytes = utf8(text)
  for (let at = 0; at < bytes.byteLength; at++) {
    const spoiled = Buffer.from(bytes)
    spoiled[at] = (spoiled[at] ?? 0) ^ 1
    yield [at, spoiled.toString('utf8')]
  }
}

/** What a reader makes of a text, or undefined where it is refused before anything is looked at. */
function readOf(text: string): unknown {
  try {
    return parseStrict(text)
  } catch (error) {
    if (isNodeError(error)) return undefined
    throw error
  }
}

describe('attack 1: a bit is flipped', () => {
  test('attack 1: a message that shows a grant with any byte changed is an ordinary one', async () => {
    const store = await listening()
    const grant = ownerGrant({ lease: wideLease() })
    expect(await judge(store, sign([grant]))).toMatchObject({ kind: 'accepted' })
    const good = sign([grant])
    let judged = 0
    for (const [at, text] of flipped(canonicalize(grant))) {
      const spoiled = readOf(text)
      if (spoiled === undefined) continue
      judged++
      expect(await judge(store, { ...good, chain: [spoiled] }), `byte ${at}`).toMatchObject({ kind: 'downgraded' })
    }
    expect(judged).toBeGreaterThan(500)
    expect(await judge(store, good)).toMatchObject({ kind: 'accepted' })
  })

  test('attack 1: so is one whose authority has any byte changed', async () => {
    const store = await listening()
    const good = sign([ownerGrant()])
    const { chain, ...own } = good
    let judged = 0
    for (const [at, text] of flipped(canonicalize(own))) {
      const spoiled = readOf(text)
      if (spoiled === undefined) continue
      judged++
      const outcome = await judge(store, { ...(spoiled as object), chain })
      expect(outcome, `byte ${at}`).toMatchObject({ kind: 'downgraded' })
    }
    expect(judged).toBeGreaterThan(300)
    expect(await judge(store, good)).toMatchObject({ kind: 'accepted' })
  })
})

describe('attack 2: something else in the place of a signature', () => {
  const good = ownerGrant()
  const digits = good.delegation.signature.slice('ed25519:'.length)

  test.each([
    ['a digest', digestOf(canonicalize(good))],
    ["the document's own example", 'sha256:xxx...'],
    ['nothing', ''],
    ['no algorithm', digits],
    ['alg none', `none:${digits}`],
    ['alg HS256', `hs256:${digits}`],
    ['alg ES256', `es256:${digits}`],
    ['another spelling of the algorithm', `Ed25519:${digits}`],
    ['a hash before it', `ed25519ph:${digits}`],
  ])('attack 2: %s is bad_signature, on a grant and on a message', async (_, signature) => {
    expect(thrownBy(() => verify(withSignature(good, signature)))).toMatchObject(refusal('bad_signature'))
    const store = await listening()
    const outcome = await judge(store, { ...sign([good]), signature })
    expect(outcome).toMatchObject({ kind: 'downgraded', reason: 'bad_signature' })
  })

  test('attack 2: no member chooses an algorithm', () => {
    for (const member of ['alg', 'algorithm', 'cryptosuite', 'jwk', 'public_key'])
      expect(
        thrownBy(() => verify({ ...good, delegation: { ...good.delegation, [member]: 'none' } })),
        member,
      ).toMatchObject({ code: 'GRANT_INVALID', details: { reason: 'malformed' } })
  })
})

describe('attack 3: a key under which anything is signed', () => {
  test.each(WEAK)(
    'attack 3: %s is weak_key on a grant, a message, a revocation and a word on revocation',
    async (did) => {
      const { delegation } = ownerGrant()
      const grant = { delegation: { ...delegation, grantor_key: did, signature: EMPTY_SIGNATURE } }
      expect(thrownBy(() => verify(grant))).toMatchObject(refusal('weak_key', { link: 0 }))

      const store = await listening()
      await store.transact((tx) => trust(tx, { did, name: 'Eve', ceiling: 'override' }))
      const good = sign([ownerGrant()])
      expect(await judge(store, { ...good, holder: did, signature: EMPTY_SIGNATURE })).toMatchObject({
        kind: 'downgraded',
        reason: 'weak_key',
      })
      const { revocation } = signRevocation({ target: digestOf('x'), now: NOW }, owner)
      const ended = { revocation: { ...revocation, by: did, signature: EMPTY_SIGNATURE } }
      await expect(store.transact((tx) => revoke(tx, ended, NOW))).rejects.toMatchObject(refusal('weak_key'))
      const { status } = signStatus({ seq: 0, revoked: [], now: NOW }, owner)
      const word = { status: { ...status, issuer: did, signature: EMPTY_SIGNATURE } }
      await expect(store.transact((tx) => takeStatus(tx, word, NOW))).rejects.toMatchObject(refusal('weak_key'))
    },
  )

  const noSpeccheck = areMissing('ed25519-speccheck.json')
  test.skipIf(noSpeccheck)('attack 3: no key of small order from the public cases may sign a grant', () => {
    const cases = JSON.parse(readVector('ed25519-speccheck.json')) as { pub_key: string }[]
    const refused = cases.filter(({ pub_key }) => {
      const did = didFromPublicKey(fromHex(pub_key) ?? new Uint8Array())
      const { delegation } = ownerGrant()
      const grant = { delegation: { ...delegation, grantor_key: did, signature: EMPTY_SIGNATURE } }
      return (thrownBy(() => verify(grant)) as { details: { reason: string } }).details.reason === 'weak_key'
    })
    // cases 0 and 1 are the two on a key of small order, 10 and 11 its other spellings
    expect(refused.map((one) => cases.indexOf(one))).toEqual([0, 1, 10, 11])
  })
})

describe('attack 4: a key is put in the place of another', () => {
  const grant = ownerGrant()

  test.each([
    ['grantor_key', stranger.did],
    ['grantee_key', stranger.did],
    ['grantor', 'Mallory'],
    ['grantee', 'Mallory'],
  ])('attack 4: %s', (member, value) => {
    const turned = { delegation: { ...grant.delegation, [member]: value } }
    expect(thrownBy(() => verify(turned))).toMatchObject(refusal('bad_signature'))
  })

  test('attack 4: another key that would have made the same signature does not exist for us', () => {
    // whoever signs the same bytes anew is another grantor, and the bytes name the grantor
    const turned = { ...grant.delegation, grantor_key: stranger.did }
    const { signature: _, ...body } = turned
    const own = { delegation: { ...body, signature: signDocument('grant', { delegation: body }, stranger) } }
    expect(verify(own).rootDid).toBe(stranger.did)
    expect(grantHash(own)).not.toBe(grantHash(grant))
  })

  test('attack 4: a message under a grant of somebody else is holder_mismatch, with its holder turned bad_signature', async () => {
    const store = await listening()
    const good = sign([grant])
    const { signature: _, chain, ...body } = { ...good, holder: helper.did }
    const own = { ...body, chain, signature: signDocument('authority', body, helper) }
    expect(await judge(store, own)).toMatchObject({ kind: 'downgraded', reason: 'holder_mismatch' })
    expect(await judge(store, { ...good, holder: helper.did })).toMatchObject({ reason: 'bad_signature' })
  })
})

describe('attack 5: a signature that was made for something else', () => {
  const kinds = Object.keys(DOMAINS) as Domain[]

  /** The same document, signed under another kind. */
  function grantUnder(kind: Domain): Grant {
    const { signature: _, ...delegation } = ownerGrant().delegation
    return { delegation: { ...delegation, signature: signDocument(kind, { delegation }, owner) } }
  }

  test('attack 5: a grant, a message, a revocation and a word hold under their own kind and under no other', async () => {
    const store = await listening()
    const good = sign([ownerGrant()])
    const { signature: _, chain, ...spoken } = good
    const { signature: _r, ...ended } = signRevocation({ target: digestOf('x'), now: NOW }, owner).revocation
    const { signature: _s, ...said } = signStatus({ seq: 0, revoked: [], now: NOW }, owner).status
    for (const kind of kinds) {
      const wrong = { details: { reason: 'bad_signature' } }
      if (kind !== 'grant')
        expect(
          thrownBy(() => verify(grantUnder(kind))),
          kind,
        ).toMatchObject(wrong)
      if (kind !== 'authority')
        expect(
          await judge(store, { ...spoken, chain, signature: signDocument(kind, spoken, agent) }),
          kind,
        ).toMatchObject({ kind: 'downgraded', reason: 'bad_signature' })
      const revocation = { ...ended, signature: signDocument(kind, { revocation: ended }, owner) }
      const status = { ...said, signature: signDocument(kind, { status: said }, owner) }
      if (kind !== 'revocation')
        await expect(
          store.transact((tx) => revoke(tx, { revocation }, NOW)),
          kind,
        ).rejects.toMatchObject(wrong)
      if (kind !== 'status')
        await expect(
          store.transact((tx) => takeStatus(tx, { status }, NOW)),
          kind,
        ).rejects.toMatchObject(wrong)
    }
    expect(verify(grantUnder('grant')).leaf.delegation.level).toBe('execute')
    for (const table of ['revoked', 'status'] as const)
      for await (const [fullKey] of store.view().range({ prefix: prefix(table) })) expect(fullKey).toBe('nothing kept')
  })

  test('attack 5: what a key signs to open a connection is a signature of no document', () => {
    // libp2p: the same Ed25519 key signs the static key of every Noise handshake
    const handshake = (key: KeyPair, staticKey: Uint8Array) =>
      `ed25519:${toBase64Url(key.sign(Buffer.concat([utf8('noise-libp2p-static-key:'), staticKey])))}`
    const grant = ownerGrant()
    const { signature: _, ...delegation } = grant.delegation
    // the most a peer can choose: bytes of the document as its own static key
    for (const bytes of [
      publicKeyFromDid(stranger.did) ?? new Uint8Array(),
      utf8(canonicalize({ delegation })),
      utf8(`${DOMAINS.grant}\n${canonicalize({ delegation })}`),
    ])
      expect(thrownBy(() => verify(withSignature(grant, handshake(owner, bytes))))).toMatchObject(
        refusal('bad_signature'),
      )
  })

  test('attack 5: no kind is the beginning of another, nor of what libp2p signs', () => {
    const lines = [...Object.values(DOMAINS).map((domain) => `${domain}\n`), 'noise-libp2p-static-key:', 'libp2p-']
    for (const one of lines)
      for (const other of lines) if (one !== other) expect(one.startsWith(other), `${one} ${other}`).toBe(false)
  })
})

describe('attack 18: a signature is spelled anew', () => {
  /** 2^252 + 27742317777372353535851937790883648493, little end first. */
  const ORDER = fromHex('edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010') ?? new Uint8Array()

  /** S + L: the same point equation, other bytes. */
  function plusOrder(signature: Uint8Array): Uint8Array {
    const out = Uint8Array.from(signature)
    let carry = 0
    for (let at = 0; at < 32; at++) {
      const sum = (out[32 + at] ?? 0) + (ORDER[at] ?? 0) + carry
      out[32 + at] = sum & 255
      carry = sum >> 8
    }
    return out
  }

  const grant = ownerGrant()
  const digits = grant.delegation.signature.slice('ed25519:'.length)
  const bytes = fromBase64Url(digits) ?? new Uint8Array()
  const last = digits.at(-1) ?? ''
  const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

  test.each([
    ['padded', `ed25519:${digits}==`],
    ['in the other alphabet', `ed25519:${Buffer.from(bytes).toString('base64').replaceAll('=', '')}+`],
    ['with white space', `ed25519: ${digits}`],
    ['with a line end', `ed25519:${digits}\n`],
    ['in hex', `ed25519:${Buffer.from(bytes).toString('hex')}`],
    ['with bits behind the last byte', `ed25519:${digits.slice(0, -1)}${ALPHABET[ALPHABET.indexOf(last) + 1] ?? 'B'}`],
    ['in capitals', `ED25519:${digits}`],
    ['with S + L', `ed25519:${toBase64Url(plusOrder(bytes))}`],
  ])('attack 18: %s it is refused, and it is the same grant to a revocation', async (_, signature) => {
    const turned = withSignature(grant, signature)
    expect(verify(grant).leafHash).toBe(grantHash(grant))
    expect(thrownBy(() => verify(turned))).toMatchObject({ code: 'GRANT_INVALID' })
    expect(grantHash(turned)).toBe(grantHash(grant))
    const store = await testStore()
    await store.transact((tx) => revoke(tx, signRevocation({ target: grantHash(grant), now: NOW }, owner), NOW))
    expect(isRevoked(store.view(), grantHash(turned), [owner.did])).toBe(true)
  })

  test('attack 18: signing again makes no other grant', () => {
    const { signature: _, ...delegation } = grant.delegation
    const again = { delegation: { ...delegation, signature: signDocument('grant', { delegation }, owner) } }
    expect(again).toEqual(grant)
  })
})
