import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { OWNER_PRIVATE, createKeyPair, parseLabel, utf8, type Clearance } from '@csb/core'
import {
  commitFiles,
  createHome,
  getRef,
  listFiles,
  readBlob,
  readCommit,
  readFile,
  readTree,
  staleProjections,
  writeBlob,
  type CommitFiles,
} from '@csb/files'
import { putNotes } from '@csb/memory'
import type { Store } from '@csb/store'
import { applyProjected, projectCommit } from '../src/index.ts'
import { NOW, openHome } from './open-home.ts'

const LOW: Clearance = { level: 'private', tags: [] }
const FULL: Clearance = { level: 'sealed', tags: ['*'] }
const OWNER = createKeyPair()
const BRANCH = 'runs/one'
const VISIBLE = ['a.md', 'docs/b.md', 'docs/deep/c.md', 'two words.txt']
const HIDDEN = ['docs/zzfirst.md', 'zzfolder/d.md', 'zzfolder/zzinner/f', 'zzplain']
const LABELS = [
  { path: 'docs/zzfirst.md', label: parseLabel('sealed:owner') },
  { path: 'zzfolder', label: parseLabel('private:owner:health') },
  { path: 'zzplain', label: parseLabel('sealed:owner:health') },
  { path: 'docs', label: parseLabel('private:agent') },
  { path: 'zzgone/later.md', label: parseLabel('sealed:owner') },
]
const MESSAGES = [
  'tidy up',
  'see docs/zzfirst.md',
  'zzplain and more',
  'write a.md\n\nas zzfolder/d.md says',
  'of zzfirst.md',
]

type Step = { readonly changes: readonly (readonly [string, number | null])[]; readonly message: string }

const pathOf = fc.constantFrom(...VISIBLE, ...HIDDEN)
const steps = fc.array(
  fc.record({
    changes: fc.uniqueArray(fc.tuple(pathOf, fc.option(fc.nat(3))), {
      selector: ([path]) => path,
      minLength: 1,
      maxLength: 4,
    }),
    message: fc.constantFrom(...MESSAGES),
  }),
  { minLength: 1, maxLength: 8 },
)

const isHidden = (path: string): boolean => HIDDEN.includes(path)
const textOf = (path: string, version: number, secret: string) =>
  utf8(isHidden(path) ? `zzbody ${secret} ${path} ${version}` : `open ${version}`)

/** A home in which these steps were taken, each a commit on the branch. */
async function replay(store: Store, id: string, taken: readonly Step[], secret = 'one'): Promise<string[]> {
  const home = await store.transact((tx) => createHome(tx, { id, owner: OWNER.did, origin: OWNER.did, now: NOW }))
  const commits: string[] = []
  for (const [at, { changes, message }] of taken.entries()) {
    const { commit } = await store.transact((tx) =>
      commitFiles(tx, {
        ...wordsAt(home.id, at, message),
        branch: BRANCH,
        changes: changes.map(([path, version]) => ({
          path,
          bytes: version === null ? null : textOf(path, version, secret),
        })),
        ...(at === 0 ? { labels: LABELS } : {}),
      }),
    )
    commits.push(commit)
  }
  return commits
}

const wordsAt = (home: string, at: number, message: string) => ({
  home,
  author: { name: 'Ada', did: OWNER.did },
  message,
  trailers: { 'Csb-Run': `run_${NOW}_abc`, 'Csb-From': 'f'.repeat(64) },
  now: NOW + at * 1000,
})

let homes = 0
const nextHome = (): string => {
  const letters = Array.from(String(homes++).padStart(26, '0'), (digit) => 'abcdefghij'[Number(digit)])
  return `home_${letters.join('')}`
}

