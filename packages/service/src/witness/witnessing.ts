/**
 * Letting others vouch for this node's record: checkpoints are made when the record grew and shown to peers, who
 * cosign them. What a peer answers may show that this node lost entries or that they were changed: then nothing is
 * written any more until the owner says so, and reads go on.
 *
 * Asked are peers that are trusted, hold a grant kept here, or share a home: strangers learn nothing of the record.
 * @clause L1.6
 */
import { LIMITS, delay, fail, isNodeError, toNodeError, validate } from '@csb/core'
import {
  addCheckpointBody,
  addCosignatures,
  chainsOfHolder,
  cosignedBy,
  holdRecord,
  listWitnessed,
  logNumber,
  makeCheckpoint,
  proveConsistency,
  readCheckpoint,
  recordSize,
  rootAt,
  signedHead,
  trusted,
  witnessState,
  type Held,
  type SignedCheckpoint,
} from '@csb/authority'
import { prefix, tail, type View } from '@csb/store'
import { compareWith } from './comparing.ts'
import type { Parts } from '../operation.ts'
import type { MessagePort } from '../peers.ts'
import { nodeChain } from '../runs/lease.ts'
import type { Service } from '../service.ts'

/** Cosignatures that settle a checkpoint, where config.json does not say. */
const QUORUM = 1
/** Peers that are asked for one checkpoint. */
const MOST_WITNESSES = 16
/** How often it is looked whether somebody came, or a checkpoint is due. */
const TICK_MS = 5_000
/** A peer that will not stand witness is not asked again for as long. */
const REFUSED_MS = 60 * 60_000
/** A 409 is answered by a proof from the size it names; between two the record may have grown. */
const TURNS = 4

/** What nobody may take back without a witness: a checkpoint follows at once. */
const WEIGHTY: ReadonlySet<string> = new Set([
  'gate.approve',
  'gate.reject',
  'files.merge',
  'git.push',
  'authority.accept',
  'authority.attenuate',
  'authority.declared',
  'authority.distribute',
  'authority.end',
  'authority.pass',
  'authority.receive',
  'authority.revoke',
  'authority.trust',
  'authority.untrust',
  'handoff.offer',
  'keys.state',
  'record.resume',
])

type Answer = { readonly status: number; readonly body: string; readonly checkpoint?: string }

/**
 * Meet those who cosigned before, for a short time, then go on in the background until `signal` fires.
 * @returns the work in the background
 */
export async function startWitnessing(
  parts: Parts,
  service: Pick<Service, 'watch'>,
  signal: AbortSignal,
): Promise<{ readonly running: Promise<unknown> }> {
  const rounds = createRounds(parts, signal)
  const before: string[] = []
  for await (const [fullKey] of parts.store.view().range({ prefix: prefix('cosigner') })) {
    before.push(tail(fullKey, 'cosigner'))
  }
  const meeting = rounds.ask(before)
  const timeout = new AbortController()
  await Promise.race([meeting, delay(LIMITS.witnessStartMs, timeout.signal).catch(() => undefined)])
  timeout.abort()
  return { running: Promise.all([meeting, goOn(parts, service, signal, rounds)]) }
}

/**
 * Show a peer the record as it stands, and keep what it answers.
 * @returns true where it cosigned; false where nothing is there to be cosigned, or the record is held now
 * @throws DENIED where the peer will not stand witness; PEER_UNREACHABLE, PEER_MISBEHAVED, TIMEOUT
 */
export async function askWitness(parts: Parts, did: string, signal: AbortSignal): Promise<boolean> {
  const shown = await checkpointNow(parts)
  if (shown === undefined) return false
  const port = await parts.peers.session(did, 'witness', { chain: nodeChain(parts.store.view()) }, { signal })
  try {
    const cosigned = await talk(parts, did, port, shown)
    await port.close()
    return cosigned
  } catch (error) {
    port.abort(error as Error)
    throw error
  }
}

const checkpointNow = ({ store, key, clock }: Parts): Promise<SignedCheckpoint | undefined> =>
  store.transact((tx) => makeCheckpoint(tx, key, clock.now()))

