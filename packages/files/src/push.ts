/** A push from its first byte to the transaction that moves the branches. */
import { dirname } from 'node:path'
import type { Store, Transaction, View } from '@csb/store'
import { hashOf } from './objects.ts'
import { indexPack } from './pack-index.ts'
import { createPackView } from './pack-object.ts'
import { resolvePack } from './pack-resolve.ts'
import { spoolPack } from './pack-spool.ts'
import { checkPush, type PushRules, type PushedHistory } from './push-check.ts'
import { storePack } from './push-store.ts'

/** Told on the way, for a person who waits. */
export type PushStage = 'receiving' | 'resolving' | 'checking' | 'storing'

export type ReceivePack = {
  readonly home: string
  /** the pack, as git sends it */
  readonly source: AsyncIterable<Uint8Array>
  /** No delta may stand on what is here: who sees a part of the home could copy the rest out of a base it names. */
  readonly standsAlone?: boolean
  onStage?(stage: PushStage, objects: number): void
}

/** Objects that came and are sound in themselves; whether they may be here is not decided yet. */
export type IncomingPack = {
  /** objects in it */
  readonly count: number
  /** the home as it would be with them */
  readonly view: View
  /** Look through what new tips need. @throws as `checkPush` */
  check(tips: readonly string[], rules: PushRules): PushedHistory
  /**
   * Store what was checked.
   * @returns stages the rest, for the transaction that moves the refs
   * @throws as `storePack`
   */
  store(history: Pick<PushedHistory, 'objects'>): Promise<(tx: Transaction) => Promise<void>>
  close(): Promise<void>
}

/**
 * Take in a pack; nothing of it is stored yet.
 * @throws MALFORMED, TOO_LARGE, NOT_FOUND without the home, DISK_FULL; whatever the source throws
 * @clause L0.5
 */
export async function receivePack(
  store: Store,
  { home, source, standsAlone = false, onStage }: ReceivePack,
): Promise<IncomingPack> {
  const hash = hashOf(store.view(), home)
  onStage?.('receiving', 0)
  const spool = await spoolPack(dirname(store.directory), hash, source)
  try {
    onStage?.('resolving', spool.count)
    const pack = await resolvePack(await indexPack(spool, hash), standsAlone ? undefined : store.view(), home)
    const seen = createPackView(store.view(), home, pack)
    return {
      count: pack.count,
      view: seen.view,
      check: (tips, rules) => {
        onStage?.('checking', pack.count)
        return checkPush(seen, home, tips, rules)
      },
      store: ({ objects }) => {
        onStage?.('storing', objects.size)
        return storePack(store, home, pack, objects)
      },
      close: () => spool.close(),
    }
  } catch (error) {
    await spool.close()
    throw error
  }
}

/** The same for a push that brings no objects: what its tips need is here already, or it is refused. */
export function checkTips(store: Store, home: string, tips: readonly string[], rules: PushRules): PushedHistory {
  return checkPush(createPackView(store.view(), home, undefined), home, tips, rules)
}
