import { describe, expect, test } from 'vitest'
import type { Lease } from '@csb/core'
import { getRef, listFiles, moveRef, readCommit, readFile, readTree, writeCommit, writeTree } from '@csb/files'
import { key } from '@csb/store'
import { createHouse, codeOf, type House } from './house.ts'

type Done = { readonly commit: string; readonly parent: string }
type Preview = {
  readonly digest: string
  readonly hidden: number
  readonly manifest: readonly { readonly op: string; readonly path: string; readonly diff?: string }[]
  readonly conflicts: readonly object[]
}

const write = (house: House, branch: string, path: string, text: string | null, label?: string) =>
  house.owned<Done>('files.write', {
    branch,
    path,
    ...(text === null ? { delete: true } : { text }),
    ...(label === undefined ? {} : { label }),
  })
const headOf = (house: House, branch: string) => getRef(house.store.view(), house.home, branch)?.commit

/** `runs/base` holds two files; `runs/one` began there and changed one, deleted the other. */
async function open() {
  const house = await createHouse()
  await write(house, 'runs/base', 'a.md', '1\n2\n3\n4\n')
  await write(house, 'runs/base', 'secret.md', 'secret\n', 'sealed:owner')
  await house.owned('files.branch', { branch: 'runs/one', from: 'runs/base' })
  await write(house, 'runs/one', 'a.md', '1\n2\n3\nfour\n')
  await write(house, 'runs/one', 'secret.md', null)
  return house
}

/** A commit on a branch, after which the folder has a submodule there. */
const pin = (house: House, branch: string, name: string, oid: string) =>
  house.store.transact((tx) => {
    const head = getRef(tx, house.home, branch)?.commit ?? ''
    const commit = readCommit(tx, house.home, head)
    const others = readTree(tx, house.home, commit.tree).filter((entry) => entry.name !== name)
    const tree = writeTree(tx, house.home, [...others, { mode: '160000', name, oid }])
    const to = writeCommit(tx, house.home, { ...commit, tree, parents: [head] })
    moveRef(tx, house.home, branch, { expect: head, to, now: house.clock.now() })
  })

