/** Packs made by hand, sound or not, and what it takes to push one. */
import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { deflateSync } from 'node:zlib'
import { expect } from 'vitest'
import type { Store } from '@csb/store'
import { checkTips, getRef, listRefs, moveRef, receivePack, type Home, type PushRules } from '../src/index.ts'
import { encodeHeader } from '../src/entry.ts'
import { NOW, snapshot } from './open-home.ts'

const CODES = { commit: 1, tree: 2, blob: 3, tag: 4 } as const
export type Kind = keyof typeof CODES
export type Entry = readonly [mode: string, name: string | Uint8Array, oid: string]
export type Made = { readonly kind: Kind; readonly body: Buffer; readonly oid: string }

/** Objects of one hash. */
export function makerOf(hash: 'sha1' | 'sha256') {
  const object = (kind: Kind, body: Uint8Array | string): Made => {
    const bytes = Buffer.from(body)
    const oid = createHash(hash).update(`${kind} ${bytes.byteLength}\0`).update(bytes).digest('hex')
    return { kind, body: bytes, oid }
  }
  const entry = (code: number, size: number, ...rest: readonly Uint8Array[]): Buffer =>
    Buffer.concat([encodeHeader(code, size), ...rest])
  return {
    object,
    blob: (text: string | Uint8Array) => object('blob', text),
    /** entries as they are given, in no better order */
    tree: (...entries: Entry[]) =>
      object(
        'tree',
        Buffer.concat(
          entries.map(([mode, name, oid]) =>
            Buffer.concat([Buffer.from(`${mode} `), Buffer.from(name), Buffer.from([0]), Buffer.from(oid, 'hex')]),
          ),
        ),
      ),
    commit: (tree: string, parents: readonly string[] = [], message = 'a commit\n') =>
      object(
        'commit',
        [
          `tree ${tree}`,
          ...parents.map((one) => `parent ${one}`),
          'author A <a@b> 1700000000 +0100',
          'committer A <a@b> 1700000000 +0100',
          '',
          message,
        ].join('\n'),
      ),
    whole: ({ kind, body }: Made) => entry(CODES[kind], body.byteLength, deflateSync(body)),
    onId: (base: string, delta: Uint8Array) => entry(7, delta.byteLength, Buffer.from(base, 'hex'), deflateSync(delta)),
    /** @param back how far before this entry the base begins, below 128 */
    onOffset: (back: number, delta: Uint8Array) => entry(6, delta.byteLength, Buffer.from([back]), deflateSync(delta)),
    entry,
    pack: (entries: readonly Uint8Array[], count = entries.length) => {
      const head = Buffer.from('PACK\0\0\0\u0002\0\0\0\0', 'latin1')
      head.writeUInt32BE(count, 8)
      const all = Buffer.concat([head, ...entries])
      return Buffer.concat([all, createHash(hash).update(all).digest()])
    },
  }
}

/** Objects of a SHA-256 home. */
export const make = makerOf('sha256')

/** A pack of one commit with a file `a`. */
export function simple() {
  const blob = make.blob('hello\n')
  const tree = make.tree(['100644', 'a', blob.oid])
  const commit = make.commit(tree.oid)
  return { blob, tree, commit, entries: [blob, tree, commit].map(make.whole) }
}

/** The push is refused with that code and nothing is changed, neither in the store nor beside it. */
export async function refuses(
  store: Store,
  home: Home,
  pack: Uint8Array,
  tip: string,
  code: string,
  rules: Parameters<typeof push>[4] = {},
) {
  const before = await snapshot(store)
  await expect(push(store, home, pack, tip, rules)).rejects.toEqual(expect.objectContaining({ code }))
  expect(await snapshot(store)).toEqual(before)
  expect((await readdir(dirname(store.directory))).filter((name) => name.startsWith('push-'))).toEqual([])
}

/** The bytes in chunks of a length that fits nothing. */
export async function* inChunks(bytes: Uint8Array, length = 997): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += length) yield bytes.subarray(at, at + length)
}

/** Push as an operation does: take in, check, store, move the branch. @returns new commits */
export async function push(
  store: Store,
  home: Home,
  pack: Uint8Array,
  tip: string,
  { branch = 'runs/one', ...rules }: Partial<PushRules> & { readonly branch?: string } = {},
): Promise<readonly string[]> {
  const heads = (await listRefs(store.view(), home.id)).map(({ commit }) => commit)
  const all: PushRules = { heads, onPath: () => undefined, onlySeen: false, mayCarryTrailers: true, ...rules }
  const standsAlone = rules.onlySeen === true
  const incoming = await receivePack(store, { home: home.id, source: inChunks(pack), standsAlone })
  try {
    const history = incoming.count === 0 ? checkTips(store, home.id, [tip], all) : incoming.check([tip], all)
    const stage = await incoming.store(history)
    await store.transact(async (tx) => {
      await stage(tx)
      const head = getRef(tx, home.id, branch)?.commit ?? null
      moveRef(tx, home.id, branch, { expect: head, to: tip, now: NOW })
    })
    return history.commits
  } finally {
    await incoming.close()
  }
}
