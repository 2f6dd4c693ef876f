/** Submodules: commits of other repositories, carried and never followed; and files of early versions of git. */
import { describe, expect, test } from 'vitest'
import { key, type Store } from '@csb/store'
import {
  beginExport,
  checkHome,
  collectGarbage,
  commitFiles,
  eraseVersions,
  importArchive,
  isErased,
  listFiles,
  listRecycled,
  listRefs,
  readCommit,
  readFile,
  readTree,
  restoreRecycled,
  streamExport,
  type ExportSources,
  type Home,
} from '../src/index.ts'
import { openRig } from './merge-rig.ts'
import { NOW, WORDS, openHome, snapshot, text } from './open-home.ts'
import { make, push, refuses, type Entry } from './packs.ts'

const ELSEWHERE = 'ab'.repeat(32)
const ELSEWHERE_2 = 'cd'.repeat(32)
const ALL = { level: 'sealed', tags: ['*'] } as const
const SOURCES: ExportSources = { tombstones: async function* () {}, evidence: () => undefined }
const MODULES = '[submodule "lib"]\n\tpath = lib\n\turl = https://example.org/lib.git\n'

/** A commit with a submodule, a file of an early git, and what the two need. */
function withLib(parents: readonly string[] = [], lib = ELSEWHERE) {
  const [a, modules] = [make.blob('a\n'), make.blob(MODULES)]
  const tree = make.tree(
    ['100644', '.gitmodules', modules.oid],
    ['100664', 'early', a.oid],
    ['160000', 'lib', lib],
    ['100644', 'other', a.oid],
  )
  const commit = make.commit(tree.oid, parents)
  return { pack: make.pack([a, modules, tree, commit].map(make.whole)), tip: commit.oid, tree: tree.oid, a: a.oid }
}

const rootOf = async (store: Store, home: Home): Promise<string> =>
  (await listRefs(store.view(), home.id)).find(({ branch }) => branch === 'main')?.commit ?? ''

const kindsOf = (store: Store, home: Home, at: string) =>
  Object.fromEntries(
    listFiles(store.view(), { home: home.id, at, recursive: true }).map(({ path, kind, oid }) => [
      path,
      `${kind} ${oid}`,
    ]),
  )

describe('a tree with a submodule', () => {
  test('is pushed as it is, listed as such, and its commit is neither looked for nor read', async () => {
    const { store, home } = await openHome()
    const { pack, tip, tree, a } = withLib([await rootOf(store, home)])
    await push(store, home, pack, tip)
    expect(readCommit(store.view(), home.id, tip).tree).toBe(tree)
    expect(readTree(store.view(), home.id, tree).map(({ mode }) => mode)).toEqual([
      '100644',
      '100664',
      '160000',
      '100644',
    ])
    expect(kindsOf(store, home, 'runs/one')).toMatchObject({ lib: `submodule ${ELSEWHERE}`, early: `file ${a}` })
    expect(() => readFile(store.view(), { home: home.id, at: 'runs/one', path: 'lib' })).toThrow(
      expect.objectContaining({ code: 'NOT_FOUND' }),
    )
    expect(await checkHome(store.view(), home.id, { now: NOW })).toMatchObject({ damaged: [] })
    const before = await snapshot(store)
    let last
    for await (last of collectGarbage(store, home.id, { now: NOW })) continue
    expect(last).toMatchObject({ removed: 0, isPaused: false })
    expect(await snapshot(store)).toEqual(before)
  })

  test('L0.4 goes out and in again, and its archive has the same bytes', async () => {
    const { store, home } = await openHome()
    const { pack, tip } = withLib([await rootOf(store, home)])
    await push(store, home, pack, tip)
    const exported = async (from: Store): Promise<Buffer> => {
      const parts: Uint8Array[] = []
      const begun = await beginExport(from, home.id, SOURCES, { now: NOW })
      for await (const part of streamExport(from, begun, SOURCES)) parts.push(part)
      return Buffer.concat(parts)
    }
    const archive = await exported(store)
    const other = (await openHome()).store
    const source = async function* () {
      yield archive
    }
    await importArchive(other, source(), {
      checkEvidence: () => undefined,
      write: other.transact,
      finish: async () => undefined,
    })
    expect(await exported(other)).toEqual(archive)
  })

  test('an edit beside it leaves it and the early file as they came; bytes in its place are a file', async () => {
    const { store, home } = await openHome()
    const { pack, tip, a } = withLib([await rootOf(store, home)])
    await push(store, home, pack, tip)
    const edit = (path: string) =>
      store.transact((tx) =>
        commitFiles(tx, { ...WORDS, home: home.id, branch: 'runs/one', changes: [{ path, bytes: text('new\n') }] }),
      )
    const modes = (tree: string) =>
      Object.fromEntries(readTree(store.view(), home.id, tree).map(({ name, mode, oid }) => [name, `${mode} ${oid}`]))
    const first = await edit('other')
    expect(modes(first.tree)).toMatchObject({ lib: `160000 ${ELSEWHERE}`, early: `100664 ${a}` })
    const second = await edit('lib')
    expect(modes(second.tree)['lib']).toMatch(/^100644 /)
  })

  test('L3.4 forgetting its path forgets no commit, and an id that was forgotten does not hide it', async () => {
    const { store, home } = await openHome()
    const file = make.blob('secret\n')
    const old = make.tree(['100644', 'secret', file.oid])
    const first = make.commit(old.oid, [await rootOf(store, home)])
    await push(store, home, make.pack([file, old, first].map(make.whole)), first.oid)
    const { pack, tip } = withLib([first.oid], file.oid)
    await push(store, home, pack, tip)
    const erased = await store.transact((tx) => eraseVersions(tx, home.id, ['lib', 'secret']))
    expect(erased).toEqual([
      { oids: [], kept: [] },
      { oids: [file.oid], kept: [] },
    ])
    expect(isErased(store.view(), home.id, file.oid)).toBe(true)
    expect(kindsOf(store, home, 'runs/one')).toMatchObject({ lib: `submodule ${file.oid}` })
    expect(await checkHome(store.view(), home.id, { now: NOW })).toMatchObject({ damaged: [] })
  })
})

