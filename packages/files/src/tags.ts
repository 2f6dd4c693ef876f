/**
 * Tags: names that are given once. What is named is a commit, or an object of kind tag that leads to one and bears
 * the words, perhaps the signature, of who gave it.
 */
import { fail } from '@csb/core'
import { key, prefix, type Transaction, type View } from '@csb/store'
import { readObject } from './objects.ts'
import { validateBranch } from './paths.ts'
import { kindAt } from './stored.ts'

export type Tag = {
  /** what the name stands for */
  readonly oid: string
  /** the commit that it leads to */
  readonly commit: string
  /** ms since epoch */
  readonly createdAt: number
  /** as of a branch */
  readonly words?: true
}

/** Tags on the way from a name to its commit. */
const MOST_STEPS = 8

/** All tags of a home, by name. @throws OBJECT_DAMAGED */
export async function listTags(view: View, home: string): Promise<({ name: string } & Tag)[]> {
  const start = prefix('tag', home)
  const tags: ({ name: string } & Tag)[] = []
  for await (const [k] of view.range({ prefix: start })) {
    tags.push({ name: k.slice(start.length), ...(view.getJson<Tag>(k) ?? fail('OBJECT_DAMAGED', { key: k })) })
  }
  return tags
}

export const getTag = (view: View, home: string, name: string): Tag | undefined =>
  view.getJson<Tag>(key('tag', home, name))

/**
 * Give a name.
 * @throws CONFLICT where it stands for something else, NOT_FOUND, INVALID_INPUT
 */
export function createTag(
  tx: Transaction,
  home: string,
  name: string,
  { oid, now, words = false }: { oid: string; now: number; words?: boolean },
): void {
  validateBranch(name)
  const known = getTag(tx, home, name)
  if (known !== undefined && known.oid !== oid) fail('CONFLICT', { home, tag: name, head: known.oid })
  const { commit } = peel(tx, home, oid)
  const isSpoken = words || known?.words === true
  tx.putJson(key('tag', home, name), {
    oid,
    commit,
    createdAt: now,
    ...(isSpoken ? { words: true } : {}),
  } satisfies Tag)
}

/** @throws CONFLICT, NOT_FOUND */
export function dropTag(tx: Transaction, home: string, name: string, expect: string): void {
  const known = getTag(tx, home, name) ?? fail('NOT_FOUND', { home, tag: name })
  if (known.oid !== expect) fail('CONFLICT', { home, tag: name, head: known.oid })
  tx.del(key('tag', home, name))
}

/**
 * The commit that an object leads to, and the objects of kind tag on the way.
 * @throws NOT_FOUND where it leads to none, OBJECT_DAMAGED
 */
export function peel(
  view: View,
  home: string,
  oid: string,
): { readonly commit: string; readonly tags: readonly string[] } {
  const tags: string[] = []
  let at = oid
  while (tags.length < MOST_STEPS) {
    const kind = kindAt(view, home, at)
    if (kind === 'commit') return { commit: at, tags }
    if (kind !== 'tag') return fail('NOT_FOUND', { home, oid: at, wanted: 'commit', found: kind ?? null })
    tags.push(at)
    const text = readObject(view, home, at, 'tag').toString('latin1')
    at = /^object ([0-9a-f]+)\n/.exec(text)?.[1] ?? fail('MALFORMED', { reason: 'tag', oid: at })
  }
  return fail('MALFORMED', { reason: 'tag of a tag of a tag', oid })
}
