/** What a push would refuse is nothing an archive may hold: links out of the tree, and what git acts on by itself. */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Store } from '@csb/store'
import { beginExport, importArchive, listRefs, streamExport, type ExportSources } from '../src/index.ts'
import { NOW, openHome, snapshot } from './open-home.ts'
import { make, push, type Entry, type Made } from './packs.ts'

const SOURCES: ExportSources = { tombstones: async function* () {}, evidence: () => undefined }
const MAGIC = Buffer.from('csb-archive 1.0\n')
const KINDS = { commit: 1, tree: 2, blob: 3, tag: 4 } as const

const taken = (store: Store, archive: Uint8Array) => {
  const source = async function* () {
    yield archive
  }
  const rules = { checkEvidence: () => undefined, finish: async () => undefined }
  return importArchive(store, source(), { ...rules, write: store.transact })
}

const frame = (kind: string, body: Uint8Array): Buffer => {
  const head = Buffer.alloc(9)
  head.write(kind)
  head.writeBigUInt64BE(BigInt(body.byteLength), 1)
  return Buffer.concat([head, body])
}

/** The archive of a home whose branch `runs/one` holds a file, and one in which other objects stand in their place. */
async function archiveWith(made: (blob: Made) => { objects: readonly Made[]; tree: Made }) {
  const { store, home } = await openHome()
  const root = (await listRefs(store.view(), home.id))[0]?.commit ?? ''
  const blob = make.blob('x')
  const plain = make.tree(['100644', 'x', blob.oid])
  const first = make.commit(plain.oid, [root])
  await push(store, home, make.pack([blob, plain, first].map(make.whole)), first.oid)
  const parts: Uint8Array[] = []
  for await (const part of streamExport(store, await beginExport(store, home.id, SOURCES, { now: NOW }), SOURCES))
    parts.push(part)
  const archive = Buffer.concat(parts)
  const { objects, tree } = made(blob)
  const second = make.commit(tree.oid, [first.oid])
  const end = archive.byteLength - 9 - 32
  const more = [...objects, tree, second].map(({ kind, body, oid }) =>
    frame('O', Buffer.concat([Buffer.from([KINDS[kind]]), Buffer.from(oid, 'hex'), body])),
  )
  const text = archive
    .subarray(0, end)
    .toString('latin1')
    .replaceAll(`"commit":"${first.oid}"`, `"commit":"${second.oid}"`)
  const all = Buffer.concat([Buffer.from(text, 'latin1'), ...more])
  expect(all.subarray(0, MAGIC.byteLength).equals(MAGIC)).toBe(true)
  return Buffer.concat([all, frame('Z', createHash('sha256').update(all).digest())])
}

const within = (depth: number, target: string) => () => {
  const link = make.blob(target)
  const trees: Made[] = [make.tree(['120000', 'l', link.oid])]
  for (let at = 0; at < depth; at++) trees.push(make.tree(['40000', 'd', trees.at(-1)?.oid ?? '']))
  const tree = trees.pop() as Made
  return { objects: [link, ...trees], tree }
}

const named = (mode: string, name: string, content: string) => (blob: Made) => {
  const own = make.blob(content)
  const inner = make.tree(['100644', 'x', blob.oid])
  const oids: Readonly<Record<string, string>> = { '160000': 'ab'.repeat(32), '40000': inner.oid }
  const entry: Entry = [mode, name, oids[mode] ?? own.oid]
  const objects = { '40000': [inner], '160000': [] }[mode] ?? [own]
  const tree = make.tree(['40000', 'deep', make.tree(entry).oid])
  return { objects: [...objects, make.tree(entry)], tree }
}

test.each([
  ['a link to its root', within(1, '../x')],
  ['a link deep within', within(3, '../../d/../../y')],
  ['submodules', named('100644', '.gitmodules', '[submodule "a"]\n\turl = https://example.org/a\n')],
  ['a submodule', named('160000', 'lib', '')],
])('L0.4 %s is taken', async (_, made) => {
  const { store } = await openHome()
  await expect(taken(store, await archiveWith(made))).resolves.toMatchObject({ branches: 3 })
})

test.each([
  ['a link out of the tree', within(0, '../x')],
  ['a link out of it from deep within', within(2, '../../../x')],
  ['a link that climbs on its way', within(1, '../../d/x')],
  ['an absolute link', within(1, '/etc/passwd')],
  ['a link into .git', within(1, '../.git/hooks')],
  ['a submodule with a harmful name', named('100644', '.gitmodules', '[submodule ".."]\n\turl = x\n')],
  ['a submodule that is an option', named('100755', '.GITMODULES', '[submodule "x"]\n\turl = -u./x\n')],
  ['a link in place of submodules', named('120000', '.gitmodules', 'x')],
  ['a submodule in place of submodules', named('160000', '.gitmodules', '')],
  ['a folder in place of attributes', named('40000', '.gitattributes', '')],
])('attack 29: %s is refused, and nothing of it is to be seen', async (_, made) => {
  const { store } = await openHome()
  const before = await snapshot(store)
  await expect(taken(store, await archiveWith(made))).rejects.toMatchObject({ code: 'MALFORMED' })
  expect(await snapshot(store)).toEqual(before)
})
