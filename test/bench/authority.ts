/**
 * What authority costs: chains of grants beside iso-ucan and jose, and the record beside single synced puts of the
 * same database on the same disk. At the end each bar, what was measured, and whether it was met.
 */
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Level } from 'level'
import { appendRecord, verifyRecord, type RecordEntry } from '@csb/authority'
import { newId, systemClock } from '@csb/core'
import { openStore } from '@csb/store'
import { chainRows } from './chains.ts'
import { benchReadLists } from './read-lists.ts'
import { printRows, type Row } from './rows.ts'

const VALUE = Buffer.alloc(400, 7)
/** About what an entry puts into its rows. */
const HEADER = Buffer.alloc(300, 7)
const PAYLOAD = Buffer.alloc(80, 7)
const NOTHING = new Uint8Array()
/** The disk is shared: puts and appends take turns, and the median of the turns counts. */
const TURNS = 9
const SINGLE = 100
const MANY = 5_120
const AT_ONCE = 256

const ENTRY: RecordEntry = {
  operation: 'memory.create',
  outcome: 'done',
  actor: 'did:key:z6MkwUogTBtupsNLvU7Q2tPM1qnY1uiHUCpPHB2WXha9dcs5',
  door: 'http',
  run: null,
  lease: 'sha256:cb17a485a27b457846c9a4b921da803cd6c91f101355c2ddb2ac2bf4df131bf0',
  reads: [],
  effect: { note: 'mem_1796047351423_393hhmcjeb' },
}

type Bar = { readonly what: string; readonly measured: number; readonly bar: number; readonly isMost?: boolean }

/** Run everything and print two tables and the bars; about 40 s. */
export async function benchAuthority(): Promise<void> {
  const chains = await chainRows(systemClock.now())
  printRows('chains, per second of CPU', chains, 3)
  const { rows, bytesPerRecord } = await recordRows()
  printRows('record', rows, 0)
  await benchReadLists()
  const rate = (from: readonly Row[], at: number) => from[at]?.perSecond ?? Number.NaN
  printBars([
    { what: '3 grants, cold, times iso-ucan', measured: rate(chains, 0) / rate(chains, 3), bar: 14 },
    {
      what: '3 grants and a word, cold, times an iso-ucan invocation',
      measured: rate(chains, 4) / rate(chains, 5),
      bar: 14,
    },
    { what: '3 grants verified before, times iso-ucan', measured: rate(chains, 1) / rate(chains, 3), bar: 100 },
    { what: 'append in groups, times single synced puts', measured: rate(rows, 1) / rate(rows, 0), bar: 10 },
    { what: 'full audit, times append in groups', measured: rate(rows, 2) / rate(rows, 1), bar: 10 },
    { what: 'full audit, times append one after another', measured: rate(rows, 2) / rate(rows, 3), bar: 10 },
    { what: 'bytes on disk a record', measured: bytesPerRecord, bar: 500, isMost: true },
  ])
}

/** @returns rows in the order single put, append in groups, audit, append alone, LevelDB alone with the same rows */
async function recordRows(): Promise<{ readonly rows: readonly Row[]; readonly bytesPerRecord: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'csb-bench-'))
  try {
    const raw = new Level<string, Uint8Array>(join(folder, 'raw'), { keyEncoding: 'utf8', valueEncoding: 'view' })
    await raw.open()
    const database = join(folder, 'ours', 'db')
    const store = await openStore(database)
    // ids as they are, none of which is made in the time that is measured
    const ids = Array.from({ length: (MANY + SINGLE) * TURNS }, () => newId('run', systemClock.now()))
    let next = 0
    const append = () => {
      const run = ids[next++] ?? null
      const entry = { ...ENTRY, run, effect: { note: `mem${run?.slice('run'.length)}` } }
      return store.transact((tx) => appendRecord(tx, entry, systemClock.now()))
    }
    const single: Row[] = []
    const grouped: Row[] = []
    const alone: Row[] = []
    const floor: Row[] = []
    for (let turn = 0; turn < TURNS; turn++) {
      single.push(
        await measure('LevelDB: single put, synced', SINGLE, async () => {
          for (let at = 0; at < SINGLE; at++) await raw.put(`${turn}/${at}`, VALUE, { sync: true })
        }),
      )
      alone.push(
        await measure('record append, one after another, synced', SINGLE, async () => {
          for (let at = 0; at < SINGLE; at++) await append()
        }),
      )
      grouped.push(
        await measure(`record append, ${AT_ONCE} callers at once, synced`, MANY, async () => {
          for (let at = 0; at < MANY; at += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, append))
        }),
      )
      floor.push(
        await measure(`LevelDB: rows of as many entries, ${AT_ONCE} at once, synced`, MANY, async () => {
          for (let at = 0; at < MANY; at += AT_ONCE) await putRows(raw, turn * MANY + at)
        }),
      )
    }
    await raw.close()
    const entries = (MANY + SINGLE) * TURNS
    const audit: Row[] = []
    for (let turn = 0; turn < 3; turn++) {
      audit.push(
        await measure('record audit: headers, chain, tree, payloads', entries, async () => {
          await verifyRecord(store.view())
        }),
      )
    }
    await store.db.compactRange('', '\u{10ffff}')
    const bytesPerRecord = (await sizeOf(database)) / entries
    await store.close()
    return { rows: [single, grouped, audit, alone, floor].map(median), bytesPerRecord }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The rows of a group, of no meaning, straight into LevelDB: what remains of the time is ours. */
async function putRows(raw: Level<string, Uint8Array>, from: number): Promise<void> {
  const batch = raw.batch()
  for (let at = from; at < from + AT_ONCE; at++) {
    const seq = String(at).padStart(16, '0')
    batch.put(`h/${seq}`, HEADER).put(`p/${seq}`, PAYLOAD).put(`r/run_${seq}/${seq}`, NOTHING)
  }
  await batch.write({ sync: true })
}

function median(rows: readonly Row[]): Row {
  const sorted = rows.toSorted((a, b) => a.perSecond - b.perSecond)
  return sorted[Math.floor(sorted.length / 2)] ?? { what: '', perSecond: 0, cpuUs: 0 }
}

async function measure(what: string, count: number, work: () => Promise<void>): Promise<Row> {
  const cpu = process.cpuUsage()
  const began = performance.now()
  await work()
  const seconds = (performance.now() - began) / 1000
  const { user, system } = process.cpuUsage(cpu)
  return { what, perSecond: count / seconds, cpuUs: (user + system) / count }
}

async function sizeOf(folder: string): Promise<number> {
  const names = await readdir(folder)
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).size))
  return sizes.reduce((sum, size) => sum + size, 0)
}

function printBars(bars: readonly Bar[]): void {
  const width = Math.max(...bars.map(({ what }) => what.length))
  process.stdout.write('\n')
  for (const { what, measured, bar, isMost = false } of bars) {
    const isMet = isMost ? measured <= bar : measured >= bar
    const wanted = `${isMost ? 'at most' : 'at least'} ${bar}`
    process.stdout.write(
      `${isMet ? 'met    ' : 'NOT MET'}  ${what.padEnd(width)}  ${measured.toFixed(1).padStart(8)}  ${wanted}\n`,
    )
  }
}
