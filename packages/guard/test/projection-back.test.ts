import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { utf8 } from '@csb/core'
import { commitFiles, readCommit, readFile, type CommitFiles } from '@csb/files'
import { applyProjected } from '../src/index.ts'
import { openHome } from './open-home.ts'
import {
  BRANCH,
  HIDDEN,
  LOW,
  VISIBLE,
  filesOf,
  nextHome,
  project,
  replay,
  steps,
  textOf,
  wordsAt,
  type Step,
} from './replay.ts'

describe('changes that come back', () => {
  const edits = fc.uniqueArray(fc.tuple(fc.constantFrom(...VISIBLE, 'docs/new.md', 'fresh/x'), fc.option(fc.nat(9))), {
    selector: ([path]) => path,
    minLength: 1,
  })

  test('land on the full tree as a direct edit of the same files would', async () => {
    const { store } = await openHome()
    await fc.assert(
      fc.asyncProperty(steps, edits, async (taken, edit) => {
        const home = nextHome()
        const head = (await replay(store, home, taken)).at(-1) ?? ''
        const base = (await project(store, home, head)) ?? ''
        const changes = edit.map(([path, version]) => ({
          path,
          bytes: version === null ? null : utf8(`edited ${version}`),
        }))
        const words = wordsAt(home, 99, 'edit')
        const input: CommitFiles = { ...words, branch: 'runs/direct', from: head, changes }
        const direct = await store.transact((tx) => commitFiles(tx, input))
        const seenDirect = await store.transact((tx) =>
          commitFiles(tx, { ...words, branch: 'runs/seen', from: base, changes }),
        )
        const back = await store.transact((tx) =>
          applyProjected(tx, { ...words, clearance: LOW, branch: 'runs/back', from: BRANCH, base, changes }),
        )
        const treeOf = (commit: string) => readCommit(store.view(), home, commit).tree
        expect(back.placed).toEqual([])
        expect(treeOf(back.commit)).toBe(direct.tree)
        expect(treeOf(back.projected ?? '')).toBe(seenDirect.tree)
        expect(await project(store, home, back.commit)).toBe(back.projected)
      }),
      { numRuns: 30 },
    )
  })

  test('get another name where something hidden stands in the way, which is neither touched nor deleted', async () => {
    const { store } = await openHome()
    const home = nextHome()
    const full: Step = { changes: [...VISIBLE, ...HIDDEN].map((path) => [path, 1]), message: 'all' }
    const [head = ''] = await replay(store, home, [full])
    const base = (await project(store, home, head)) ?? ''
    const apply = (changes: readonly { path: string; bytes: Uint8Array | null }[], branch: string, at = base) =>
      store.transact((tx) =>
        applyProjected(tx, {
          ...wordsAt(home, 9, 'edit zzplain'),
          clearance: LOW,
          branch,
          from: BRANCH,
          base: at,
          changes,
        }),
      )
    const mine = (path: string) => ({ path, bytes: utf8(`mine ${path}`) })
    const drop = (path: string) => ({ path, bytes: null })
    const done = await apply(
      [mine('docs/zzfirst.md'), mine('zzfolder'), mine('zzplain/x'), mine('zzplain/y'), mine('zzgone/later.md')],
      'runs/a',
    )
    expect(done.placed).toEqual([
      { path: 'docs/zzfirst.md', at: 'docs/zzfirst (copy).md' },
      { path: 'zzfolder', at: 'zzfolder (copy)' },
      { path: 'zzplain/x', at: 'zzplain (copy)/x' },
      { path: 'zzplain/y', at: 'zzplain (copy)/y' },
      { path: 'zzgone/later.md', at: 'zzgone/later (copy).md' },
    ])
    for (const path of HIDDEN)
      expect(Buffer.from(readFile(store.view(), { home, at: done.commit, path }).bytes)).toEqual(
        Buffer.from(textOf(path, 1, 'one')),
      )
    expect(filesOf(store, home, done.projected ?? '')).toEqual(expect.arrayContaining(done.placed.map(({ at }) => at)))
    // told to its author, who can have known of nothing: asking by messages tells nothing
    expect(readCommit(store.view(), home, done.projected ?? '').message).toBe('edit zzplain')
    const kept = await apply([...HIDDEN, 'zzfolder'].map(drop), 'runs/b')
    expect(kept.projected).toBe(base)
    expect(readCommit(store.view(), home, kept.commit).tree).toBe(readCommit(store.view(), home, head).tree)
  })

  test('get another name where something hidden differs by letters only that some system takes for one', async () => {
    const { store } = await openHome()
    const home = nextHome()
    const full: Step = { changes: [...VISIBLE, ...HIDDEN].map((path) => [path, 1]), message: 'all' }
    const [head = ''] = await replay(store, home, [full])
    const base = (await project(store, home, head)) ?? ''
    const apply = (paths: readonly string[], branch: string) =>
      store.transact((tx) =>
        applyProjected(tx, {
          ...wordsAt(home, 9, 'edit'),
          clearance: LOW,
          branch,
          from: BRANCH,
          base,
          changes: paths.map((path) => ({ path, bytes: utf8('mine') })),
        }),
      )
    const done = await apply(['docs/ZZfirst.md', 'ZZplain/x'], 'runs/a')
    expect(done.placed).toEqual([
      { path: 'docs/ZZfirst.md', at: 'docs/ZZfirst (copy).md' },
      { path: 'ZZplain/x', at: 'ZZplain (copy)/x' },
    ])
    // what is seen is no secret
    await expect(apply(['A.md'], 'runs/b')).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  test('are refused on a protected branch, on a base that nobody sees, and in the file of labels', async () => {
    const { store } = await openHome()
    const home = nextHome()
    const commits = await replay(store, home, [
      { changes: [['a.md', 1]], message: 'x' },
      { changes: [['a.md', 2]], message: 'y' },
    ])
    const [old, head] = await Promise.all(commits.map((commit) => project(store, home, commit)))
    const apply = (extra: Partial<CommitFiles> & { base: string }) =>
      store.transact((tx) =>
        applyProjected(tx, {
          ...wordsAt(home, 9, 'edit'),
          clearance: LOW,
          branch: 'runs/x',
          changes: [{ path: 'a.md', bytes: utf8('mine') }],
          from: BRANCH,
          ...extra,
        }),
      )
    await expect(apply({ base: head ?? '', branch: 'main' })).rejects.toMatchObject({ code: 'PROTECTED' })
    await expect(apply({ base: old ?? '', branch: BRANCH })).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(apply({ base: 'a'.repeat(64) })).rejects.toMatchObject({ code: 'CONFLICT' })
    const labels = [{ path: '.csb/labels.json', bytes: utf8('{}') }]
    await expect(apply({ base: head ?? '', changes: labels })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    const late = await apply({ base: old ?? '' })
    expect(readCommit(store.view(), home, late.commit).parents).toEqual([commits[0]])
  })
})
