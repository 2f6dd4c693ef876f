/**
 * Comparing with other witnesses what the logs of third nodes showed them. Where one of two checkpoints is larger, the
 * log itself is asked for the proof that it follows: an honest one always can.
 * @clause L1.6
 */
import { isNodeError, validate } from '@csb/core'
import {
  appendRecord,
  comparable,
  compareNote,
  keepUnproved,
  notesOf,
  proveConsistency,
  logNumber,
  recordSize,
  verifyConsistency,
  type Contradiction,
  type Gap,
} from '@csb/authority'
import type { Parts } from '../operation.ts'
import type { MessagePort } from '../peers.ts'
import { nodeChain } from '../runs/lease.ts'

/**
 * Ask a peer what it knows of the logs that this node stands witness for, and judge it.
 * @returns what contradicts and was not known yet; it is kept, and in the record
 * @throws DENIED, PEER_UNREACHABLE, PEER_MISBEHAVED, TIMEOUT
 */
export async function compareWith(parts: Parts, did: string, signal: AbortSignal): Promise<readonly Contradiction[]> {
  const { store } = parts
  const logs = await comparable(store.view())
  if (logs.length === 0) return []
  const answer = await asking(parts, did, signal, { compare: logs })
  const notes = 'known' in answer ? answer.known : []
  const found: Contradiction[] = []
  for (const note of notes) {
    const one = await judge(parts, note, signal)
    if (one === null) continue
    found.push(one)
    await tellFound(parts, one, did)
  }
  return found
}

/** What a witness or a log answers another witness: what it knows of the same logs, or a proof of its own record. */
export async function answerWitness(
  { store }: Pick<Parts, 'store'>,
  asked: { readonly compare: readonly string[] } | { readonly prove: { readonly from: number; readonly to: number } },
) {
  const view = store.view()
  if ('compare' in asked) return { known: await notesOf(view, asked.compare) }
  const { from, to } = asked.prove
  const number = logNumber(view)
  const isThere = from <= to && to <= recordSize(view)
  return { number, proof: isThere ? proveConsistency(view, from, to).proof : null }
}

async function judge(parts: Parts, note: string, signal: AbortSignal): Promise<Contradiction | null> {
  const { store, clock } = parts
  const { found, gap } = await store.transact((tx) => compareNote(tx, note, clock.now()))
  if (gap === null || (await isProved(parts, gap, signal))) return found
  return store.transact((tx) => keepUnproved(tx, gap, clock.now()))
}

/** True as well where the log can not be asked: nothing is held against it then. One that will not answer has no proof. */
async function isProved(parts: Parts, { known, first, second }: Gap, signal: AbortSignal): Promise<boolean> {
  try {
    const prove = { from: first.size, to: second.size }
    const answer = await asking(parts, known.did, signal, { prove })
    // a log with another number lost entries and said so
    if (!('proof' in answer) || answer.number !== known.number) return true
    const { proof } = answer
    const roots = { fromRoot: first.root, toRoot: second.root }
    return proof !== null && verifyConsistency({ ...prove, ...roots, proof })
  } catch (error) {
    if (isNodeError(error)) return error.code !== 'DENIED'
    throw error
  }
}

async function asking(parts: Parts, did: string, signal: AbortSignal, message: object) {
  const port: MessagePort = await parts.peers.session(
    did,
    'witness',
    { chain: nodeChain(parts.store.view()) },
    { signal },
  )
  try {
    await port.send(message)
    const answer = validate('WitnessMessage', await port.receive(), 'PEER_MISBEHAVED')
    await port.close()
    return answer
  } catch (error) {
    port.abort(error as Error)
    throw error
  }
}

async function tellFound(parts: Parts, { origin, kind }: Contradiction, witness: string): Promise<void> {
  const { store, clock, key, log } = parts
  log('error', 'a log contradicts itself', { origin, kind, witness })
  const told = { operation: 'witness.compare', outcome: 'done', actor: key.did, door: 'timer', run: null } as const
  const effect = { contradiction: kind, origin, witness }
  await store
    .transact((tx) => appendRecord(tx, { ...told, lease: null, reads: [], effect }, clock.now()))
    .catch((error: unknown) => {
      // one whose own record is held still stands witness
      if (!isNodeError(error, 'RECORD_HELD')) throw error
    })
}