/** Everything that can be read from a commit on: what a clone would get. */
function everything(store: Store, home: string, commit: string): { text: string; oids: Set<string> } {
  const view = store.view()
  const oids = new Set<string>()
  const texts: string[] = []
  const tree = (oid: string): void => {
    if (oids.has(oid)) return
    oids.add(oid)
    for (const entry of readTree(view, home, oid)) {
      texts.push(JSON.stringify(entry))
      if (entry.mode === '40000') tree(entry.oid)
      else {
        oids.add(entry.oid)
        texts.push(Buffer.from(readBlob(view, home, entry.oid)).toString())
      }
    }
  }
  const walk = [commit]
  for (let oid = walk.pop(); oid !== undefined; oid = walk.pop()) {
    if (oids.has(oid)) continue
    oids.add(oid)
    const read = readCommit(view, home, oid)
    texts.push(JSON.stringify(read))
    tree(read.tree)
    walk.push(...read.parents)
  }
  return { text: texts.join('\n'), oids }
}

const project = (store: Store, home: string, commit: string, clearance = LOW) =>
  projectCommit(store, { home, commit, clearance })

const filesOf = (store: Store, home: string, at: string): string[] =>
  listFiles(store.view(), { home, at, recursive: true })
    .filter(({ kind }) => kind === 'file')
    .map(({ path }) => path)
    .sort()

describe('what a reader sees of a commit', () => {
  test('L4.2 no name, id, byte or message of a hidden file is in any object of the projection', async () => {
    const { store } = await openHome()
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const home = nextHome()
        const commits = await replay(store, home, taken)
        const head = commits.at(-1) ?? ''
        const seen = (await project(store, home, head)) ?? ''
        const { text, oids } = everything(store, home, seen)
        expect(text).not.toContain('zz')
        expect(text).not.toContain('f'.repeat(64))
        for (const commit of commits) {
          const hidden = listFiles(store.view(), { home, at: commit, recursive: true }).filter(({ path }) =>
            isHidden(path),
          )
          for (const { oid } of hidden) expect(oids.has(oid)).toBe(false)
        }
        const open = (at: string) =>
          filesOf(store, home, at).filter((path) => !isHidden(path) && path !== '.csb/labels.json')
        expect(open(seen)).toEqual(open(head))
        for (const path of open(seen)) {
          const [a, b] = [head, seen].map((at) => readFile(store.view(), { home, at, path }))
          expect(a).toEqual(b)
        }
      }),
      { numRuns: 40 },
    )
  })

  test('L4.2 the ids are equal on every node, whatever was stored and projected in which order', async () => {
    const [one, two] = [await openHome(), await openHome()]
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const home = nextHome()
        const commits = await replay(one.store, home, taken)
        expect(await replay(two.store, home, taken)).toEqual(commits)
        await two.store.transact((tx) => writeBlob(tx, home, utf8('something else')))
        const seen: (string | null)[] = []
        for (const commit of commits) seen.push(await project(one.store, home, commit))
        const other: (string | null)[] = []
        for (const commit of commits.toReversed()) {
          other.unshift(await project(two.store, home, commit))
          await two.store.transact((tx) => staleProjections(tx, home))
        }
        expect(other).toEqual(seen)
      }),
      { numRuns: 25 },
    )
  })

  test('L4.2 nothing that is seen changes when hidden files have other bytes', async () => {
    const { store } = await openHome()
    const { store: other } = await openHome()
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const home = nextHome()
        const commits = await replay(store, home, taken, 'one')
        const changed = await replay(other, home, taken, 'another and longer one')
        for (const [at, commit] of commits.entries())
          expect(await project(other, home, changed[at] ?? '')).toBe(await project(store, home, commit))
      }),
      { numRuns: 25 },
    )
  })

  test('L4.2 it is the identity for who sees everything, and where nothing is hidden', async () => {
    const { store } = await openHome()
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const home = nextHome()
        const head = (await replay(store, home, taken)).at(-1) ?? ''
        expect(await project(store, home, head, FULL)).toBe(head)
        expect(await project(store, home, head, { level: 'sealed', tags: ['health'] })).toBe(head)
      }),
      { numRuns: 10 },
    )
    const open = await openHome()
    const taken: CommitFiles = {
      ...wordsAt(open.home.id, 1, 'nothing hidden\n\nat length'),
      branch: BRANCH,
      changes: [{ path: 'a.md', bytes: utf8('a') }],
    }
    const { commit } = await open.store.transact((tx) => commitFiles(tx, taken))
    expect(await project(open.store, open.home.id, commit)).toBe(commit)
  })

  test('commits that only change hidden files are left out, and others keep author, time and first line', async () => {
    const { store } = await openHome()
    const home = nextHome()
    const commits = await replay(store, home, [
      {
        changes: [
          ['a.md', 1],
          ['zzplain', 1],
        ],
        message: 'both',
      },
      { changes: [['zzplain', 2]], message: 'only hidden' },
      { changes: [['a.md', 2]], message: 'write a.md\n\nat length' },
      { changes: [['docs/b.md', 2]], message: 'beside docs/zzfirst.md' },
    ])
    const seen = await Promise.all(commits.map((commit) => project(store, home, commit)))
    expect(seen[1]).toBe(seen[0])
    const read = (at: number) => readCommit(store.view(), home, seen[at] ?? '')
    expect(read(0).message).toBe('Change files.')
    expect(read(2)).toMatchObject({
      message: 'write a.md',
      parents: [seen[1]],
      author: { name: 'Ada', did: OWNER.did, at: NOW + 2000 },
      trailers: { 'Csb-Run': `run_${NOW}_abc` },
    })
    expect(read(3).message).toBe('Change files.')
  })

  test('labels of what is hidden are not in the projected labels, and those of what is seen are the same', async () => {
    const { store } = await openHome()
    const home = nextHome()
    const [commit = ''] = await replay(store, home, [
      {
        changes: [
          ['docs/b.md', 1],
          ['zzplain', 1],
        ],
        message: 'x',
      },
    ])
    const seen = (await project(store, home, commit)) ?? ''
    const { bytes } = readFile(store.view(), { home, at: seen, path: '.csb/labels.json' })
    expect(JSON.parse(Buffer.from(bytes).toString())).toEqual({ docs: 'private:agent' })
    expect(await project(store, home, commit, { level: 'public', tags: [] })).not.toBeNull()
  })
})

