import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openStore, type Store } from '@csb/store'
import { bytesOf, pairsOf } from './folder.ts'

const run = (command: string, ...args: string[]) => execFileSync(command, args, { stdio: 'ignore' })

/** A small disk of its own, or undefined where mounting is not permitted. */
function mountSmallDisk(): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'csb-full-'))
  try {
    run('mount', '-t', 'tmpfs', '-o', 'size=32m', 'tmpfs', folder)
    return folder
  } catch {
    rmSync(folder, { recursive: true, force: true })
    return undefined
  }
}

function unmount(folder: string): void {
  run('umount', '-l', folder)
  rmSync(folder, { recursive: true, force: true })
}

const disk = process.platform === 'linux' ? mountSmallDisk() : undefined
if (disk === undefined) process.stdout.write('skipped: a small disk can not be mounted here\n')
else unmount(disk)

/** A store on a disk with little room besides a ballast file that can be taken away. */
async function cramped(): Promise<{ store: Store; folder: string; ballast: string }> {
  const folder = mountSmallDisk() ?? ''
  const store = await openStore(join(folder, 'db'))
  onTestFinished(async () => {
    await store.close().catch(() => undefined)
    unmount(folder)
  })
  const ballast = join(folder, 'ballast')
  const { bavail, bsize } = await statfs(folder)
  writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - 300_000)))
  return { store, folder, ballast }
}

const value = bytesOf('0123456789'.repeat(2000))
const put = (store: Store, n: number) => store.transact((tx) => tx.put(`m/k${String(n).padStart(4, '0')}`, value))

/** Write until it is refused. @returns numbers that were acknowledged, and the refusal */
async function fillUp(store: Store): Promise<{ kept: number[]; refusal: unknown }> {
  const kept: number[] = []
  for (let n = 0; n < 500; n++) {
    try {
      await put(store, n)
      kept.push(n)
    } catch (refusal) {
      return { kept, refusal }
    }
  }
  return { kept, refusal: undefined }
}

const numbersIn = async (store: Store) =>
  (await pairsOf(store.view(), { prefix: 'm/k' })).map(([k]) => Number(k.slice(3)))

test.skipIf(disk === undefined)(
  'a full disk is named, loses nothing that was acknowledged, and still can be read',
  async () => {
    const { store } = await cramped()
    const { kept, refusal } = await fillUp(store)
    expect(refusal).toMatchObject({ code: 'DISK_FULL' })
    expect(kept.length).toBeGreaterThan(3)
    for (let i = 0; i < 5; i++) await expect(put(store, 900 + i)).rejects.toMatchObject({ code: 'DISK_FULL' })
    const numbers = await numbersIn(store)
    expect(numbers).toEqual(expect.arrayContaining(kept))
  },
)

test.skipIf(disk === undefined)('writing goes on when there is space again, without a restart', async () => {
  const { store, ballast, folder } = await cramped()
  const { kept, refusal } = await fillUp(store)
  expect(refusal).toMatchObject({ code: 'DISK_FULL' })
  await expect(put(store, 901)).rejects.toMatchObject({ code: 'DISK_FULL' })
  rmSync(ballast)
  await put(store, 902)
  await Promise.all(Array.from({ length: 20 }, (_, i) => put(store, 910 + i)))
  expect(await numbersIn(store)).toEqual(expect.arrayContaining([...kept, 902, 910, 929]))

  await store.close()
  const again = await openStore(join(folder, 'db'))
  const numbers = await numbersIn(again)
  await again.close()
  expect(numbers).toEqual(expect.arrayContaining([...kept, 902, 910, 929]))
})

test.skipIf(disk === undefined)('what waited behind a refused write is refused with it, not half of it', async () => {
  const { store, ballast } = await cramped()
  const large = bytesOf('x'.repeat(400_000))
  const outcomes = await Promise.allSettled([
    store.transact((tx) => tx.put('m/large', large)),
    store.transact((tx) => {
      tx.put('m/seen', bytesOf(String(tx.has('m/large'))))
    }),
    store.transact((tx) => tx.has('m/large')),
  ])
  for (const outcome of outcomes) {
    expect(outcome).toMatchObject({
      status: 'rejected',
      reason: { code: expect.stringMatching(/^(?:DISK_FULL|CONFLICT)$/) as unknown },
    })
  }
  rmSync(ballast)
  await store.transact((tx) => tx.put('m/seen', bytesOf(String(tx.has('m/large')))))
  expect(await pairsOf(store.view(), { prefix: 'm/seen' })).toEqual([['m/seen', 'false']])
})