/** Look for due checkpoints and for peers that came, until the node stops. */
async function goOn(parts: Parts, service: Pick<Service, 'watch'>, signal: AbortSignal, rounds: Rounds): Promise<void> {
  const intervalMs = parts.config.witness?.interval_ms ?? LIMITS.checkpointMs
  let wake = Promise.withResolvers<void>()
  let dueAt = parts.clock.now() + intervalMs
  // the first contact after a start is when lost entries are noticed: not a moment later
  const unheed = parts.peers.onConnect(() => wake.resolve())
  const leave = service.watch(({ operation, outcome }) => {
    if (outcome !== 'done' || !WEIGHTY.has(operation)) return
    dueAt = 0
    wake.resolve()
  })
  while (!signal.aborted) {
    await Promise.race([delay(Math.min(TICK_MS, intervalMs), signal).catch(() => undefined), wake.promise])
    wake = Promise.withResolvers<void>()
    if (signal.aborted) break
    try {
      if (parts.clock.now() >= dueAt) {
        dueAt = parts.clock.now() + intervalMs
        await checkpointNow(parts)
      }
      await rounds.due()
    } catch (error) {
      parts.log('warn', 'checkpoint failed', { code: toNodeError(error).code })
    }
  }
  unheed()
  leave()
}

type Rounds = {
  /** Never rejects: who can not be reached, or will not, is asked again later. */
  ask(dids: readonly string[]): Promise<void>
  /** Ask every peer that is there and has not seen the newest checkpoint; one that came is met at once. */
  due(): Promise<void>
}

function createRounds(parts: Parts, signal: AbortSignal): Rounds {
  /** peers that were asked since they are there: the size they know, and when to try again where it failed */
  const met = new Map<string, { readonly size: number; readonly againAt: number }>()

  const askOne = async (did: string): Promise<void> => {
    try {
      await askWitness(parts, did, signal)
      met.set(did, { size: cosignedBy(parts.store.view(), did)?.size ?? 0, againAt: 0 })
    } catch (error) {
      const { code, row } = toNodeError(error)
      const waitMs = row.retryable ? (parts.config.witness?.interval_ms ?? LIMITS.checkpointMs) : REFUSED_MS
      met.set(did, { size: 0, againAt: parts.clock.now() + waitMs })
      parts.log('info', 'a peer did not cosign', { did, code })
    }
  }
  const askAll = async (dids: readonly string[]): Promise<void> => {
    await Promise.all(dids.map(askOne))
  }
  /** what was known of others' logs when a peer was last compared with */
  const compared = new Map<string, string>()
  const compareAll = async (dids: readonly string[]): Promise<void> => {
    const logs = await listWitnessed(parts.store.view())
    const known = logs.map(({ origin, size }) => `${origin} ${size}`).join('\n')
    for (const did of compared.keys()) if (!dids.includes(did)) compared.delete(did)
    const due = logs.length === 0 ? [] : dids.filter((did) => compared.get(did) !== known)
    await Promise.all(
      due.map(async (did) => {
        compared.set(did, known)
        await compareWith(parts, did, signal).catch((error: unknown) =>
          parts.log('info', 'a peer did not compare', { did, code: toNodeError(error).code }),
        )
      }),
    )
  }
  return {
    ask: askAll,
    due: async () => {
      const view = parts.store.view()
      const there = await witnessesThere(parts, view)
      for (const did of met.keys()) if (!there.includes(did)) met.delete(did)
      await askAll(there.filter((did) => isDue(parts, view, met.get(did))))
      await compareAll(there)
    },
  }
}

/** A checkpoint that was made since is news; entries alone are not, or two nodes would keep each other busy. */
function isDue(
  { clock }: Parts,
  view: View,
  known: { readonly size: number; readonly againAt: number } | undefined,
): boolean {
  if (known === undefined) return true
  const { latest } = witnessState(view)
  return latest !== null && latest.size !== known.size && clock.now() >= known.againAt
}

