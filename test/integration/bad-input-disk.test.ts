/** What a node does when the disk lies, ends, or the power goes: real processes, and nothing acknowledged is lost. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { until } from '@csb/core'
import { FORMAT, key, openStore } from '@csb/store'
import { createCluster, type Member } from '../../apps/harness/src/cluster.ts'
import { isWell, recall, remember, startMember, verify } from './member.ts'

/** Change what a stopped node has on its disk. */
async function tamper(
  member: Member,
  change: (at: string, value: Uint8Array) => Uint8Array | undefined,
): Promise<number> {
  const store = await openStore(join(member.directory, 'db'))
  let changed = 0
  for await (const [at, value] of store.db.iterator()) {
    const next = change(at, Uint8Array.from(value))
    if (next === undefined) continue
    changed++
    await store.db.put(at, next)
  }
  await store.close()
  return changed
}

describe('what lies on the disk', () => {
  test('L1.6 a record changed by one byte is named by verify, and the node goes on', async () => {
    const member = await startMember()
    for (let n = 0; n < 5; n++) await remember(member, `note ${n}`)
    await member.stop()
    const changed = await tamper(member, (at, value) => {
      if (at !== key('header', 3)) return undefined
      const middle = value.length >> 1
      value[middle] = (value[middle] ?? 0) ^ 1
      return value
    })
    expect(changed).toBe(1)
    await member.start()
    await expect(verify(member)).rejects.toMatchObject({ code: 'RECORD_DAMAGED', details: { seq: 3 } })
    const id = await remember(member, 'after the damage')
    await expect(recall(member, id)).resolves.toMatchObject({ content: 'after the damage' })
  })

  test('a note that was changed on the disk is not shown as if it were whole, and the others are', async () => {
    const member = await startMember()
    const good = await remember(member, 'good')
    const bad = await remember(member, 'bad')
    await member.stop()
    const store = await openStore(join(member.directory, 'db'))
    const state = store.view().getJson<{ oid: string }>(key('note', String(member.home), bad))
    await store.close()
    await tamper(member, (at, value) => {
      if (!at.endsWith(`/${String(state?.oid)}`)) return undefined
      const middle = value.length >> 1
      value[middle] = (value[middle] ?? 0) ^ 1
      return value
    })
    await member.start()
    await expect(recall(member, bad)).rejects.toMatchObject({ code: 'OBJECT_DAMAGED' })
    await expect(recall(member, good)).resolves.toMatchObject({ content: 'good' })
  })

  test('a folder from a newer version is left as it is, and the node says so', async () => {
    const member = await startMember()
    const id = await remember(member, 'from the future')
    await member.stop()
    const format = (value: number) =>
      tamper(member, (at) => (at === key('meta', 'format') ? Buffer.from(String(value)) : undefined))
    await format(FORMAT + 1)
    await expect(member.start()).rejects.toThrow(/DATA_TOO_NEW/)
    const raw = await openStore(join(member.directory, 'db')).catch((error: unknown) => error)
    expect(raw).toMatchObject({ code: 'DATA_TOO_NEW', details: { format: FORMAT + 1 } })
    expect(id).toMatch(/^mem_/)
  })
})

describe('a machine that does not help', () => {
  test('kill -9 in the middle of writing loses nothing that was acknowledged', async () => {
    const member = await startMember()
    const acknowledged: string[] = []
    for (let round = 0; round < 3; round++) {
      const target = acknowledged.length + 40
      const writers = Array.from({ length: 8 }, async (_unused, writer) => {
        for (let n = 0; ; n++) {
          try {
            acknowledged.push(await remember(member, `round ${round} writer ${writer} note ${n}`))
          } catch {
            return
          }
        }
      })
      await until(() => acknowledged.length >= target, 30_000, 'enough was written')
      await member.kill()
      await Promise.all(writers)
      await member.start()
      await expect(verify(member)).resolves.toMatchObject({ ok: true })
      const { items } = await member.client.call<{ items: { path: string }[] }>('GET', '/v1/files/tree?branch=memory')
      const filed = new Set(items.map(({ path }) => path.slice(path.lastIndexOf('/') + 1, -'.md'.length)))
      expect(acknowledged.filter((id) => !filed.has(id))).toEqual([])
    }
    const last = acknowledged.at(-1) ?? ''
    await expect(recall(member, last)).resolves.toMatchObject({ id: last })
    await isWell(member)
  })

  const disk = mountSmallDisk()
  if (disk === undefined) process.stdout.write('skipped: a small disk can not be mounted here\n')
  else unmount(disk)

  test.skipIf(disk === undefined)(
    'a full disk is answered with DISK_FULL, the node stays, and goes on when there is room',
    async () => {
      const folder = mountSmallDisk() ?? ''
      const before = process.env['TMPDIR']
      process.env['TMPDIR'] = folder
      const cluster = await createCluster()
      if (before === undefined) delete process.env['TMPDIR']
      else process.env['TMPDIR'] = before
      onTestFinished(async () => {
        await cluster.close()
        unmount(folder)
      })
      const member = await cluster.add({ name: 'nas' })
      const kept = [await remember(member, 'before')]
      const ballast = join(folder, 'ballast')
      const { bavail, bsize } = await statfs(folder)
      writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - 400_000)))
      const text = 'x'.repeat(2000)
      const refusal = await until(
        () =>
          remember(member, text).then(
            (id) => {
              kept.push(id)
              return undefined
            },
            (error: unknown) => error,
          ),
        30_000,
        'the disk is full',
      )
      expect(refusal).toMatchObject({ code: 'DISK_FULL' })
      await expect(remember(member, text)).rejects.toMatchObject({ code: 'DISK_FULL' })
      for (const id of kept.slice(0, 3)) await expect(recall(member, id)).resolves.toMatchObject({ id })
      rmSync(ballast)
      const after = await until(() => remember(member, 'after').catch(() => undefined), 30_000, 'there is room again')
      for (const id of [...kept, after]) await expect(recall(member, id)).resolves.toMatchObject({ id })
      await expect(verify(member)).resolves.toMatchObject({ ok: true })
      await member.kill()
      await member.start()
      for (const id of [...kept, after]) await expect(recall(member, id)).resolves.toMatchObject({ id })
      await isWell(member)
    },
  )
})

/** A small disk of its own, or undefined where mounting is not permitted. */
function mountSmallDisk(): string | undefined {
  if (process.platform !== 'linux') return undefined
  const folder = mkdtempSync(join(tmpdir(), 'csb-full-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=32m', 'tmpfs', folder], { stdio: 'ignore' })
    return folder
  } catch {
    rmSync(folder, { recursive: true, force: true })
    return undefined
  }
}

function unmount(folder: string): void {
  execFileSync('umount', ['-l', folder], { stdio: 'ignore' })
  rmSync(folder, { recursive: true, force: true })
}
