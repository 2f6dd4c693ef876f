/**
 * Standing witness for the records of others: one state a log, that only ever grows, and what contradicts it kept.
 *
 * C2SP tlog-witness add-checkpoint: the answer is given after the new state is durable, and both stand in one
 * transaction, so no race and no crash can make a witness cosign two histories.
 * @clause L1.6
 */
import { fail, isNodeError, type KeyPair } from '@csb/core'
import { key, prefix, tail, type Transaction, type View } from '@csb/store'
import { cosign, originOf, readCheckpoint, type SignedCheckpoint } from './checkpoint.ts'
import { verifyConsistency } from './record-check.ts'

/** What a witness knows of a log. */
export type WitnessedLog = {
  readonly origin: string
  readonly did: string
  readonly number: number
  readonly size: number
  /** 64 hex digits */
  readonly root: string
  /** as the log signed it */
  readonly note: string
  /** ms since epoch */
  readonly at: number
  /** the log showed itself shorter since: it lost entries, or somebody took them out */
  readonly shorter: { readonly size: number; readonly note: string; readonly at: number } | null
}

/**
 * Two checkpoints of one log that can not both be true. `same-size` shows that to anybody, by the two notes alone.
 * `no-proof`: the log showed the second after the first and gave no proof that it follows; whoever doubts that asks
 * the log for one.
 */
export type Contradiction = {
  readonly kind: 'same-size' | 'no-proof'
  readonly origin: string
  readonly first: string
  readonly second: string
  /** ms since epoch when it was found */
  readonly at: number
}

/** Status numbers and bodies are those of C2SP; `checkpoint` is the log's own word for what is known here. */
type WitnessAnswer =
  | { readonly status: 200; readonly body: string }
  | { readonly status: 409 | 422; readonly body: string; readonly checkpoint: string }
  | { readonly status: 400 | 403; readonly body: string }

export type Witnessed = {
  readonly answer: WitnessAnswer
  /** where this very checkpoint contradicts what was known, and that was not known yet */
  readonly found: Contradiction | null
}

type Request = { readonly old: number; readonly proof: readonly string[]; readonly checkpoint: string }

const OLD = /^old (0|[1-9][0-9]{0,15})$/
const MOST_HASHES = 63

/** The body of an add-checkpoint request. @param proof hashes in hex */
export const addCheckpointBody = ({ old, proof, checkpoint }: Request): string =>
  [`old ${old}`, ...proof.map((hash) => Buffer.from(hash, 'hex').toString('base64')), '', checkpoint].join('\n')

/**
 * Judge a checkpoint and, where it follows from what is known, make it what is known and cosign it.
 * @param body an add-checkpoint body
 * @param from did that the stream proved: a log speaks for itself only
 * @param now ms since epoch
 * @returns the answer; it may be given when the transaction is durable
 * @clause L1.6
 */
export function addCheckpoint(
  tx: Transaction,
  { body, from, now }: { readonly body: string; readonly from: string; readonly now: number },
  witnessKey: KeyPair,
): Witnessed {
  let request: Request
  let shown: SignedCheckpoint
  try {
    request = parseBody(body)
    shown = readCheckpoint(request.checkpoint)
  } catch (error) {
    if (isNodeError(error, 'GRANT_INVALID')) return refused(403, 'not signed by its log')
    if (isNodeError(error)) return refused(400, 'not an add-checkpoint body')
    throw error
  }
  const { log, size, root, note } = shown
  if (log.did !== from) return refused(403, 'a log speaks for itself only')
  if (request.old > size) return refused(400, 'the old size is above the new one')
  const newest = tx.getJson<number>(key('witnessNewest', from))
  if (newest !== undefined && newest > log.number) return { answer: told(knownLog(tx, from, newest)), found: null }
  const before = tx.getJson<WitnessedLog>(key('witness', from, log.number))
  const judged = before === undefined ? judgeFirst(request) : judge(tx, request, shown, before, now)
  if (judged !== undefined) return judged
  tx.putJson(key('witness', from, log.number), {
    origin: originOf(log),
    ...log,
    size,
    root,
    note,
    at: now,
    shorter: null,
  } satisfies WitnessedLog)
  if (newest !== log.number) tx.putJson(key('witnessNewest', from), log.number)
  return { answer: { status: 200, body: cosign(note, witnessKey, now) }, found: null }
}