describe('a merge', () => {
  const opened = async () => {
    const { store, home } = await openHome()
    const rig = await openRig(store, home)
    const { pack, tip } = withLib([await rootOf(store, home)])
    await push(store, home, pack, tip)
    await rig.merge('runs/one', 'main')
    return { store, home, rig, tip }
  }
  /** A branch on which the submodule stands at another commit, or is gone. */
  const moved = async (store: Store, home: Home, branch: string, parent: string, entries: Entry[]) => {
    const blob = make.blob('a\n')
    const modules = make.blob(MODULES)
    const tree = make.tree(...entries.map(([mode, name, oid]): Entry => [mode, name, oid === '' ? blob.oid : oid]))
    const commit = make.commit(tree.oid, [parent], `${branch}\n`)
    await push(store, home, make.pack([blob, modules, tree, commit].map(make.whole)), commit.oid, { branch })
    return commit.oid
  }
  const modules: Entry = ['100644', '.gitmodules', make.blob(MODULES).oid]

  test('takes the side that moved it, tells both commits, and sees no change in an early mode', async () => {
    const { store, home, rig } = await opened()
    const parent = await rootOf(store, home)
    await moved(store, home, 'runs/two', parent, [
      modules,
      ['100644', 'early', ''],
      ['160000', 'lib', ELSEWHERE_2],
      ['100644', 'other', ''],
    ])
    const preview = rig.preview('runs/two', 'main')
    expect(preview.manifest).toMatchObject([{ op: 'change', path: 'lib', mode_old: '160000', mode_new: '160000' }])
    const [lib] = preview.manifest
    expect(lib?.sha256_old).not.toBe(lib?.sha256_new)
    await rig.merge('runs/two', 'main')
    expect(kindsOf(store, home, 'main')).toMatchObject({ lib: `submodule ${ELSEWHERE_2}` })
    const tree = readCommit(store.view(), home.id, await rootOf(store, home)).tree
    expect(readTree(store.view(), home.id, tree).find(({ name }) => name === 'early')?.mode).toBe('100664')
  })

  test('keeps both where both moved it', async () => {
    const { store, home, rig } = await opened()
    const parent = await rootOf(store, home)
    const at = (oid: string): Entry[] => [
      modules,
      ['100664', 'early', ''],
      ['160000', 'lib', oid],
      ['100644', 'other', ''],
    ]
    await moved(store, home, 'runs/two', parent, at(ELSEWHERE_2))
    await moved(store, home, 'runs/three', parent, at('ef'.repeat(32)))
    await rig.merge('runs/two', 'main')
    const preview = rig.preview('runs/three', 'main')
    expect(preview.conflicts).toEqual([{ kind: 'content', path: 'lib', kept: ['lib', 'lib (from runs-three)'] }])
    await rig.merge('runs/three', 'main')
    expect(kindsOf(store, home, 'main')).toMatchObject({
      lib: `submodule ${ELSEWHERE_2}`,
      'lib (from runs-three)': `submodule ${'ef'.repeat(32)}`,
    })
  })

  test('L0.3 that takes it away leaves it in the recycle area, and it comes back', async () => {
    const { store, home, rig } = await opened()
    const parent = await rootOf(store, home)
    await moved(store, home, 'runs/two', parent, [['100644', 'other', '']])
    await rig.merge('runs/two', 'main')
    const [view, now] = [store.view(), NOW + 60_000]
    const { items } = await listRecycled(view, home.id, { now, limit: 10, clearance: ALL })
    expect(items.map(({ path, mode }) => `${path} ${mode}`).sort()).toEqual([
      '.gitmodules 100644',
      'early 100664',
      'lib 160000',
    ])
    // of an id that is not here nothing is collected and nothing is missing
    for await (const _ of collectGarbage(store, home.id, { now })) continue
    expect(await checkHome(store.view(), home.id, { now })).toMatchObject({ damaged: [] })
    const restore = { ...WORDS, now, home: home.id, branch: 'runs/back', path: 'lib', clearance: ALL }
    await store.transact((tx) => restoreRecycled(tx, restore))
    expect(kindsOf(store, home, 'runs/back')).toMatchObject({ lib: `submodule ${ELSEWHERE}` })
    expect(store.view().has(key('object', home.id, ELSEWHERE))).toBe(false)
  })

  test('of two halves that together would harm who clones keeps both instead', async () => {
    const { store, home } = await openHome()
    const rig = await openRig(store, home)
    const lines = (one: string, two: string) => `${one}\n# 1\n# 2\n# 3\n# 4\n${two}\n`
    await rig.write('runs/base', '.gitmodules', lines('# top', '# end'))
    await rig.merge('runs/base', 'main')
    await rig.write('runs/two', '.gitmodules', lines('[submodule ".."]', '# end'))
    await rig.write('runs/three', '.gitmodules', lines('# top', 'path = x'))
    await rig.merge('runs/two', 'main')
    expect(rig.preview('runs/three', 'main').conflicts).toMatchObject([{ kind: 'content', path: '.gitmodules' }])
  })
})

