/**
 * Record append in this store against LevelDB itself, in one run on one disk: a single synced put after another, puts
 * synced in groups, our transactions one after another and many at a time. CPU is of this process, per operation.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Level } from 'level'
import { appendRecord, verifyRecord, type RecordEntry } from '@csb/authority'
import { systemClock } from '@csb/core'
import { openStore } from '@csb/store'
import { printRows, type Row } from './rows.ts'

const VALUE = Buffer.alloc(400, 7)
const SINGLE = 400
const MANY = 20_000
const AT_ONCE = 256

const ENTRY: RecordEntry = {
  operation: 'memory.create',
  outcome: 'done',
  actor: 'did:key:z6MkwUogTBtupsNLvU7Q2tPM1qnY1uiHUCpPHB2WXha9dcs5',
  door: 'http',
  run: 'run_1796047351423_393hhmcjeb',
  lease: null,
  reads: [],
  effect: { commit: 'cb17a485a27b457846c9a4b921da803cd6c91f101355c2ddb2ac2bf4df131bf0' },
}

/** Run everything and print one table; about 20 s. */
export async function benchStore(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'csb-bench-'))
  try {
    const raw = new Level<string, Uint8Array>(join(folder, 'raw'), { keyEncoding: 'utf8', valueEncoding: 'view' })
    await raw.open()
    const rows: Row[] = []
    rows.push(
      await measure('LevelDB: single put, synced', SINGLE, async (n) => {
        for (let at = 0; at < n; at++) await raw.batch([{ type: 'put', key: `a${at}`, value: VALUE }], { sync: true })
      }),
      await measure(`LevelDB: ${AT_ONCE} puts a batch, synced`, MANY, async (n) => {
        for (let at = 0; at < n; at += AT_ONCE) {
          const batch = Array.from({ length: AT_ONCE }, (_, i) => ({
            type: 'put' as const,
            key: `b${at + i}`,
            value: VALUE,
          }))
          await raw.batch(batch, { sync: true })
        }
      }),
    )
    await raw.close()
    const store = await openStore(join(folder, 'ours', 'db'))
    const append = () => store.transact((tx) => appendRecord(tx, ENTRY, systemClock.now()))
    rows.push(
      await measure('record append, one at a time', SINGLE, async (n) => {
        for (let at = 0; at < n; at++) await append()
      }),
      await measure(`record append, ${AT_ONCE} callers at once`, MANY, async (n) => {
        for (let at = 0; at < n; at += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, append))
      }),
      await measure('record audit: headers, chain, tree, payloads', MANY, async () => {
        await verifyRecord(store.view())
      }),
    )
    await store.close()
    printRows('store', rows, 0)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function measure(what: string, count: number, work: (count: number) => Promise<void>): Promise<Row> {
  const cpu = process.cpuUsage()
  const began = performance.now()
  await work(count)
  const seconds = (performance.now() - began) / 1000
  const used = process.cpuUsage(cpu)
  return { what, perSecond: count / seconds, cpuUs: (used.user + used.system) / count }
}