describe('notes', () => {
  test('L4.2 a note is hidden by its own label, in every version that bore it', async () => {
    const node = await openHome()
    const { store, home } = node
    const open = await node.create('everybody may know', parseLabel('public:owner'))
    const secret = await node.create('zz nobody may know', parseLabel('sealed:owner'))
    const head = () => getRef(store.view(), home.id, 'memory')?.commit ?? ''
    const read = async () => {
      const seen = (await project(store, home.id, head())) ?? ''
      return everything(store, home.id, seen).text
    }
    expect(await read()).toContain(open.entry.id)
    expect(await read()).not.toContain(secret.entry.id)
    // raised later: what was seen before is not seen any more
    const raised = { ...open, label: parseLabel('sealed:owner'), hlc: bump(open.hlc) }
    await store.transact((tx) => putNotes(tx, { ...node.words(), notes: [raised] }))
    expect(await read()).not.toContain(open.entry.id)
    // lowered again: the newest version is seen, the sealed one between is not
    await store.transact((tx) =>
      putNotes(tx, { ...node.words(), notes: [{ ...open, label: OWNER_PRIVATE, hlc: bump(bump(open.hlc)) }] }),
    )
    expect(await read()).toContain(open.entry.id)
    expect(await read()).not.toContain('sealed:owner')
  })

  test('L3.4 what was forgotten is a fixed text for everybody, and its name is told only to who could see it', async () => {
    const node = await openHome()
    const { store, home } = node
    const before = await node.create('before')
    const gone = await node.create('zz to be forgotten')
    const sealed = await node.create('zz sealed', parseLabel('sealed:owner'))
    const old = getRef(store.view(), home.id, 'memory')?.commit ?? ''
    await node.forget(gone.entry.id)
    await node.forget(sealed.entry.id)
    const low = (await project(store, home.id, old)) ?? ''
    const { text } = everything(store, home.id, low)
    expect(text).toContain('This was forgotten.')
    expect(text).toContain(gone.entry.id)
    expect(text).toContain(before.entry.id)
    expect(text).not.toContain(sealed.entry.id)
    const full = (await project(store, home.id, old, FULL)) ?? ''
    expect(full).not.toBe(old)
    expect(everything(store, home.id, full).text).toContain(sealed.entry.id)
  })
})

const bump = (hlc: string): string => (BigInt(`0x${hlc}`) + 65536n).toString(16).padStart(16, '0')

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
