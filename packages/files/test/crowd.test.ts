import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '@csb/core'
import { openStore } from '@csb/store'
import { checkHome, createHome, listRefs } from '../src/index.ts'
import { recycledOf } from '../src/recycle.ts'
import { walkCommits } from '../src/walk.ts'
import { NOW, OWNER } from './open-home.ts'

const CROWD = fileURLToPath(new URL('crowd.ts', import.meta.url))
const BUDGET_MS = 9_000

test('a hundred writers and a merger are killed again and again: nothing acknowledged is lost, no branch leads nowhere', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'csb-crowd-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const db = join(folder, 'db')
  const first = await openStore(db)
  const { id } = await first.transact((tx) =>
    createHome(tx, { hash: 'sha256', owner: OWNER.did, origin: OWNER.did, now: NOW }),
  )
  await first.close()
  const counts: Record<string, number> = {}
  const acknowledged = new Set<string>()
  const start = performance.now()
  let round = 0
  // on a busy machine a collection takes more rounds to come by
  const isSeen = () => (counts['done'] ?? 0) > 100 && (counts['merged'] ?? 0) > 0 && (counts['collected'] ?? 0) > 0
  for (; round < 3 || performance.now() - start < BUDGET_MS || !isSeen(); round++) {
    for (const [word = '', commit = ''] of await runUntilKilled(db, id, round)) {
      counts[word] = (counts[word] ?? 0) + 1
      if (word === 'done' || word === 'merged') acknowledged.add(commit)
    }
    const store = await openStore(db)
    const view = store.view()
    expect((await checkHome(view, id, { now: NOW })).damaged).toEqual([])
    const refs = await listRefs(view, id)
    const removed = (await recycledOf(view, id)).filter(({ path }) => path === null)
    const heads = [...refs.map(({ commit }) => commit), ...removed.map(({ oid }) => oid)]
    const there = new Set([...walkCommits(view, id, heads)].map(({ oid }) => oid))
    expect([...acknowledged].filter((commit) => !there.has(commit))).toEqual([])
    await store.close()
  }
  expect(counts['done']).toBeGreaterThan(100)
  expect(counts['merged']).toBeGreaterThan(0)
  expect(counts['collected']).toBeGreaterThan(0)
})

/** What a crowd said before it was killed at a moment of no choosing. A line that was cut short was not said. */
async function runUntilKilled(db: string, home: string, round: number): Promise<string[][]> {
  const child = spawn(process.execPath, ['--conditions=csb-source', CROWD, db, home, String(round)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line))
  await until(() => lines.length > 20 || child.exitCode !== null, 30_000, 'it has written some', 3)
  const end = performance.now() + ((round * 7919) % 2000)
  await until(() => performance.now() > end || child.exitCode !== null, 30_000, 'its time is over', 3)
  expect(child.exitCode).toBeNull()
  child.kill('SIGKILL')
  await once(child, 'close')
  return lines.map((line) => line.split(' ')).filter(([word, oid]) => word === 'collected' || oid?.length === 64)
}