async function witnessesThere({ peers, config, key }: Parts, view: View): Promise<readonly string[]> {
  const chosen = config.witness?.peers
  const connected = (await peers.list()).filter((peer) => peer.connected && peer.did !== key.did)
  const found: string[] = []
  for (const { did } of connected) {
    const isOne = chosen === undefined ? await isAcquainted(view, did) : chosen.includes(did)
    if (isOne) found.push(did)
  }
  return found.slice(0, MOST_WITNESSES)
}

async function isAcquainted(view: View, did: string): Promise<boolean> {
  if (trusted(view, did) !== undefined || chainsOfHolder(view, did).length > 0) return true
  for await (const _ of view.range({ prefix: prefix('syncPeer', did), limit: 1 })) return true
  return false
}

async function talk(parts: Parts, did: string, port: MessagePort, first: SignedCheckpoint): Promise<boolean> {
  const { store, config, log } = parts
  const known = cosignedBy(store.view(), did)
  let old = known?.number === first.log.number ? Math.min(known.size, first.size) : 0
  let shown = first
  for (let turn = 0; turn < TURNS; turn++) {
    const answer = await ask(store.view(), port, old, shown)
    if (answer.status === 200) {
      const quorum = config.witness?.quorum ?? QUORUM
      await store.transact((tx) => addCosignatures(tx, shown, answer.body, did, quorum))
      return true
    }
    if (answer.status !== 409 && answer.status !== 422) fail('DENIED', { did, status: answer.status })
    const theirs =
      answer.checkpoint === undefined || answer.checkpoint === '' ? undefined : readOwn(parts, answer.checkpoint)
    const held = theirs === undefined ? undefined : contradictionIn(parts, theirs, did)
    if (held !== undefined) {
      await store.transact((tx) => holdRecord(tx, held))
      log('error', 'the record is held: a witness knows more of it', { reason: held.reason, witness: did })
      if (held.reason === 'differs' && theirs !== undefined) await ownUp(parts, port, theirs.size)
      return false
    }
    old = theirs?.size ?? 0
    shown = (await checkpointNow(parts)) ?? shown
  }
  return fail('PEER_MISBEHAVED', { did, reason: 'no size is right for that witness' })
}

async function ask(view: View, port: MessagePort, old: number, { size, note }: SignedCheckpoint): Promise<Answer> {
  const { proof } = proveConsistency(view, old, size)
  await port.send({ add_checkpoint: addCheckpointBody({ old, proof, checkpoint: note }) })
  const answer = validate('WitnessMessage', await port.receive(), 'PEER_MISBEHAVED')
  return 'status' in answer ? answer : fail('PEER_MISBEHAVED', { reason: 'no answer of a witness' })
}

/** Say openly what this record has for the size in question: two signatures for one size leave no doubt. */
async function ownUp({ store, key }: Parts, port: MessagePort, size: number): Promise<void> {
  const note = signedHead(store.view(), key, size)
  await port.send({ add_checkpoint: addCheckpointBody({ old: size, proof: [], checkpoint: note }) })
  await port.receive()
}

/** A witness can only show what this node itself has signed. @throws PEER_MISBEHAVED */
function readOwn({ key }: Parts, text: string): SignedCheckpoint {
  try {
    const checkpoint = readCheckpoint(text)
    if (checkpoint.log.did === key.did) return checkpoint
  } catch (error) {
    if (!isNodeError(error)) throw error
  }
  return fail('PEER_MISBEHAVED', { reason: 'a checkpoint that is not of this node' })
}

/** Undefined where this record bears out what was signed. */
function contradictionIn({ store, clock }: Parts, theirs: SignedCheckpoint, witness: string): Held | undefined {
  const view = store.view()
  const size = recordSize(view)
  const held = (reason: Held['reason']): Held => ({ reason, checkpoint: theirs.note, witness, size, at: clock.now() })
  if (theirs.log.number > logNumber(view)) return held('resumed-elsewhere')
  if (theirs.log.number < logNumber(view)) return fail('PEER_MISBEHAVED', { reason: 'an older log' })
  if (theirs.size > size) return held('shorter')
  return rootAt(view, theirs.size) === theirs.root ? undefined : held('differs')
}
