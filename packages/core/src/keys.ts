/**
 * Ed25519 keys and their three names: raw public key, did:key, libp2p peer id. All are the same 32 bytes.
 *
 * node:crypto signs and verifies; @noble/ed25519 is the independent check in tests and at start.
 * @clause A2A-001
 */
import {
  createPrivateKey,
  createPublicKey,
  sign as cryptoSign,
  verify as cryptoVerify,
  type KeyObject,
} from 'node:crypto'
import * as noble from '@noble/ed25519'
import { base58 } from '@scure/base'
import { equalBytes, random, toHex, utf8 } from './digest.ts'
import { fail } from './errors.ts'

/** A key that can sign. The seed is reachable only through {@link exportSeed}. */
export type KeyPair = {
  /** `did:key:z6Mk…` */
  readonly did: string
  /** `12D3KooW…` */
  readonly peerId: string
  /** 32 bytes */
  readonly publicKey: Uint8Array
  /** @returns 64 bytes */
  sign(data: Uint8Array): Uint8Array
}

const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')
const SPKI = Buffer.from('302a300506032b6570032100', 'hex')
const DID_PREFIX = Uint8Array.of(0xed, 0x01)
/** identity multihash of the protobuf form of an Ed25519 public key */
const PEER_PREFIX = Uint8Array.of(0x00, 0x24, 0x08, 0x01, 0x12, 0x20)

const seeds = new WeakMap<KeyPair, Uint8Array>()

/** Reading base58 costs an eighth of a signature check, and the same few keys come again and again. */
const publicKeys = new Map<string, Uint8Array>()
const KEYS_KEPT = 1024

/** @param seed 32-byte RFC 8032 seed; omitted: a new random one */
export function createKeyPair(seed: Uint8Array = random(32)): KeyPair {
  if (seed.byteLength !== 32) fail('INVALID_INPUT', { reason: 'an Ed25519 seed is 32 bytes' })
  const secret = createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: 'der', type: 'pkcs8' })
  const publicKey = new Uint8Array(createPublicKey(secret).export({ format: 'der', type: 'spki' }).subarray(-32))
  const pair: KeyPair = {
    did: didFromPublicKey(publicKey),
    peerId: peerIdFromPublicKey(publicKey),
    publicKey,
    sign: (data) => new Uint8Array(cryptoSign(null, data, secret)),
  }
  seeds.set(pair, Uint8Array.from(seed))
  return pair
}

/** The 32-byte seed of a key made here, for sealing it on disk or handing it to libp2p. */
export function exportSeed(pair: KeyPair): Uint8Array {
  return seeds.get(pair) ?? fail('INTERNAL', { reason: 'the seed of that key is not held here' })
}

/** @param publicKey 32 bytes */
export const didFromPublicKey = (publicKey: Uint8Array): string =>
  `did:key:z${base58.encode(Uint8Array.of(...DID_PREFIX, ...publicKey))}`

/** @param publicKey 32 bytes */
export const peerIdFromPublicKey = (publicKey: Uint8Array): string =>
  base58.encode(Uint8Array.of(...PEER_PREFIX, ...publicKey))

/** @returns 32 bytes, or undefined where it is not an Ed25519 did:key in its one spelling */
export function publicKeyFromDid(did: string): Uint8Array | undefined {
  const known = publicKeys.get(did)
  if (known !== undefined) return known
  const publicKey = did.startsWith('did:key:z') && did.length <= 64 ? payload(did.slice(9), DID_PREFIX) : undefined
  if (publicKey !== undefined) remember(publicKeys, did, publicKey)
  return publicKey
}

/** @returns 32 bytes, or undefined where it is not an Ed25519 peer id */
export function publicKeyFromPeerId(peerId: string): Uint8Array | undefined {
  return peerId.length <= 64 ? payload(peerId, PEER_PREFIX) : undefined
}

/** @throws INVALID_INPUT where it is not an Ed25519 peer id */
export function didFromPeerId(peerId: string): string {
  const key = publicKeyFromPeerId(peerId) ?? fail('INVALID_INPUT', { reason: 'not an Ed25519 peer id', peerId })
  return didFromPublicKey(key)
}

/** @throws INVALID_INPUT where it is not an Ed25519 did:key */
export function peerIdFromDid(did: string): string {
  const key = publicKeyFromDid(did) ?? fail('INVALID_INPUT', { reason: 'not an Ed25519 did:key', did })
  return peerIdFromPublicKey(key)
}

function payload(text: string, prefix: Uint8Array): Uint8Array | undefined {
  let bytes: Uint8Array
  try {
    bytes = base58.decode(text)
  } catch {
    return undefined
  }
  if (bytes.byteLength !== prefix.byteLength + 32) return undefined
  if (!equalBytes(bytes.subarray(0, prefix.byteLength), prefix)) return undefined
  return bytes.subarray(prefix.byteLength)
}

/** The encodings of the points of small order, canonical or not: a signature under such a key proves nothing. */
const WEAK_KEYS = new Set([
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0000000000000000000000000000000000000000000000000000000000000080',
  '0100000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000080',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
])

/** @param publicKey 32 bytes */
export const isWeakKey = (publicKey: Uint8Array): boolean => WEAK_KEYS.has(toHex(publicKey))

const verifiers = new Map<string, KeyObject>()

/**
 * Check a signature. Small-order keys and malleable signatures are refused, so all nodes agree.
 * @param did `did:key:…` of the signer
 * @param signature 64 bytes
 */
export function verifySignature(did: string, data: Uint8Array, signature: Uint8Array): boolean {
  if (signature.byteLength !== 64) return false
  const verifier = verifiers.get(did) ?? verifierOf(did)
  return verifier !== undefined && cryptoVerify(null, data, verifier, signature)
}

function verifierOf(did: string): KeyObject | undefined {
  const publicKey = publicKeyFromDid(did)
  if (publicKey === undefined || isWeakKey(publicKey)) return undefined
  const verifier = createPublicKey({ key: Buffer.concat([SPKI, publicKey]), format: 'der', type: 'spki' })
  remember(verifiers, did, verifier)
  return verifier
}

function remember<T>(kept: Map<string, T>, did: string, value: T): void {
  if (kept.size >= KEYS_KEPT) kept.clear()
  kept.set(did, value)
}

/**
 * Prove at start that signing works, that a wrong byte is caught, that a small-order key is refused,
 * and that an independent implementation agrees.
 * @throws INTERNAL where any of it does not hold: the node must not run
 */
export async function selfTest(): Promise<void> {
  const pair = createKeyPair(utf8('csb self-test seed, 32 bytes....'))
  const message = utf8('csb self-test')
  const signature = pair.sign(message)
  const spoiled = Uint8Array.from(signature)
  spoiled[3] = (spoiled[3] ?? 0) ^ 1
  const weakSignature = new Uint8Array(64)
  weakSignature[0] = 1
  const weakDid = didFromPublicKey(Uint8Array.of(1, ...new Uint8Array(31)))
  const sound =
    verifySignature(pair.did, message, signature) &&
    !verifySignature(pair.did, message, spoiled) &&
    !verifySignature(weakDid, message, weakSignature) &&
    (await noble.verifyAsync(signature, message, pair.publicKey, { zip215: false }))
  if (!sound) fail('INTERNAL', { reason: 'the Ed25519 self-test failed' })
}