describe('what git would act on in a clone', () => {
  const refused = async (entries: readonly Entry[], content = 'x', code = 'INVALID_INPUT') => {
    const { store, home } = await openHome()
    const blob = make.blob(content)
    const inner = make.tree(['100644', 'x', blob.oid])
    const oids = { '40000': inner.oid, '160000': ELSEWHERE } as Readonly<Record<string, string>>
    const tree = make.tree(...entries.map(([mode, name]): Entry => [mode, name, oids[mode] ?? blob.oid]))
    const commit = make.commit(tree.oid, [await rootOf(store, home)])
    await refuses(store, home, make.pack([blob, inner, tree, commit].map(make.whole)), commit.oid, code)
  }

  test.each([
    ['.gitmodules', '100644', '[submodule "../../hooks"]\n\tpath = x\n'],
    ['.GITMODULES', '100644', '[submodule "x"]\n\turl = -u./payload\n'],
    ['gitmod~1', '100755', '[submodule "x"]\n\tupdate = !sh\n'],
    ['.gitmodules', '120000', 'other'],
    ['.gitmodules', '160000', ''],
    ['.gitmodules', '40000', ''],
    ['.gitattributes', '160000', ''],
    ['.gitattributes', '100644', 'x'.repeat(2048)],
  ])('%s of mode %s with %j is not taken', async (name, mode, content) => {
    await refused([[mode, name, '']], content)
  })

  test('also not below a folder, under a name it had before, or written file by file', async () => {
    const bad = '[submodule ".."]\n\turl = x\n'
    const { store, home } = await openHome()
    const blob = make.blob(bad)
    const before = make.tree(['100644', 'plain', blob.oid])
    const first = make.commit(before.oid, [await rootOf(store, home)])
    await push(store, home, make.pack([blob, before, first].map(make.whole)), first.oid)
    const inner = make.tree(['100644', '.gitmodules', blob.oid])
    const outer = make.tree(['40000', 'deep', inner.oid])
    const second = make.commit(outer.oid, [first.oid])
    await refuses(store, home, make.pack([inner, outer, second].map(make.whole)), second.oid, 'INVALID_INPUT')
    const write = {
      ...WORDS,
      home: home.id,
      branch: 'runs/two',
      changes: [{ path: 'a/.gitmodules', bytes: text(bad) }],
    }
    const was = await snapshot(store)
    await expect(store.transact((tx) => commitFiles(tx, write))).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    expect(await snapshot(store)).toEqual(was)
  })

  test('a file of submodules that is too large is not looked through', async () => {
    await refused([['100644', '.gitmodules', '']], '#'.repeat(1024 * 1024 + 1), 'TOO_LARGE')
  })
})
