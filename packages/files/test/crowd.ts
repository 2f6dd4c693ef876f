/**
 * A process full of writers: a hundred on their run branches, one that merges them into main and removes some, one that
 * collects garbage all the time. Prints each commit that was acknowledged, until it is killed. Folder, home, round.
 */
import { delay, isNodeError } from '@csb/core'
import { openStore } from '@csb/store'
import { applyMerge, collectGarbage, commitFiles, getRef, previewMerge, removeBranch, writeBlob } from '../src/index.ts'
import { NOW, WORDS, text } from './open-home.ts'

const WRITERS = 100
const [, , folder = '', home = '', round = ''] = process.argv
const store = await openStore(folder)
let now = NOW + Number(round) * 1_000_000

const say = (...words: readonly string[]) => process.stdout.write(`${words.join(' ')}\n`)

async function write(writer: number): Promise<never> {
  for (let count = 0; ; count++) {
    const changes = [
      { path: `shared/${writer % 7}.md`, bytes: text(`line of ${writer}\n`.repeat(count % 5)) },
      { path: `own/${writer}/${count % 9}.md`, bytes: text(`${round} ${writer} ${count % 4}\n`) },
    ]
    const { commit } = await store.transact((tx) =>
      commitFiles(tx, { ...WORDS, home, branch: `runs/${writer}`, changes, now: now++ }),
    )
    say('done', commit)
  }
}

async function merge(): Promise<never> {
  for (let count = 0; ; count++) {
    const from = `runs/${(count * 37) % WRITERS}`
    try {
      const before = previewMerge(store.view(), { home, from, into: 'main' })
      const { commit } = await store.transact((tx) => {
        // every second time what was agreed to may have changed since
        const preview = count % 2 === 0 ? before : previewMerge(tx, { home, from, into: 'main' })
        const merged = applyMerge(tx, { ...WORDS, home, from, into: 'main', preview, now: now++ })
        const head = getRef(tx, home, from)?.commit ?? ''
        if (count % 5 === 0) removeBranch(tx, home, from, { expect: head, now })
        return merged
      })
      say('merged', commit)
    } catch (error) {
      if (!isNodeError(error, 'CONFLICT') && !isNodeError(error, 'NOT_FOUND')) throw error
      // nobody to merge yet: let the writers write
      await delay(1)
    }
  }
}

async function litter(): Promise<never> {
  for (let count = 0; ; count++) {
    // what a writer is about to need may lie around as garbage
    await store.transact((tx) => writeBlob(tx, home, text(`${round} ${count % WRITERS} ${count % 4}\n`)))
  }
}

async function collect(): Promise<never> {
  for (;;) {
    // each step is told: a whole collection may not fit between two kills
    for await (const { removed } of collectGarbage(store, home, { now })) say('collected', String(removed))
  }
}

say('open')
await Promise.all([...Array.from({ length: WRITERS }, (_, writer) => write(writer)), merge(), litter(), collect()])
