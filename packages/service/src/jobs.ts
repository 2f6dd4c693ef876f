/**
 * What the node does by itself: renew its record, keep pairs in step that have synced before, finish what a crash
 * interrupted. The only timers of the service.
 */
import { delay, isNodeError, toNodeError } from '@csb/core'
import { failInterruptedTasks } from '@csb/agents'
import { appendRecord, heldOf } from '@csb/authority'
import { collectHomes, collectRows } from './collecting.ts'
import { publishRecord, withdrawRecord } from './messages/directory.ts'
import { finishForgetting } from './gate/forgetting.ts'
import type { Parts } from './operation.ts'
import type { SyncRow } from './operations/sync.ts'
import type { Service } from './service.ts'
import { greet, tellEveryone } from './revocation/spreading.ts'
import { startWitnessing } from './witness/witnessing.ts'

/** A record lives 48 hours and is renewed far more often, so that short outages of the network do not matter. */
const RENEW_MS = 30 * 60_000
/** Peers that were not reached when something was revoked are tried again this often, and whenever they come. */
const TELL_MS = 30_000
/** Garbage is collected once a day, and a while after the start, when nobody waits for the node any more. */
const COLLECT_MS = 24 * 60 * 60_000
const FIRST_COLLECT_MS = 10 * 60_000
const NODE = { kind: 'node', door: 'timer' } as const

export type Jobs = { stop(): Promise<void> }

/** Put right what the last stop left behind, then begin. */
export async function startJobs(parts: Parts, service: Service): Promise<Jobs> {
  // what could not be erased now stays planned and is tried again with the next forgetting: no reason not to start
  await finishForgetting(parts.store).catch((error: unknown) =>
    parts.log('error', 'erasures are not finished', { code: toNodeError(error).code }),
  )
  const interrupted = await parts.store.transact((tx) => failInterruptedTasks(tx, parts.clock.now()))
  const stopping = new AbortController()
  const { signal } = stopping
  const heeding = parts.peers.onConnect((did) => {
    if (!signal.aborted) parts.background(greet(parts, did))
  })
  const intervalMs = parts.config.sync?.interval_ms ?? 60_000
  const witnessing = await startWitnessing(parts, service, signal)
  await tellInterrupted(parts, interrupted)
  const running = [
    witnessing.running,
    every(RENEW_MS, signal, () => publishRecord(parts, signal), parts),
    every(intervalMs, signal, () => syncAll(service, signal), parts, intervalMs),
    every(TELL_MS, signal, () => tellEveryone(parts), parts),
    every(COLLECT_MS, signal, () => collectRows(parts, signal), parts, FIRST_COLLECT_MS),
    every(COLLECT_MS, signal, () => collectHomes(parts, service, signal), parts, FIRST_COLLECT_MS),
  ]
  return {
    stop: async () => {
      heeding()
      stopping.abort()
      await Promise.allSettled(running)
      await withdrawRecord(parts).catch(() => undefined)
    },
  }
}

/**
 * Nothing is run twice: what was begun has failed, and the record says so as of any other end of a run. After the
 * witnesses were met, since nothing may be added to a record that lost its end.
 */
async function tellInterrupted({ store, clock, key }: Parts, tasks: readonly string[]): Promise<void> {
  const told = { operation: 'agents.send', outcome: 'failed', code: 'AGENT_FAILED', door: NODE.door } as const
  await store.transact((tx) => {
    if (heldOf(tx) !== undefined) return
    for (const task of tasks) {
      const entry = { ...told, actor: key.did, run: task, lease: null, reads: [], effect: { task, interrupted: true } }
      appendRecord(tx, entry, clock.now())
    }
  })
}

/** Run, wait, run again. A failure is logged and the next turn comes all the same. */
async function every(
  ms: number,
  signal: AbortSignal,
  work: () => Promise<unknown>,
  parts: Parts,
  firstMs = 0,
): Promise<void> {
  let waitMs = firstMs
  while (!signal.aborted) {
    try {
      await delay(waitMs, signal)
      await work()
    } catch (error) {
      if (signal.aborted) return
      parts.log('debug', 'job failed', { code: isNodeError(error) ? error.code : String(error) })
    }
    waitMs = ms
  }
}

async function syncAll(service: Service, signal: AbortSignal): Promise<void> {
  const { items } = (await service.perform(NODE, 'sync.status', {}, { signal })) as { items: readonly SyncRow[] }
  for (const { did, home } of items) {
    await service.perform(NODE, 'sync.run', { did, home }, { signal }).catch(() => undefined)
  }
}
