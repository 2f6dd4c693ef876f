/**
 * The daily collection: garbage of every home that this node keeps, its own and the copies of others', and rows that
 * nobody comes back for.
 */
import { toNodeError } from '@csb/core'
import { appendRecord, collectGate, heldOf, isOver, takeReads, unlistedLeases } from '@csb/authority'
import { listHomes } from '@csb/files'
import type { Transaction } from '@csb/store'
import type { Parts } from './operation.ts'
import type { Service } from './service.ts'

const NODE = { kind: 'node', door: 'timer' } as const

/** One home after the other, each in bounded steps. One that is damaged keeps the others from nothing. */
export async function collectHomes({ store, log }: Parts, service: Service, signal: AbortSignal): Promise<void> {
  for (const { id: home } of await listHomes(store.view())) {
    await service.perform(NODE, 'files.gc', { home }, { signal }).catch((error: unknown) => {
      signal.throwIfAborted()
      log('warn', 'garbage of a home is not collected', { home, code: toNodeError(error).code })
    })
  }
}

/**
 * What was read under a lease that is over, and stands in no entry, is listed in one of its own: no other will come. Passes
 * of the gate that nobody used in their time go, and what was given back to be changed once its card would have expired.
 * While the record is held no reads are listed, and they stay.
 * @clause L1.5
 */
export async function collectRows({ store, clock, key, runs }: Parts, signal: AbortSignal): Promise<void> {
  for (const lease of await unlistedLeases(store.view())) {
    signal.throwIfAborted()
    await store.transact(async (tx) => {
      if (await listLast(tx, lease, { actor: key.did, now: clock.now() })) runs.unlisted.delete(lease)
    })
  }
  await store.transact((tx) => collectGate(tx, clock.now()))
}

type Listing = { readonly actor: string; readonly now: number }

/** @returns whether it was */
async function listLast(tx: Transaction, lease: string, { actor, now }: Listing): Promise<boolean> {
  if (heldOf(tx) !== undefined || !isOver(tx, lease, now)) return false
  const reads = await takeReads(tx, lease)
  const told = { operation: 'files.gc', outcome: 'done', actor, door: NODE.door, run: null, lease } as const
  appendRecord(tx, { ...told, reads, effect: { lease_over: true } }, now)
  return true
}
