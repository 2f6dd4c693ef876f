/**
 * A proof for somebody who has no node: one entry's header, its way to the root, and the checkpoint with its
 * cosignatures, in one file of the C2SP tlog-proof form. The file's extra line is the leaf's own bytes: the hash of the
 * entry before, the commitment, the header's words. What the entry said, its payload, is not in it.
 * @clause L1.6
 */
import { LIMITS, fail, toHex, type KeyPair } from '@csb/core'
import type { View } from '@csb/store'
import { readCheckpoint, type SignedCheckpoint } from './checkpoint.ts'
import { signedHead, witnessState } from './checkpoints.ts'
import { leafHash, rootFromInclusion } from './merkle.ts'
import { recordAt } from './record.ts'
import { headerBytes, readHeader, type RecordHeader } from './record-row.ts'
import { proveInclusion } from './record-check.ts'

export type ProvedRecord = {
  readonly header: RecordHeader
  /** leaf hash, hex */
  readonly leaf: string
  readonly checkpoint: SignedCheckpoint
}

const FIRST_LINE = 'c2sp.org/tlog-proof@v1'
const EXTRA = /^extra ([A-Za-z0-9+/]+={0,2})$/
const INDEX = /^index (0|[1-9][0-9]{0,15})$/
const HASH = /^[A-Za-z0-9+/]{43}=$/

/**
 * Write the proof that entry `seq` is in the record, under the checkpoint that most vouch for: the newest settled
 * one that covers it, else the newest that was made, else one signed now.
 * @throws NOT_FOUND
 */
export function writeProof(view: View, seq: number, nodeKey: KeyPair): string {
  const bytes = headerBytes(recordAt(view, seq).header)
  const { settled, latest, size } = witnessState(view)
  const note =
    [settled, latest].find((known) => known !== null && known.size > seq)?.note ?? signedHead(view, nodeKey, size)
  const { proof } = proveInclusion(view, seq, readCheckpoint(note).size)
  const hashes = proof.map((hash) => Buffer.from(hash, 'hex').toString('base64'))
  return [FIRST_LINE, `extra ${Buffer.from(bytes).toString('base64')}`, `index ${seq}`, ...hashes, '', note].join('\n')
}

/**
 * Check a proof from itself alone. Whose log it is and who cosigned stands in the answer; whether to believe them is
 * the reader's to say.
 * @throws MALFORMED, TOO_LARGE; GRANT_INVALID with `bad_signature`; RECORD_DAMAGED where the way leads elsewhere
 * @clause L1.6
 */
export function verifyProof(text: string): ProvedRecord {
  if (text.length > LIMITS.noteChars * 2) fail('TOO_LARGE', { maxChars: LIMITS.noteChars * 2 })
  const split = text.indexOf('\n\n')
  const [first, extra = '', index = '', ...hashes] = text.slice(0, Math.max(split, 0)).split('\n')
  if (first !== FIRST_LINE) fail('MALFORMED', { reason: 'not a proof' })
  const [, encoded = ''] = EXTRA.exec(extra) ?? fail('MALFORMED', { reason: 'a proof without its entry' })
  const [, digits = ''] = INDEX.exec(index) ?? fail('MALFORMED', { reason: 'index' })
  if (hashes.length > 63 || !hashes.every((hash) => HASH.test(hash))) fail('MALFORMED', { reason: 'hashes' })
  const seq = Number(digits)
  const checkpoint = readCheckpoint(text.slice(split + 2))
  const bytes = new Uint8Array(bytesIn(encoded) ?? fail('MALFORMED', { reason: 'entry' }))
  const leaf = leafHash(bytes)
  const path = hashes.map(hashIn)
  const root = rootFromInclusion(seq, checkpoint.size, leaf, path)
  if (root === undefined || toHex(root) !== checkpoint.root) fail('RECORD_DAMAGED', { seq, reason: 'inclusion' })
  return { header: readHeader(bytes, seq), leaf: toHex(leaf), checkpoint }
}

/** Only in its one spelling: bits that are left over would let the same bytes be written in several ways. */
function bytesIn(encoded: string): Uint8Array | undefined {
  const bytes = Buffer.from(encoded, 'base64')
  return bytes.toString('base64') === encoded ? bytes : undefined
}

/** @throws MALFORMED */
const hashIn = (encoded: string): Uint8Array => bytesIn(encoded) ?? fail('MALFORMED', { reason: 'hashes' })
