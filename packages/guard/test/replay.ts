/** A history of seen and hidden files, taken step by step, and what can be read of a projection of it. */
import * as fc from 'fast-check'
import { createKeyPair, parseLabel, utf8, type Clearance } from '@csb/core'
import { commitFiles, createHome, listFiles, readBlob, readCommit, readTree } from '@csb/files'
import type { Store } from '@csb/store'
import { projectCommit } from '../src/index.ts'
import { NOW } from './open-home.ts'

export const LOW: Clearance = { level: 'private', tags: [] }
export const FULL: Clearance = { level: 'sealed', tags: ['*'] }
export const OWNER = createKeyPair()
export const BRANCH = 'runs/one'
export const VISIBLE = ['a.md', 'docs/b.md', 'docs/deep/c.md', 'two words.txt']
export const HIDDEN = ['docs/zzfirst.md', 'zzfolder/d.md', 'zzfolder/zzinner/f', 'zzplain']
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

export type Step = { readonly changes: readonly (readonly [string, number | null])[]; readonly message: string }

const pathOf = fc.constantFrom(...VISIBLE, ...HIDDEN)
export const steps = fc.array(
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

export const isHidden = (path: string): boolean => HIDDEN.includes(path)
export const textOf = (path: string, version: number, secret: string) =>
  utf8(isHidden(path) ? `zzbody ${secret} ${path} ${version}` : `open ${version}`)

/** A home in which these steps were taken, each a commit on the branch. */
export async function replay(store: Store, id: string, taken: readonly Step[], secret = 'one'): Promise<string[]> {
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

export const wordsAt = (home: string, at: number, message: string) => ({
  home,
  author: { name: 'Ada', did: OWNER.did },
  message,
  trailers: { 'Csb-Run': `run_${NOW}_abc`, 'Csb-From': 'f'.repeat(64) },
  now: NOW + at * 1000,
})

let homes = 0
export const nextHome = (): string => {
  const letters = Array.from(String(homes++).padStart(26, '0'), (digit) => 'abcdefghij'[Number(digit)])
  return `home_${letters.join('')}`
}

/** Everything that can be read from a commit on: what a clone would get. */
export function everything(store: Store, home: string, commit: string): { text: string; oids: Set<string> } {
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

export const project = (store: Store, home: string, commit: string, clearance = LOW) =>
  projectCommit(store, { home, commit, clearance })

export const filesOf = (store: Store, home: string, at: string): string[] =>
  listFiles(store.view(), { home, at, recursive: true })
    .filter(({ kind }) => kind === 'file')
    .map(({ path }) => path)
    .sort()