describe('merging', () => {
  test('L0.1 a run branch is merged into another at once, and main stays', async () => {
    const house = await open()
    const main = headOf(house, 'main')
    const preview = await house.owned<Preview>('files.preview', { from: 'runs/one', into: 'runs/base' })
    expect(preview.manifest.map(({ op, path }) => `${op} ${path}`)).toEqual(['change a.md', 'delete secret.md'])
    const done = await house.owned<Done & Preview>('files.merge', { from: 'runs/one', into: 'runs/base' })
    expect(done.digest).toBe(preview.digest)
    expect(headOf(house, 'runs/base')).toBe(done.commit)
    expect(headOf(house, 'main')).toBe(main)
    const explained = await house.owned<{ commit: string; run: string }>('record.explain', { commit: done.commit })
    expect(explained.commit).toBe(done.commit)
  })

  test('L0.2 a merge into main asks for an approval, and main stays', async () => {
    const house = await open()
    const main = headOf(house, 'main')
    await expect(house.owned('files.merge', { from: 'runs/one', into: 'main' })).rejects.toMatchObject({
      code: 'GATE_REQUIRED',
      details: { card: expect.stringMatching(/^gate_/) as unknown },
    })
    expect(headOf(house, 'main')).toBe(main)
  })

  test('L1.2 a file that moved needs the place it is taken from as well', async () => {
    const house = await createHouse()
    await write(house, 'runs/base', 'own/a.md', '1\n2\n3\n4\n')
    await house.owned('files.branch', { branch: 'runs/one', from: 'runs/base' })
    await write(house, 'runs/one', 'own/a.md', null)
    await write(house, 'runs/one', 'drafts/a.md', '1\n2\n3\n4\n')
    const lease = { actions: ['list', 'read', 'write'] satisfies Lease['actions'], paths: ['/drafts'] }
    const drafting = await house.leased(lease)
    const both = await house.leased({ ...lease, paths: ['/drafts', '/own'] })
    const merging = { from: 'runs/one', into: 'runs/base' }
    expect(await codeOf(house.service.perform(drafting, 'files.merge', merging))).toBe('SCOPE_EXCEEDED')
    expect(await codeOf(house.service.perform(both, 'files.merge', merging))).toBe('done')
  })

  test('L1.2 needs propose for a protected branch and write for another, for every path that changes', async () => {
    const house = await open()
    const merging = async (lease: Parameters<House['leased']>[0], into: string) => {
      const caller = await house.leased(lease)
      return codeOf(house.service.perform(caller, 'files.merge', { from: 'runs/one', into }))
    }
    const all = { actions: ['list', 'read', 'write', 'propose'] as const }
    expect(await merging({ actions: ['read', 'write'] }, 'main')).toBe('SCOPE_EXCEEDED')
    expect(await merging({ actions: ['read', 'propose'] }, 'runs/base')).toBe('SCOPE_EXCEEDED')
    expect(await merging({ actions: [...all.actions], branches: ['runs/one'] }, 'runs/base')).toBe('SCOPE_EXCEEDED')
    expect(await merging({ actions: [...all.actions], branches: ['runs/base'] }, 'runs/base')).toBe('SCOPE_EXCEEDED')
    expect(await merging({ actions: [...all.actions], paths: ['/a.md'] }, 'runs/base')).toBe('SCOPE_EXCEEDED')
    expect(await merging({ actions: [...all.actions], deny_paths: ['/secret.md'] }, 'runs/base')).toBe('SCOPE_EXCEEDED')
    expect(headOf(house, 'runs/base')).not.toBe(headOf(house, 'runs/one'))
    expect(await merging({ actions: [...all.actions] }, 'main')).toBe('GATE_REQUIRED')
  })

  test('L4.2 a reader is not told of files above its lease', async () => {
    const house = await open()
    const agent = await house.leased({ labels_max: 'private', label_tags: [] })
    const asked = { from: 'runs/one', into: 'runs/base' }
    const preview = (await house.service.perform(agent, 'files.preview', asked)) as Preview
    expect(preview).toMatchObject({ hidden: 1, manifest: [{ path: 'a.md' }] })
    const diff = await house.service.perform(agent, 'files.diff', { from: 'runs/base', to: 'runs/one' })
    expect(JSON.stringify(diff)).not.toContain('secret')
    await house.owned('files.merge', asked)
    const recycled = await house.service.perform(agent, 'files.recycle', {})
    expect(recycled).toEqual({ items: [], next_cursor: null })
    const restored = house.service.perform(agent, 'files.restore', { path: 'secret.md', branch: 'runs/back' })
    expect(await codeOf(restored)).toBe('NOT_FOUND')
  })

  test('L4.2 a note that was copied to another branch is shown there to nobody who may not see the note', async () => {
    const house = await open()
    const remember = { entry: { content: 'zz nobody else', type: 'other' }, label: 'sealed:owner' }
    const { id } = await house.owned<{ id: string }>('memory.create', remember)
    const [path = ''] = listFiles(house.store.view(), { home: house.home, at: 'memory', recursive: true })
      .filter(({ kind }) => kind === 'file')
      .map((item) => item.path)
    expect(path).toContain(id)
    // as the owner's git would: the same file at the same path, and the tree says nothing of it
    const { bytes } = readFile(house.store.view(), { home: house.home, at: 'memory', path })
    await write(house, 'runs/one', path, Buffer.from(bytes).toString())
    const agent = await house.leased({ labels_max: 'private', label_tags: [] })
    const ask = (operation: string, input: object) => house.service.perform(agent, operation, input)
    expect(await codeOf(ask('files.read', { branch: 'runs/one', path }))).toBe('NOT_FOUND')
    for (const [operation, input] of [
      ['files.list', { branch: 'runs/one' }],
      ['files.diff', { from: 'runs/base', to: 'runs/one' }],
      ['files.preview', { from: 'runs/one', into: 'runs/base' }],
    ] as const)
      expect(JSON.stringify(await ask(operation, input))).not.toMatch(/zz nobody|mem_/)
    await expect(house.owned('files.read', { branch: 'runs/one', path })).resolves.toMatchObject({ path })
  })

  test('a difference is told by lines, of one path where one is named', async () => {
    const house = await open()
    const ask = (path?: string) =>
      house.owned<{ items: Preview['manifest'] }>('files.diff', {
        from: 'runs/base',
        to: 'runs/one',
        ...(path === undefined ? {} : { path }),
      })
    const { items } = await ask()
    expect(items.map(({ path }) => path)).toEqual(['a.md', 'secret.md'])
    expect(items[0]?.diff).toBe('@@ -1,4 +1,4 @@\n 1\n 2\n 3\n-4\n+four\n')
    expect((await ask('secret.md')).items).toMatchObject([{ op: 'delete', diff: '@@ -1,1 +0,0 @@\n-secret\n' }])
  })

  test('a difference tells the commit of a submodule that is new, moved, gone, or where a file was', async () => {
    const house = await open()
    const [one, two] = ['ab'.repeat(32), 'cd'.repeat(32)]
    const told = async (from: string, to: string) =>
      (await house.owned<{ items: Preview['manifest'] }>('files.diff', { from, to, path: 'lib' })).items
    await pin(house, 'runs/base', 'lib', one)
    const added = `@@ -0,0 +1,1 @@\n+submodule at ${one}\n`
    expect(await told('runs/one', 'runs/base')).toMatchObject([{ op: 'add', path: 'lib', diff: added }])
    const gone = `@@ -1,1 +0,0 @@\n-submodule at ${one}\n`
    expect(await told('runs/base', 'runs/one')).toMatchObject([{ op: 'delete', path: 'lib', diff: gone }])
    await house.owned('files.branch', { branch: 'runs/two', from: 'runs/base' })
    await pin(house, 'runs/two', 'lib', two)
    const moved = `@@ -1,1 +1,1 @@\n-submodule at ${one}\n+submodule at ${two}\n`
    expect(await told('runs/base', 'runs/two')).toMatchObject([{ op: 'change', path: 'lib', diff: moved }])
    await write(house, 'runs/one', 'lib', 'a file\n')
    const replaced = `@@ -1,1 +1,1 @@\n-a file\n+submodule at ${two}\n`
    expect(await told('runs/one', 'runs/two')).toMatchObject([{ op: 'change', path: 'lib', diff: replaced }])
  })

  test.each([
    ['files.merge', { from: 'memory', into: 'runs/base' }],
    ['files.merge', { from: 'runs/base', into: 'memory' }],
    ['files.branch', { branch: 'runs/notes', from: 'memory' }],
    ['files.diff', { from: 'memory', to: 'runs/base' }],
    ['files.snapshot', { name: 'notes', of: 'memory' }],
    ['files.restore', { branch: 'memory', path: 'a.md' }],
    ['files.removeBranch', { branch: 'memory' }],
    ['files.removeBranch', { branch: 'main' }],
  ])('%s of notes or main is refused: %j', async (operation, input) => {
    const house = await open()
    expect(await codeOf(house.owned(operation, input))).toBe('PROTECTED')
  })
})

