/** The objects of a pack that is not stored yet, seen as if they were: so that every reader works on them. */
import { LIMITS } from '@csb/core'
import type { View } from '@csb/store'
import { CODES, encodeHeader, kindOfCode, type ObjectKind } from './entry.ts'
import { createObjectView } from './object-view.ts'
import { WHOLE } from './pack-index.ts'
import type { ResolvedPack } from './pack-resolve.ts'
import { kindAt } from './stored.ts'

/** The home as it would be with the pack. */
export type PackView = {
  readonly view: View
  kindOf(oid: string): ObjectKind | undefined
  /** place in the pack, or -1 */
  placeOf(oid: string): number
}

/** @param pack undefined where none came */
export function createPackView(view: View, home: string, pack: ResolvedPack | undefined): PackView {
  const placeOf = (oid: string): number => {
    const number = pack?.oids.find(Buffer.from(oid, 'hex')) ?? -1
    return number < 0 ? -1 : (pack?.placeOf[number] ?? -1)
  }
  const seen = createObjectView(view, home, (oid) => {
    const place = placeOf(oid)
    return pack === undefined || place < 0 ? undefined : entryAt(pack, place)
  })
  return {
    view: seen,
    placeOf,
    kindOf: (oid) => {
      const place = placeOf(oid)
      return place < 0 ? kindAt(view, home, oid) : kindOfCode(pack?.kind[place] ?? 0)
    },
  }
}

/**
 * An object of a pack in the form in which the store keeps it, a delta with the id of its base.
 * For those that are not stored in pieces.
 */
export function entryAt(pack: ResolvedPack, place: number): Buffer {
  const [from, to] = [pack.stream[place] ?? 0, pack.end[place] ?? 0]
  const stream = pack.spool.readNow(from, to - from)
  const size = pack.size[place] ?? 0
  const base = pack.base[place] ?? WHOLE
  if (base === WHOLE) return Buffer.concat([encodeHeader(pack.kind[place] ?? 0, size), stream])
  const oid = base >= 0 ? pack.oids.hex(pack.oid[base] ?? 0) : (pack.outside.get(place) ?? '')
  return Buffer.concat([encodeHeader(CODES.delta, size), Buffer.from(oid, 'hex'), stream])
}

/** True for a blob that is stored in pieces, never held. */
export const isInPieces = (pack: ResolvedPack, place: number): boolean =>
  pack.code[place] === CODES.blob && (pack.size[place] ?? 0) > LIMITS.pieceBlobBytes
