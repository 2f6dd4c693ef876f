/** Putting the objects of a checked pack into the store: batch by batch, each behind what it stands on. */
import { LIMITS, fail } from '@csb/core'
import { key, type Store, type Transaction } from '@csb/store'
import { writePieces } from './blob-stream.ts'
import { CODES } from './entry.ts'
import { isErased } from './objects.ts'
import { WHOLE } from './pack-index.ts'
import { createPackView, entryAt, isInPieces } from './pack-object.ts'
import type { ResolvedPack } from './pack-resolve.ts'
import { bodyOf, depthOf, putEntry, putPiecesEntry, wholeEntry, type Pieces } from './stored.ts'

type Item = { readonly oid: string; readonly blob: boolean } & (
  | { readonly value: Uint8Array }
  | { readonly size: number; readonly pieces: Pieces }
)

/**
 * Store what of a pack is wanted. All but the last batch are on the disk when this resolves; nothing leads to them yet.
 * @param wanted ids, and with them go the bases they stand on
 * @returns stages the last batch, to be called in the transaction that moves the branch
 * @throws FORGOTTEN, NOT_FOUND where a base went meanwhile, DISK_FULL
 */
export async function storePack(
  store: Store,
  home: string,
  pack: ResolvedPack,
  wanted: ReadonlySet<string>,
): Promise<(tx: Transaction) => Promise<void>> {
  const needed = placesOf(pack, wanted)
  const depth = createDepths(store, home, pack)
  let batch: Item[] = []
  let bytes = 0
  for (const place of pack.order) {
    const oid = pack.oids.hex(pack.oid[place] ?? 0)
    if (needed[place] !== 1 || pack.placeOf[pack.oid[place] ?? 0] !== place) continue
    if (store.view().has(key('object', home, oid))) continue
    const item = await itemAt(store, home, pack, place, oid, depth)
    batch.push(item)
    bytes += 'value' in item ? item.value.byteLength : 0
    if (bytes <= LIMITS.packBatchBytes) continue
    const full = batch
    await store.transact((tx) => stage(tx, home, full))
    batch = []
    bytes = 0
  }
  return (tx) => stage(tx, home, batch)
}

async function stage(tx: Transaction, home: string, batch: readonly Item[]): Promise<void> {
  for (const item of batch) {
    // forgotten while it was on its way
    if (item.blob && isErased(tx, home, item.oid)) fail('FORGOTTEN', { home, oid: item.oid })
    if ('value' in item) putEntry(tx, home, item.oid, item.value)
    else if (!tx.has(key('object', home, item.oid))) await putPiecesEntry(tx, home, item.oid, item.size, item.pieces)
  }
}

/** Marks for what is wanted and all it stands on. */
function placesOf(pack: ResolvedPack, wanted: ReadonlySet<string>): Uint8Array {
  const marks = new Uint8Array(pack.count)
  for (const oid of wanted) {
    const number = pack.oids.find(Buffer.from(oid, 'hex'))
    let place = number < 0 ? WHOLE : (pack.placeOf[number] ?? WHOLE)
    while (place >= 0 && marks[place] !== 1) {
      marks[place] = 1
      // the base as it is stored is the first object of that id
      const base = pack.base[place] ?? WHOLE
      place = base < 0 ? WHOLE : (pack.placeOf[pack.oid[base] ?? 0] ?? WHOLE)
    }
  }
  return marks
}

/** How many deltas each will stand on in the store; one that would be too deep is made whole. */
function createDepths(store: Store, home: string, pack: ResolvedPack): (place: number) => number {
  const depths = new Uint16Array(pack.count)
  const outside = new Map<string, number>()
  return (place) => {
    const base = pack.base[place] ?? WHOLE
    if (base === WHOLE) return 0
    const oid = pack.outside.get(place)
    let below = depths[base] ?? 0
    if (oid !== undefined) {
      below = outside.get(oid) ?? depthOf(store.view(), home, oid)
      outside.set(oid, below)
    }
    const depth = below + 1 > LIMITS.deltaChain ? 0 : below + 1
    depths[place] = depth
    return depth
  }
}

async function itemAt(
  store: Store,
  home: string,
  pack: ResolvedPack,
  place: number,
  oid: string,
  depth: (place: number) => number,
): Promise<Item> {
  const blob = pack.kind[place] === CODES.blob
  if (isInPieces(pack, place)) {
    const pieces = await writePieces(store, home, oid, streamOf(pack, place))
    return { oid, blob, size: pack.size[place] ?? 0, pieces }
  }
  if ((pack.base[place] ?? WHOLE) !== WHOLE && depth(place) === 0)
    return { oid, blob, value: wholeAt(store, home, pack, oid) }
  return { oid, blob, value: entryAt(pack, place) }
}

/** An object that comes as a delta, as an entry of its own. */
function wholeAt(store: Store, home: string, pack: ResolvedPack, oid: string): Uint8Array {
  const { kind, body } =
    bodyOf(createPackView(store.view(), home, pack).view, home, oid) ?? fail('NOT_FOUND', { home, oid })
  return wholeEntry(kind, body)
}

async function* streamOf(pack: ResolvedPack, place: number): AsyncGenerator<Uint8Array> {
  const end = pack.end[place] ?? 0
  for (let at = pack.stream[place] ?? 0; at < end; at += LIMITS.pieceBytes)
    yield await pack.spool.read(at, Math.min(LIMITS.pieceBytes, end - at))
}
