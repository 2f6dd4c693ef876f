/**
 * One LevelDB per node, opened once. Transactions run one after another; what they staged becomes durable
 * in groups, each group one synced batch. A caller is answered when its batch is on the disk.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Level } from 'level'
import { fail, fromUtf8, toNodeError, utf8 } from '@csb/core'
import { createView, type Db } from './layers.ts'
import { key } from './keyspace.ts'
import type { Transaction, View } from './view.ts'
import { createWriter } from './writer.ts'

/**
 * The data format written by this version. A folder with another one is refused: a higher one has what is not known here,
 * and in a lower one entries of the record and statements on keys lie in another form, so that they would not verify.
 */
export const FORMAT = 2

/** Twice what LevelDB takes by itself: a busy record costs a tenth less, and what a start reads again stays little. */
const WRITE_BUFFER_BYTES = 8 * 1024 * 1024

export type Store = {
  /** folder of the database files */
  readonly directory: string
  /** A fresh view on what is durable. */
  view(): View
  /**
   * Run `work` alone, then make what it staged durable. Resolves when it is on the disk.
   * When `work` throws, nothing is written.
   * @throws DISK_FULL where the disk took nothing of it; CONFLICT where an earlier write, that this one saw, failed
   */
  transact<T>(work: (tx: Transaction) => Promise<T> | T): Promise<T>
  /** The raw database: for the erase routine and for the datastore of the libp2p door. */
  readonly db: Db
  close(): Promise<void>
}

/**
 * @param directory is made when missing, mode 0700
 * @throws HOME_LOCKED with the holder's pid, DATA_TOO_NEW, DATA_TOO_OLD: nothing was written then; OBJECT_DAMAGED
 */
export async function openStore(directory: string): Promise<Store> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const pidFile = join(directory, '..', 'node.pid')
  // not compressed: the erase routine looks for plain bytes in the files, and objects are deflated already
  const db = new Level<string, Uint8Array>(directory, {
    keyEncoding: 'utf8',
    valueEncoding: 'view',
    compression: false,
    writeBufferSize: WRITE_BUFFER_BYTES,
  }) as Db
  await openDb(db, pidFile)
  await checkFormat(db)
  await writeFile(pidFile, `${process.pid}\n`, { mode: 0o600 })
  const writer = createWriter(db, directory)

  return {
    directory,
    db,
    view: () => createView((k) => db.getSync(k), db),
    transact: writer.transact,
    close: async () => {
      await writer.drain()
      // before the lock is let go: afterwards the file may be the next holder's
      await rm(pidFile, { force: true })
      await db.close()
    },
  }
}

async function openDb(db: Db, pidFile: string): Promise<void> {
  try {
    await db.open()
  } catch (error) {
    const cause = (error as { cause?: { code?: string; message?: string } }).cause
    if (cause?.code === 'LEVEL_LOCKED') {
      const pid = await readFile(pidFile, 'utf8').then(
        (text) => Number(text.trim()),
        () => undefined,
      )
      fail('HOME_LOCKED', { pid }, error)
    }
    const isIncomplete = cause?.code === 'LEVEL_IO_ERROR' && /No such file/.test(cause.message ?? '')
    if (cause?.code === 'LEVEL_CORRUPTION' || isIncomplete)
      fail('OBJECT_DAMAGED', { reason: 'the database files are damaged' }, error)
    throw toNodeError(error)
  }
}

async function checkFormat(db: Db): Promise<void> {
  const found = db.getSync(key('meta', 'format'))
  if (found === undefined) {
    await db.batch([{ type: 'put', key: key('meta', 'format'), value: utf8(String(FORMAT)) }], { sync: true })
    return
  }
  const format = Number(fromUtf8(found))
  if (format === FORMAT) return
  await db.close()
  if (!Number.isSafeInteger(format)) fail('OBJECT_DAMAGED', { reason: 'the data format is not a number' })
  fail(format > FORMAT ? 'DATA_TOO_NEW' : 'DATA_TOO_OLD', { format, understood: FORMAT })
}
