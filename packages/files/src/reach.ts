/** What leads to what: from branches, the recycle area and pins to every object that has to stay. */
import { fail } from '@csb/core'
import type { View } from '@csb/store'
import type { ObjectKind } from './entry.ts'
import { readCommit, readObject, readTree } from './objects.ts'
import { pinsOf } from './pins.ts'
import { recycledOf } from './recycle.ts'
import { listRefs } from './refs.ts'
import { kindAt } from './stored.ts'
import { listTags } from './tags.ts'
import { FOLDER, SUBMODULE } from './tree.ts'

/** `kind` is undefined where only the object itself tells. */
export type Link = { readonly oid: string; readonly kind: ObjectKind | undefined }

/** Something that keeps objects, in the words of a person, and the object it keeps. */
export type Root = Link & { readonly holder: 'branch' | 'tag' | 'recycled' | 'pin'; readonly name: string }

const TAGGED = /^object ([0-9a-f]+)\ntype (commit|tree|blob|tag)\n/

/**
 * What keeps objects now.
 * @param now ms since epoch: pins past their time keep nothing
 * @throws NOT_FOUND without the home, OBJECT_DAMAGED
 */
export async function rootsOf(view: View, home: string, now: number): Promise<Root[]> {
  const refs = await listRefs(view, home)
  const tags = await listTags(view, home)
  const recycled = await recycledOf(view, home)
  const pins = await pinsOf(view, home, now)
  return [
    ...refs.map(({ branch, commit }) => ({ holder: 'branch', name: branch, oid: commit, kind: undefined }) as const),
    ...tags.map(({ name, oid }) => ({ holder: 'tag', name, oid, kind: undefined }) as const),
    ...recycled
      .filter(({ mode }) => mode !== SUBMODULE)
      .map(({ branch, path, oid }) => {
        const [name, kind] = path === null ? ([branch, undefined] as const) : ([path, 'blob'] as const)
        return { holder: 'recycled', name, oid, kind } as const
      }),
    ...pins.flatMap(({ id, oids }) => oids.map((oid) => ({ holder: 'pin', name: id, oid, kind: undefined }) as const)),
  ]
}

/**
 * What an object leads to, but the commits of submodules. Of a blob nothing is read.
 * @throws NOT_FOUND, OBJECT_DAMAGED
 */
export function linksOf(view: View, home: string, { oid, kind = kindAt(view, home, oid) }: Link): Link[] {
  if (kind === 'blob') return []
  if (kind === 'tree') {
    return readTree(view, home, oid)
      .filter(({ mode }) => mode !== SUBMODULE)
      .map((entry) => ({ oid: entry.oid, kind: entry.mode === FOLDER ? 'tree' : 'blob' }))
  }
  if (kind === 'tag') return [taggedBy(oid, readObject(view, home, oid, 'tag'))]
  const { tree, parents } = readCommit(view, home, oid)
  return [{ oid: tree, kind: 'tree' }, ...parents.map((parent) => ({ oid: parent, kind: 'commit' }) as const)]
}

function taggedBy(oid: string, body: Buffer): Link {
  const [, object = '', kind = ''] = TAGGED.exec(body.toString('latin1', 0, 256)) ?? fail('OBJECT_DAMAGED', { oid })
  return { oid: object, kind: kind as ObjectKind }
}
