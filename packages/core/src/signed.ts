/**
 * One way to sign a JSON document: Ed25519 over a domain line and the RFC 8785 bytes.
 *
 * The signature stands in the document as `ed25519:<base64url>`; what is signed, and hashed, never
 * includes it, so a re-spelled signature can not change a document's hash.
 */
import { canonicalize } from './canonical.ts'
import { digestOf, fromBase64Url, toBase64Url } from './digest.ts'
import { verifySignature, type KeyPair } from './keys.ts'

/** The kinds of signed document. A signature for one is worthless for another. */
export const DOMAINS = {
  grant: 'CSB-DELEGATION-V1',
  authority: 'CSB-AUTHORITY-V1',
  revocation: 'CSB-REVOCATION-V1',
  status: 'CSB-STATUS-V1',
  gate: 'CSB-GATE-V1',
  keychange: 'CSB-KEYCHANGE-V1',
  recovery: 'CSB-RECOVERY-V1',
  handoff: 'CSB-HANDOFF-V1',
  handoffResult: 'CSB-HANDOFF-RESULT-V1',
  agentRecord: 'CSB-AGENT-RECORD-V1',
  tombstone: 'CSB-TOMBSTONE-V1',
  checkpoint: 'CSB-CHECKPOINT-V1',
  evidence: 'CSB-EVIDENCE-V1',
} as const

export type Domain = keyof typeof DOMAINS

/** What is signed and hashed: the domain line and the canonical text of a document without its signature member. */
export const documentBytes = (domain: Domain, body: unknown): Uint8Array =>
  Buffer.from(`${DOMAINS[domain]}\n${canonicalize(body)}`)

/** @returns `ed25519:` and 86 base64url characters */
export function signDocument(domain: Domain, body: unknown, key: KeyPair): string {
  return `ed25519:${toBase64Url(key.sign(documentBytes(domain, body)))}`
}

/**
 * @param body the document without its signature member
 * @param signature `ed25519:<base64url>`; any other form, the document's example `sha256:` among them, is false
 * @param did the signer
 */
export function verifyDocument(domain: Domain, body: unknown, signature: unknown, did: string): boolean {
  return verifyDocumentBytes(documentBytes(domain, body), signature, did)
}

/** The same for bytes that were made before, see {@link documentBytes}. */
export function verifyDocumentBytes(signed: Uint8Array, signature: unknown, did: string): boolean {
  if (typeof signature !== 'string' || !signature.startsWith('ed25519:')) return false
  const bytes = fromBase64Url(signature.slice('ed25519:'.length))
  return bytes !== undefined && verifySignature(did, signed, bytes)
}

/** `sha256:<hex>` over the same bytes that are signed. */
export const documentHash = (domain: Domain, body: unknown): string => digestOf(documentBytes(domain, body))
