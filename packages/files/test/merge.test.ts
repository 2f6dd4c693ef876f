import { describe, expect, test } from 'vitest'
import { applyMerge, getRef, moveRef, readCommit } from '../src/index.ts'
import { openRig, type Files } from './merge-rig.ts'
import { NOW, WORDS, openHome, snapshot } from './open-home.ts'

async function open(base: Files = {}) {
  const { store, home } = await openHome()
  const rig = await openRig(store, home)
  const root = await rig.set('main', base)
  return { store, home, rig, root }
}

/** Merge `theirs` into `ours`, both made from `base`. */
async function mergeOf(base: Files, ours: Files, theirs: Files) {
  const { rig, root, store, home } = await open(base)
  await rig.set('runs/one', theirs, [root])
  await rig.set('main', ours)
  const done = await rig.merge('runs/one', 'main')
  return { ...done.preview, commit: done.commit, files: rig.files('main'), modes: rig.modes('main'), rig, store, home }
}

describe('a merge', () => {
  test('takes what each side changed, text by lines', async () => {
    const text = 'one\ntwo\nthree\nfour\nfive\n'
    const { files, conflicts, manifest } = await mergeOf(
      { 'a.md': text, 'b.md': 'b\n', 'gone.md': 'x\n' },
      { 'a.md': text.replace('one', 'ONE'), 'b.md': 'b\n', 'gone.md': 'x\n', 'ours.md': 'o\n' },
      { 'a.md': text.replace('five', 'FIVE'), 'b.md': 'B\n', 'theirs/t.md': 't\n' },
    )
    expect(conflicts).toEqual([])
    expect(files).toEqual({
      'a.md': 'ONE\ntwo\nthree\nfour\nFIVE\n',
      'b.md': 'B\n',
      'ours.md': 'o\n',
      'theirs/t.md': 't\n',
    })
    expect(manifest.map(({ op, path }) => `${op} ${path}`)).toEqual([
      'change a.md',
      'change b.md',
      'delete gone.md',
      'add theirs/t.md',
    ])
  })

  test('has both heads as parents and moves a protected branch', async () => {
    const { rig, store, home, root } = await open({ a: '1' })
    const theirs = (await rig.write('runs/one', 'b', '2')).commit
    const { commit } = await rig.merge('runs/one', 'main')
    expect(readCommit(store.view(), home.id, commit).parents).toEqual([root, theirs])
    expect(getRef(store.view(), home.id, 'main')).toMatchObject({ commit, protected: true })
  })

  test('of a branch with nothing new changes nothing', async () => {
    const { rig, store, home, root } = await open({ a: '1' })
    await store.transact((tx) => moveRef(tx, home.id, 'runs/one', { expect: null, to: root, now: NOW }))
    const head = await rig.set('main', { a: '2' })
    const before = await snapshot(store)
    expect(await rig.merge('runs/one', 'main')).toMatchObject({ commit: head, preview: { manifest: [] } })
    expect(await snapshot(store)).toEqual(before)
  })

  test('sees a file that moved, and brings the other side along', async () => {
    const text = Array.from({ length: 10 }, (_, i) => `line ${i}\n`).join('')
    const { files, conflicts, modes } = await mergeOf(
      { 'old/name.sh': text },
      { 'new/name.sh': text.replace('line 9', 'last') },
      { 'old/name.sh': `#!/bin/sh\n${text}` },
    )
    expect(conflicts).toEqual([])
    expect(files).toEqual({ 'new/name.sh': `#!/bin/sh\n${text.replace('line 9', 'last')}` })
    expect(modes).toEqual({ 'new/name.sh': '100755' })
  })

  test.each<[string, Files, Files, Files]>([
    [
      'what git acts on',
      { 'a.txt': '# nothing\n' },
      { 'a.txt': '[submodule "x"]\n\turl = -u./payload\n' },
      { '.gitmodules': '# nothing\n' },
    ],
    ['a link out of the tree', { 'a/b/link': '->' }, { 'a/b/link': '->/../../../x' }, { link: '->' }],
  ])('of a file that moves on one side and becomes %s there by the other is refused', async (_, base, ours, theirs) => {
    await expect(mergeOf(base, ours, theirs)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await expect(mergeOf(base, theirs, ours)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    // where it lay it harms nobody
    await expect(mergeOf(base, base, ours)).resolves.toMatchObject({ conflicts: [], files: ours })
  })

  test('does not take a file of which less than half is left for one that moved', async () => {
    const { files, conflicts } = await mergeOf({ a: '1\n2\n3\n4\n' }, { b: '1\nx\ny\nz\n' }, { a: '1\n2\n3\nFOUR\n' })
    expect(files).toEqual({ a: '1\n2\n3\nFOUR\n', b: '1\nx\ny\nz\n' })
    expect(conflicts).toEqual([{ kind: 'deleted', path: 'a', kept: ['a'] }])
  })

  test.each<[string, Files, Files, Files, Files, string]>([
    [
      'both sides change the same line',
      { 'notes/plan.md': 'a\n' },
      { 'notes/plan.md': 'ours\n' },
      { 'notes/plan.md': 'theirs\n' },
      { 'notes/plan.md': 'ours\n', 'notes/plan (from runs-one).md': 'theirs\n' },
      'content',
    ],
    ['both sides add a file', {}, { a: 'o' }, { a: 't' }, { a: 'o', 'a (from runs-one)': 't' }, 'added'],
    [
      'bytes that are no text',
      { 'a.png': '\0a' },
      { 'a.png': '\0o' },
      { 'a.png': '\0t' },
      { 'a.png': '\0o', 'a (from runs-one).png': '\0t' },
      'content',
    ],
    ['one deletes what the other changes', { a: '1' }, {}, { a: '2' }, { a: '2' }, 'deleted'],
    ['one changes what the other deletes', { a: '1' }, { a: '2' }, {}, { a: '2' }, 'deleted'],
    [
      'both move it, each elsewhere',
      { a: 'x\ny\n' },
      { b: 'x\ny\n' },
      { c: 'x\ny\n' },
      { b: 'x\ny\n', c: 'x\ny\n' },
      'renamed',
    ],
    [
      'two files want one name',
      { a: 'x\ny\n' },
      { b: 'x\ny\n' },
      { a: 'x\ny\n', b: 'other' },
      { b: 'x\ny\n', 'b (from runs-one)': 'other' },
      'path',
    ],
    [
      'a file wants the name of a folder',
      {},
      { a: 'file' },
      { 'a/b': 'in a folder' },
      { 'a (from main)': 'file', 'a/b': 'in a folder' },
      'path',
    ],
    [
      'a folder wants the name of a file',
      {},
      { 'a/b': 'in a folder' },
      { a: 'file' },
      { 'a (from runs-one)': 'file', 'a/b': 'in a folder' },
      'path',
    ],
    [
      'the name for the other side is taken',
      { a: '1' },
      { a: 'o', 'a (from runs-one)': 'mine' },
      { a: 't' },
      { a: 'o', 'a (from runs-one)': 'mine', 'a (from runs-one 2)': 't' },
      'content',
    ],
    ['a link and a file', { a: '1' }, { a: '->x' }, { a: '2' }, { a: '->x', 'a (from runs-one)': '2' }, 'content'],
  ])('keeps both sides where %s', async (_, base, ours, theirs, files, kind) => {
    const done = await mergeOf(base, ours, theirs)
    expect(done.files).toEqual(files)
    expect(done.conflicts).toMatchObject([{ kind }])
  })

  test('keeps a long name within what file systems take', async () => {
    const name = `${'é'.repeat(120)}.markdown`
    const { files } = await mergeOf({ [name]: '1' }, { [name]: 'o' }, { [name]: 't' })
    const other = Object.keys(files).find((path) => path !== name) ?? ''
    expect(Buffer.byteLength(other)).toBeLessThanOrEqual(255)
    expect(other).toMatch(/^é+ \(from runs-one\)\.markdown$/)
  })

  test('takes a change of mode by itself', async () => {
    const { modes, conflicts } = await mergeOf({ a: 'x\ny\nz\n' }, { a: 'x\ny\nZ\n' }, { a: '#!x\ny\nz\n' })
    expect(conflicts).toEqual([])
    expect(modes).toEqual({ a: '100755' })
  })

  test('goes on from the last merge, not from where it all began', async () => {
    const { rig, store, home } = await open({ a: '1\n', b: '1\n' })
    await rig.write('runs/one', 'a', '2\n')
    await rig.merge('runs/one', 'main')
    await rig.write('runs/one', 'a', '3\n')
    const { base, conflicts } = rig.preview('runs/one', 'main')
    expect(base).toBe(readCommit(store.view(), home.id, getRef(store.view(), home.id, 'main')?.commit ?? '').parents[1])
    expect(conflicts).toEqual([])
    await rig.merge('runs/one', 'main')
    expect(rig.files('main')).toEqual({ a: '3\n', b: '1\n' })
  })

  test.each([
    ['the branch of the notes', 'memory', 'main', 'PROTECTED'],
    ['into the branch of the notes', 'main', 'memory', 'PROTECTED'],
    ['into a snapshot', 'main', 'snapshots/root', 'PROTECTED'],
    ['into itself', 'main', 'main', 'INVALID_INPUT'],
    ['a branch that is not there', 'runs/none', 'main', 'NOT_FOUND'],
  ])('%s is refused', async (_, from, into, code) => {
    const { rig, store } = await open()
    const before = await snapshot(store)
    await expect(rig.merge(from, into)).rejects.toMatchObject({ code })
    expect(await snapshot(store)).toEqual(before)
  })

  test('that was agreed to before something moved is refused, and nothing is written', async () => {
    const { rig, store, home } = await open({ a: '1' })
    await rig.write('runs/one', 'a', '2')
    const preview = rig.preview('runs/one', 'main')
    const apply = (change: object) =>
      store.transact((tx) =>
        applyMerge(tx, { ...WORDS, home: home.id, from: 'runs/one', into: 'main', preview: { ...preview, ...change } }),
      )
    const before = await snapshot(store)
    for (const field of ['base', 'ours', 'theirs', 'tree', 'digest']) {
      const refused = { code: 'CONFLICT', details: { field } }
      await expect(apply({ [field]: '0'.repeat(64) })).rejects.toMatchObject(refused)
    }
    expect(await snapshot(store)).toEqual(before)
    await rig.write('runs/two', 'b', '2')
    await rig.merge('runs/two', 'main')
    await expect(apply({})).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  test('a preview writes nothing, and the merge does what it said', async () => {
    const { rig, store, home } = await open({ a: '1\n2\n3\n4\n' })
    await rig.write('runs/one', 'a', '1\n2\n3\nfour\n')
    await rig.write('runs/two', 'a', 'one\n2\n3\n4\n')
    await rig.merge('runs/two', 'main')
    const before = await snapshot(store)
    const preview = rig.preview('runs/one', 'main')
    expect(await snapshot(store)).toEqual(before)
    const { commit } = await rig.merge('runs/one', 'main')
    expect(readCommit(store.view(), home.id, commit).tree).toBe(preview.tree)
  })
})