/** Do these two notes of one log show that it has signed two histories? @throws MALFORMED, GRANT_INVALID */
export function contradict(first: string, second: string): boolean {
  const [a, b] = [readCheckpoint(first), readCheckpoint(second)]
  return originOf(a.log) === originOf(b.log) && a.size === b.size && a.root !== b.root
}

/** Every log this node stands witness for, by did and number. */
export async function listWitnessed(view: View): Promise<WitnessedLog[]> {
  const logs: WitnessedLog[] = []
  for await (const [fullKey] of view.range({ prefix: prefix('witness') })) {
    const log = view.getJson<WitnessedLog>(fullKey)
    if (log !== undefined) logs.push(log)
  }
  return logs
}

/** Every contradiction this node has found, by did of the log. They are never removed. */
export async function listContradictions(view: View): Promise<Contradiction[]> {
  const found: Contradiction[] = []
  for await (const [fullKey] of view.range({ prefix: prefix('contradiction') })) {
    const one = view.getJson<Contradiction>(key('contradiction', tail(fullKey, 'contradiction')))
    if (one !== undefined) found.push(one)
  }
  return found
}

function judgeFirst({ old, proof }: Request): Witnessed | undefined {
  if (old !== 0) return { answer: { status: 409, body: '0\n', checkpoint: '' }, found: null }
  return proof.length === 0 ? undefined : refused(400, 'a proof from nothing is empty')
}

/** Undefined where it follows from what is known. */
function judge(
  tx: Transaction,
  { old, proof }: Request,
  shown: SignedCheckpoint,
  before: WitnessedLog,
  now: number,
): Witnessed | undefined {
  const answer = told(before)
  if (shown.size === before.size && shown.root !== before.root)
    return { answer, found: keepContradiction(tx, 'same-size', before, shown, now) }
  if (shown.size < before.size) {
    tx.putJson(key('witness', before.did, before.number), {
      ...before,
      shorter: { size: shown.size, note: shown.note, at: now },
    } satisfies WitnessedLog)
  }
  if (old !== before.size) return { answer, found: null }
  const follows = verifyConsistency({ from: old, to: shown.size, fromRoot: before.root, toRoot: shown.root, proof })
  if (follows) return undefined
  return { answer: { ...answer, status: 422 }, found: keepContradiction(tx, 'no-proof', before, shown, now) }
}

/** One of each kind a log: it can not fill the disk with its contradictions. @returns null where there is one */
export function keepContradiction(
  tx: Transaction,
  kind: Contradiction['kind'],
  { did, number, origin, note: first }: WitnessedLog,
  { note: second }: SignedCheckpoint,
  at: number,
): Contradiction | null {
  const place = key('contradiction', did, number, kind)
  if (tx.has(place)) return null
  const found: Contradiction = { kind, origin, first, second, at }
  tx.putJson(place, found)
  return found
}

const refused = (status: 400 | 403, reason: string): Witnessed => ({
  answer: { status, body: `${reason}\n` },
  found: null,
})

/** What is known, in the log's own signed words: no witness can stop a log with a number it made up. */
const told = ({ size, note }: WitnessedLog) => ({ status: 409 as const, body: `${size}\n`, checkpoint: note })

const knownLog = (view: View, did: string, number: number): WitnessedLog =>
  view.getJson<WitnessedLog>(key('witness', did, number)) ?? fail('INTERNAL', { did, number })

/** @throws MALFORMED */
function parseBody(body: string): Request {
  const split = body.indexOf('\n\n')
  const [first = '', ...hashes] = body.slice(0, Math.max(split, 0)).split('\n')
  const [, old = ''] = OLD.exec(first) ?? fail('MALFORMED', { reason: 'old' })
  if (hashes.length > MOST_HASHES) fail('MALFORMED', { reason: 'proof' })
  const proof = hashes.map((encoded) => {
    const hash = Buffer.from(encoded, 'base64')
    if (hash.byteLength !== 32 || hash.toString('base64') !== encoded) fail('MALFORMED', { reason: 'proof' })
    return hash.toString('hex')
  })
  return { old: Number(old), proof, checkpoint: body.slice(split + 2) }
}
