/**
 * Long lists go in pages, each of which fits a frame. Both sides send while they read, so that neither waits for
 * the other to stop talking; what is read is handed on page by page and bounded in all.
 */
import { LIMITS, fail } from '@csb/core'
import { expectMessage, type SyncMessage } from './messages.ts'

/** Messages in order; undefined from `receive` means that the other side has ended. */
export type Port = { send(message: unknown): Promise<void>; receive(): Promise<unknown> }

type Paged = Extract<SyncMessage, { last: boolean }>

/**
 * Cut a list into pages of at most LIMITS.syncPageRows items and about LIMITS.syncPageBytes; of nothing, one empty page.
 */
export function* pagesOf<T>(items: readonly T[]): Generator<{ readonly items: readonly T[]; readonly last: boolean }> {
  let page: T[] = []
  let bytes = 0
  for (const item of items) {
    const size = Buffer.byteLength(JSON.stringify(item))
    if (page.length > 0 && (page.length === LIMITS.syncPageRows || bytes + size > LIMITS.syncPageBytes)) {
      yield { items: page, last: false }
      page = []
      bytes = 0
    }
    page.push(item)
    bytes += size
  }
  yield { items: page, last: true }
}

/** @returns how many items went */
export async function sendPages<T>(
  port: Port,
  items: readonly T[],
  messageOf: (items: readonly T[], last: boolean) => SyncMessage,
): Promise<number> {
  for (const page of pagesOf(items)) await port.send(messageOf(page.items, page.last))
  return items.length
}

/**
 * Read pages of one kind until the last.
 * @param take is called for each page before the next one is read
 * @returns how many items came
 * @throws PEER_MISBEHAVED also where more comes than LIMITS.syncRows
 */
export async function receivePages<K extends Paged['type']>(
  port: Port,
  kind: K,
  itemsOf: (message: Extract<Paged, { type: K }>) => readonly unknown[],
  take: (message: Extract<Paged, { type: K }>) => Promise<void> | void,
): Promise<number> {
  let count = 0
  for (;;) {
    const message: Extract<Paged, { type: K }> = expectMessage(kind, await port.receive())
    count += itemsOf(message).length
    if (count > LIMITS.syncRows) fail('PEER_MISBEHAVED', { reason: 'no end', maxRows: LIMITS.syncRows })
    await take(message)
    if (message.last) return count
  }
}

/** Both at once: each side sends while it reads, so that neither waits for the other to stop talking. */
export async function both<A, B>(a: Promise<A>, b: Promise<B>): Promise<readonly [A, B]> {
  return Promise.all([a, b])
}