describe('the recycle area', () => {
  test('L0.3 what a merge deleted is listed and restored with its label, until its date', async () => {
    const house = await open()
    const { commit } = await house.owned<Done>('files.merge', { from: 'runs/one', into: 'runs/base' })
    await expect(house.owned('files.recycle')).resolves.toMatchObject({
      items: [{ path: 'secret.md', branch: 'runs/base', label: 'sealed:owner', commit }],
    })
    const input = { path: 'secret.md', branch: 'runs/back', deleted_by: commit }
    await expect(house.owned('files.restore', input)).resolves.toMatchObject({ label: 'sealed:owner' })
    await expect(house.owned('files.read', { branch: 'runs/back', path: 'secret.md' })).resolves.toMatchObject({
      text: 'secret\n',
      label: { level: 'sealed' },
    })
  })

  test('a removed branch is in it and comes back', async () => {
    const house = await open()
    const head = headOf(house, 'runs/one')
    expect(await codeOf(house.owned('files.removeBranch', { branch: 'runs/one', expect: '0'.repeat(64) }))).toBe(
      'CONFLICT',
    )
    await house.owned('files.removeBranch', { branch: 'runs/one' })
    expect(headOf(house, 'runs/one')).toBeUndefined()
    await expect(house.owned('files.recycle')).resolves.toMatchObject({ items: [{ branch: 'runs/one', path: null }] })
    await house.owned('files.restore', { branch: 'runs/one' })
    expect(headOf(house, 'runs/one')).toBe(head)
  })
})

describe('snapshots', () => {
  test('L1.4 one is made with its action, and no operation moves, replaces or removes it', async () => {
    const house = await open()
    const writer = await house.leased({ actions: ['list', 'read', 'write', 'propose'] })
    expect(await codeOf(house.service.perform(writer, 'files.snapshot', { name: 'x' }))).toBe('SCOPE_EXCEEDED')
    await house.owned('files.snapshot', { name: 'before', of: 'runs/base' })
    const branch = 'snapshots/before'
    const head = headOf(house, branch)
    for (const [operation, input, code] of [
      ['files.snapshot', { name: 'before', of: 'runs/one' }, 'CONFLICT'],
      ['files.write', { branch, path: 'a.md', text: 'x' }, 'PROTECTED'],
      ['files.removeBranch', { branch }, 'PROTECTED'],
      ['files.branch', { branch: 'snapshots/other' }, 'PROTECTED'],
      ['files.merge', { from: 'runs/one', into: branch }, 'PROTECTED'],
      ['files.restore', { branch }, 'NOT_FOUND'],
    ] as const)
      expect(await codeOf(house.owned(operation, input)), operation).toBe(code)
    expect(headOf(house, branch)).toBe(head)
    await expect(house.owned('files.read', { branch, path: 'a.md' })).resolves.toMatchObject({ text: '1\n2\n3\n4\n' })
  })
})

describe('upkeep', () => {
  test('is for who rules the node, and says what it did', async () => {
    const house = await open()
    const agent = await house.leased({ actions: ['list', 'read', 'write'] })
    for (const operation of ['files.gc', 'files.fsck'])
      expect(await codeOf(house.service.perform(agent, operation, {}))).toBe('SCOPE_EXCEEDED')
    await house.owned('files.removeBranch', { branch: 'runs/one' })
    await expect(house.owned('files.gc')).resolves.toMatchObject({ removed: 0, expired: 0, paused: false })
    await expect(house.owned('files.fsck')).resolves.toMatchObject({ damaged: [], unneeded: 0 })
  })

  test('names what is damaged and what needs it', async () => {
    const house = await open()
    const { oid } = await house.owned<{ oid: string }>('files.read', { branch: 'runs/base', path: 'secret.md' })
    await house.store.transact((tx) => tx.put(key('object', house.home, oid), new Uint8Array([1, 2, 3])))
    await expect(house.owned('files.fsck')).resolves.toMatchObject({
      damaged: [{ oid, reason: 'damaged', paths: ['secret.md'], branches: ['runs/base', 'runs/one'], cut: false }],
    })
  })
})
