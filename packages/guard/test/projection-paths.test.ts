/** A reader who reaches some paths only: what lies beside them is hidden as what lies above its clearance is. */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { utf8 } from '@csb/core'
import { commitFiles, listFiles, readCommit, readFile, type CommitFiles, type Sight } from '@csb/files'
import { applyProjected, projectCommit } from '../src/index.ts'
import { openHome, snapshot } from './open-home.ts'
import {
  BRANCH,
  FULL,
  LOW,
  OWNER,
  VISIBLE,
  everything,
  filesOf,
  isHidden,
  nextHome,
  replay,
  steps,
  wordsAt,
} from './replay.ts'

/** Sees every label, and of the tree what is not hidden. */
const SIGHT: Sight = { ...FULL, paths: ['two words.txt', 'docs', 'a.md', 'fresh'], denied: ['docs/zzfirst.md'] }
const LABELLED = '.csb/labels.json'

const seenOf = (store: Parameters<typeof projectCommit>[0], home: string, commit: string, clearance = SIGHT) =>
  projectCommit(store, { home, commit, clearance })

describe('what a reader of some paths sees', () => {
  test('L1.2 L4.2 no name, id, byte or message of what lies beside them is in any object', async () => {
    const { store } = await openHome()
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const home = nextHome()
        const commits = await replay(store, home, taken)
        const head = commits.at(-1) ?? ''
        const seen = await seenOf(store, home, head)
        const files = filesOf(store, home, head).filter((path) => !isHidden(path) && path !== LABELLED)
        if (seen === null) {
          expect(files).toEqual([])
          return
        }
        const { text, oids } = everything(store, home, seen)
        expect(text.replaceAll(OWNER.did, '')).not.toContain('zz')
        for (const commit of commits) {
          const all = listFiles(store.view(), { home, at: commit, recursive: true })
          for (const { oid } of all.filter(({ path }) => isHidden(path))) expect(oids.has(oid)).toBe(false)
        }
        expect(filesOf(store, home, seen).filter((path) => path !== LABELLED)).toEqual(files)
        for (const path of files) {
          const [a, b] = [head, seen].map((at) => readFile(store.view(), { home, at, path }).bytes)
          expect(a).toEqual(b)
        }
      }),
      { numRuns: 40 },
    )
  })

  test('L4.2 is the same on every node, whatever lies beside them, and whoever asked before', async () => {
    const [one, two] = [await openHome(), await openHome()]
    await fc.assert(
      fc.asyncProperty(steps, fc.boolean(), async (taken, others) => {
        const home = nextHome()
        const [head, twin] = [await replay(one.store, home, taken), await replay(two.store, home, taken, 'another')]
        if (others) {
          for (const sight of [FULL, LOW, { ...SIGHT, denied: [] }, { ...FULL, paths: ['docs'] }])
            await seenOf(one.store, home, head.at(-1) ?? '', sight)
        }
        const again = { ...SIGHT, paths: SIGHT.paths?.toReversed() ?? [] }
        expect(await seenOf(one.store, home, head.at(-1) ?? '')).toBe(
          await seenOf(two.store, home, twin.at(-1) ?? '', again),
        )
      }),
      { numRuns: 25 },
    )
  })

  test('all paths are no bound, and no path shows nothing', async () => {
    const { store } = await openHome()
    const home = nextHome()
    const [head = ''] = await replay(store, home, [{ changes: [['a.md', 1]], message: 'x' }])
    expect(await seenOf(store, home, head, { ...FULL, paths: [''], denied: [] })).toBe(head)
    // the first commit of a home is empty, and a function of its id
    const root = readCommit(store.view(), home, head).parents[0]
    for (const paths of [[], ['a'], ['a.md/below']])
      expect(await seenOf(store, home, head, { ...FULL, paths })).toBe(root)
  })
})

describe('what comes back from a reader of some paths', () => {
  const edits = fc.uniqueArray(fc.tuple(fc.constantFrom(...VISIBLE, 'docs/new.md', 'fresh/x'), fc.option(fc.nat(9))), {
    selector: ([path]) => path,
    minLength: 1,
  })

  test('L1.2 lands on the full tree as a direct edit of the same files would', async () => {
    const { store } = await openHome()
    await fc.assert(
      fc.asyncProperty(steps, edits, async (taken, edit) => {
        const home = nextHome()
        const head = (await replay(store, home, taken)).at(-1) ?? ''
        const base = await seenOf(store, home, head)
        fc.pre(base !== null)
        const changes = edit.map(([path, at]) => ({ path, bytes: at === null ? null : utf8(`edited ${at}`) }))
        const words = wordsAt(home, 99, 'edit')
        const input: CommitFiles = { ...words, branch: 'runs/direct', from: head, changes }
        const direct = await store.transact((tx) => commitFiles(tx, input))
        const back = await store.transact((tx) =>
          applyProjected(tx, { ...words, clearance: SIGHT, branch: 'runs/back', from: BRANCH, base, changes }),
        )
        expect(back.placed).toEqual([])
        expect(readCommit(store.view(), home, back.commit).tree).toBe(direct.tree)
        expect(await seenOf(store, home, back.commit)).toBe(back.projected)
      }),
      { numRuns: 30 },
    )
  })

  test('L1.2 beside them is refused, also under a name that gives way, and nothing is written', async () => {
    const { store } = await openHome()
    const home = nextHome()
    const taken = [
      {
        changes: [
          ['docs/zzfirst.md', 1],
          ['a.md', 1],
        ] as const,
        message: 'x',
      },
    ]
    const [head = ''] = await replay(store, home, taken)
    const sight: Sight = { ...FULL, paths: ['docs/zzfirst.md', 'a.md'], denied: ['docs/zzfirst.md'] }
    const base = (await seenOf(store, home, head, sight)) ?? ''
    const apply = (path: string) =>
      store.transact((tx) =>
        applyProjected(tx, {
          ...wordsAt(home, 9, 'edit'),
          clearance: sight,
          branch: 'runs/back',
          from: BRANCH,
          base,
          changes: [{ path, bytes: utf8('x') }],
        }),
      )
    const before = await snapshot(store)
    for (const path of ['docs/zzfirst.md', 'docs/new.md', 'b.md', 'a.md.txt', 'zzfolder/d.md'])
      await expect(apply(path)).rejects.toMatchObject({ code: 'SCOPE_EXCEEDED', details: { field: 'paths' } })
    await expect(apply('a.md/below')).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    expect(await snapshot(store)).toEqual(before)
    expect((await apply('a.md')).placed).toEqual([])
  })
})
