/**
 * What a list of reads takes in the record, beside the same list with every name spelled: notes of one home, picked
 * evenly, as a run reads them. CPU of this process to write it and to expand it again, for each thing that was read.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { appendRecord, createRunReads, readRecords } from '@csb/authority'
import { canonicalize, createKeyPair, systemClock, utf8 } from '@csb/core'
import { commitFiles, createHome, listFiles } from '@csb/files'
import { key, openStore, type ReadEntry, type Store } from '@csb/store'

const HOME = 'home_abcdefghijklmnopqrstuvwxyz'
const NOTES = 4_000
const SIZES = [37, 500, 2_000] as const

type Figures = {
  readonly count: number
  readonly named: number
  readonly stored: number
  readonly writeUs: number
  readonly readUs: number
}

/** Prints one table; about 5 s. */
export async function benchReadLists(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'csb-bench-'))
  try {
    const store = await openStore(join(folder, 'db'))
    const files = await notes(store)
    process.stdout.write(
      `\n${'read list, of 4,000 notes'.padEnd(28)}  ${'named, B'.padStart(10)}  ${'stored, B'.padStart(10)}  ${'ratio'.padStart(7)}  ${'write us/read'.padStart(14)}  ${'expand us/read'.padStart(14)}\n`,
    )
    for (const size of SIZES) {
      const { count, named, stored, writeUs, readUs } = await listed(store, files, size)
      const cells = [
        String(named).padStart(10),
        String(stored).padStart(10),
        (named / stored).toFixed(0).padStart(7),
        writeUs.toFixed(1).padStart(14),
        readUs.toFixed(1).padStart(14),
      ]
      process.stdout.write(`${`${count} reads`.padEnd(28)}  ${cells.join('  ')}\n`)
    }
    await store.close()
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function notes(store: Store): Promise<readonly ReadEntry[]> {
  const { did } = createKeyPair()
  const now = systemClock.now()
  const changes = Array.from({ length: NOTES }, (_, i) => ({
    path: `notes/2026/${String((i % 12) + 1).padStart(2, '0')}/${((i * 37) % 256).toString(16).padStart(2, '0')}/mem_${now + i}_${String(i).padStart(10, '0')}.md`,
    bytes: utf8(`note ${i}`),
  }))
  await store.transact((tx) => {
    createHome(tx, { id: HOME, owner: did, origin: did, now })
    commitFiles(tx, {
      home: HOME,
      branch: 'memory',
      changes,
      author: { name: 'bench', did },
      message: 'notes',
      trailers: {},
      now,
    })
  })
  return listFiles(store.view(), { home: HOME, at: 'memory', recursive: true })
    .filter(({ kind }) => kind === 'file')
    .map(({ path, oid, label }) => ({ home: HOME, path, oid, label }))
}

async function listed(store: Store, files: readonly ReadEntry[], size: number): Promise<Figures> {
  const reads = files.filter(
    (_, i) => Math.floor((i * size) / files.length) !== Math.floor(((i - 1) * size) / files.length),
  )
  const began = process.cpuUsage()
  const run = createRunReads()
  for (const read of reads) run.noteRead(read)
  const { seq } = await store.transact((tx) =>
    appendRecord(
      tx,
      {
        operation: 'agents.send',
        outcome: 'done',
        actor: null,
        door: 'http',
        run: null,
        lease: null,
        reads: run.reads,
        readGroups: run.groups(store.view()),
        effect: {},
      },
      systemClock.now(),
    ),
  )
  const writeUs = cpuSince(began) / reads.length
  const between = process.cpuUsage()
  const [item] = await readRecords(store.view(), { after: seq - 1, limit: 1 })
  if (item?.payload?.reads.length !== reads.length) throw new Error('another list')
  const readUs = cpuSince(between) / reads.length
  const stored = store.view().get(key('payload', seq))?.byteLength ?? 0
  return { count: reads.length, named: Buffer.byteLength(canonicalize(reads)), stored, writeUs, readUs }
}

function cpuSince(began: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(began)
  return user + system
}
