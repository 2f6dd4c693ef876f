/**
 * Second pass over a pack: make each delta once, from its base, to learn its id. Depth first, so that a base is still
 * in memory when it is needed; what has to be made again counts again, and the whole has a bound.
 */
import { LIMITS, fail } from '@csb/core'
import type { View } from '@csb/store'
import { applyDelta } from './delta.ts'
import { CODES, kindOfCode, type ObjectKind } from './entry.ts'
import { isErased, oidOf } from './objects.ts'
import { WHOLE, checkSize, countMade, identify, inflateAt, type PackIndex } from './pack-index.ts'
import { bodyOf, type Body } from './stored.ts'

/** A pack of which every object is known. */
export type ResolvedPack = PackIndex & {
  /** places, each behind its base */
  readonly order: Int32Array
  /** how many deltas an object stands on, within the pack */
  readonly depth: Uint16Array
  /** id of the base of a delta on an object that is in the home already, by place */
  readonly outside: ReadonlyMap<number, string>
}

const KEPT_BYTES = 32 * 1024 * 1024
/** Between so many objects others have their turn. */
const TURN = 128

/**
 * @param view where bases are looked for that are not in the pack; undefined: the pack must stand by itself
 * @throws MALFORMED where a delta does not fit, or its base is nowhere; TOO_LARGE, OBJECT_DAMAGED
 */
export async function resolvePack(index: PackIndex, view: View | undefined, home: string): Promise<ResolvedPack> {
  const { count, spool } = index
  const order = new Int32Array(count)
  const depth = new Uint16Array(count)
  const outside = new Map<number, string>()
  const children = childrenOf(index)
  const maker = createMaker(index, outside, view, home)
  let known = 0
  const stack: number[] = []
  const note = (place: number): void => {
    order[known++] = place
    const oid = index.oids.hex(index.oid[place] ?? 0)
    const named = index.byBase.get(oid) ?? []
    index.byBase.delete(oid)
    for (const child of named) index.base[child] = place
    const all = [...children(place), ...named]
    const next = (depth[place] ?? 0) + 1
    if (all.length > 0 && next > LIMITS.packChain)
      fail('TOO_LARGE', { maxDepth: LIMITS.packChain, reason: 'chain of deltas' })
    for (const child of all) depth[child] = next
    stack.push(...all)
  }
  const drain = async (): Promise<void> => {
    for (let place = stack.pop(); place !== undefined; place = stack.pop()) {
      const { kind, body } = maker.make(place)
      checkSize(CODES[kind], body.byteLength)
      identify(index, place, kind, oidOf(index.hash, kind, body))
      note(place)
      if (known % TURN === 0) await spool.read(0, 1)
    }
  }
  for (let place = 0; place < count; place++) {
    if (kindOfCode(index.code[place] ?? 0) === undefined) continue
    note(place)
    await drain()
  }
  for (const [base, places] of index.byBase) {
    for (const place of places) {
      outside.set(place, base)
      depth[place] = 1
      stack.push(place)
    }
    index.byBase.delete(base)
    await drain()
  }
  // a circle has no beginning: none of it was reached
  if (known !== count) fail('MALFORMED', { reason: 'delta without a base', unresolved: count - known })
  return Object.assign(index, { order, depth, outside })
}

/** Children by offset as two arrays: the first one of each, and the next one beside each. */
function childrenOf({ count, base }: PackIndex): (place: number) => number[] {
  const first = new Int32Array(count).fill(-1)
  const beside = new Int32Array(count).fill(-1)
  for (let place = count - 1; place >= 0; place--) {
    const on = base[place] ?? WHOLE
    if (on < 0) continue
    beside[place] = first[on] ?? -1
    first[on] = place
  }
  return (place) => {
    const found: number[] = []
    for (let child = first[place] ?? -1; child >= 0; child = beside[child] ?? -1) found.push(child)
    return found
  }
}

function createMaker(index: PackIndex, outside: ReadonlyMap<number, string>, view: View | undefined, home: string) {
  const kept = new Map<number | string, Body>()
  let keptBytes = 0
  const keep = (at: number | string, body: Body): Body => {
    keptBytes += body.body.byteLength
    kept.set(at, body)
    for (const [oldest, { body: bytes }] of kept) {
      if (keptBytes <= KEPT_BYTES) break
      kept.delete(oldest)
      keptBytes -= bytes.byteLength
    }
    return body
  }
  const fromHome = (oid: string): Body => {
    const known = kept.get(oid)
    if (known !== undefined) return known
    const found = view === undefined || isErased(view, home, oid) ? undefined : bodyOf(view, home, oid)
    return keep(oid, found ?? fail('MALFORMED', { reason: 'delta without a base', oid }))
  }
  const whole = (place: number): Body => {
    const kind: ObjectKind = kindOfCode(index.code[place] ?? 0) ?? fail('MALFORMED', { reason: 'kind of a pack entry' })
    if ((index.size[place] ?? 0) > LIMITS.deltaBytes) tooLarge(index.size[place] ?? 0)
    countMade(index, index.size[place] ?? 0)
    return { kind, body: inflateAt(index, place) }
  }
  return {
    make: (place: number): Body => {
      const chain: number[] = []
      let at = place
      while (!kept.has(at) && (index.base[at] ?? WHOLE) >= 0) {
        chain.push(at)
        at = index.base[at] ?? WHOLE
      }
      let body = kept.get(at)
      if (body === undefined) {
        const base = outside.get(at)
        if (base === undefined) body = keep(at, whole(at))
        else {
          chain.push(at)
          body = fromHome(base)
        }
      }
      for (const next of chain.toReversed()) {
        const made: Buffer = applyDelta(body.body, inflateAt(index, next), LIMITS.deltaBytes)
        countMade(index, made.byteLength)
        body = keep(next, { kind: body.kind, body: made })
      }
      return body
    },
  }
}

function tooLarge(bytes: number): never {
  return fail('TOO_LARGE', {
    maxBytes: LIMITS.deltaBytes,
    bytes,
    kind: 'delta',
  })
}
