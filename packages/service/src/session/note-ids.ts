/**
 * Ids of notes that are given by somebody who sees a part only. An id stands for one note, so taking it or refusing it
 * tells whether a note is there. Who sees a part is told nothing of the rest: the note gets an id that is made from the
 * one that was given and from the lease, whether that one is free or not, and the same one when it is given again.
 * @clause L1.2
 */
import { idTime, isId, parseLabel, sha256Hex } from '@csb/core'
import { getTombstone, isVisible } from '@csb/guard'
import { getState, notePath } from '@csb/memory'
import type { View } from '@csb/store'
import { isPart } from '../git/ids.ts'
import { locationOf, reaches, type Context } from '../operation.ts'

type Given = { readonly entry: unknown }

const HASH_CHARS = 32
const TIME_DIGITS = 13

/**
 * The entries under ids that tell nothing. Links to notes of the same call, or of an earlier one of this lease, go along.
 * @clause L1.2
 */
export function withOwnIds<T extends Given>(
  context: Context,
  view: View,
  home: string,
  items: readonly T[],
): readonly T[] {
  if (!isPart(context)) return items
  const ids = new Map(
    items
      .map(({ entry }) => idIn(entry, 'id'))
      .filter((id) => id !== undefined && !isSeen(context, view, home, id))
      .map((id = '') => [id, ownId(context, id)] as const),
  )
  const linked = (link: unknown): unknown => {
    const id = idIn(link, 'target_id')
    if (id === undefined) return link
    const own = ids.get(id) ?? ownId(context, id)
    return ids.has(id) || getState(view, home, own) !== undefined ? { ...(link as object), target_id: own } : link
  }
  return items.map((item) => {
    const id = idIn(item.entry, 'id')
    const { links } = (item.entry ?? {}) as { readonly links?: unknown }
    const named = id === undefined ? {} : { id: ids.get(id) ?? id }
    const led = Array.isArray(links) ? { links: links.map(linked) } : {}
    return Object.keys({ ...named, ...led }).length === 0
      ? item
      : { ...item, entry: { ...(item.entry as object), ...named, ...led } }
  })
}

function idIn(value: unknown, member: string): string | undefined {
  const found = (value ?? {}) as Readonly<Record<string, unknown>>
  const id = found[member]
  return typeof id === 'string' && isId('memory', id) ? id : undefined
}

/** A note, or that it was forgotten. */
function isSeen(context: Context, view: View, home: string, id: string): boolean {
  const label = getState(view, home, id)?.label ?? getTombstone(view, home, id)?.label
  if (label === undefined || !isVisible(context.clearance, parseLabel(label))) return false
  const location = locationOf(context, home)
  return reaches(context, { location, branch: 'memory', action: 'read', path: `/${notePath(id)}` })
}

function ownId({ principal: { leaseHash } }: Context, id: string): string {
  const time = String(idTime(id)).padStart(TIME_DIGITS, '0')
  return `mem_${time}_${sha256Hex(`${leaseHash ?? ''} ${id}`).slice(0, HASH_CHARS)}`
}
