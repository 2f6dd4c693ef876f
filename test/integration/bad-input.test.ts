/** What a node does with what it can not use: real processes, asked from outside, and still there afterwards. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { createKeyPair, until, type Grant, type Lease } from '@csb/core'
import { draftGrant, signGrant } from '@csb/authority'
import { importNotes } from '@csb/node'
import { FORMAT, key, openStore } from '@csb/store'
import { createCluster, type Cluster, type Member } from '../../apps/harness/src/cluster.ts'

const clusters: Cluster[] = []

afterAll(async () => {
  for (const cluster of clusters) await cluster.close()
})

async function startMember(): Promise<Member> {
  const cluster = await createCluster()
  clusters.push(cluster)
  return cluster.add({ name: 'nas' })
}

const remember = (member: Member, content: string) =>
  member.client
    .call<{ id: string }>('POST', '/v1/memory', { entry: { content, level: 'warm', type: 'lesson' } })
    .then(({ id }) => id)

const recall = (member: Member, id: string) => member.client.call<{ content: string }>('GET', `/v1/memory/${id}`)

const verify = (member: Member) => member.client.call<{ ok: boolean; size: number }>('GET', '/v1/record/verify')

/** It answers, and what it acknowledged is there. */
async function isWell(member: Member): Promise<void> {
  const id = await remember(member, 'still here')
  await expect(recall(member, id)).resolves.toMatchObject({ content: 'still here' })
  await expect(verify(member)).resolves.toMatchObject({ ok: true })
}

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

/** Write bytes to a port and wait until the other side ends. */
const pour = (port: number, bytes: Uint8Array): Promise<void> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.end(Buffer.from(bytes)))
    socket.on('error', () => resolve())
    socket.on('close', () => resolve())
    socket.resume()
  })

const portOf = (address: string): number => Number(/\/tcp\/(\d+)/.exec(address)?.[1])

describe('bytes that are none of ours', () => {
  test('malformed frames on the peer port and the HTTP port end their connection and nothing else', async () => {
    const member = await startMember()
    const ports = [...member.addresses().map(portOf), Number(new URL(member.client.url).port)]
    const rubbish = [
      Buffer.alloc(65_536, 0xff),
      Buffer.from('GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n'),
      Buffer.from('\x13/multistream/1.0.0\n\x07/noise\n' + 'x'.repeat(500)),
      Buffer.from('\x13/multistream/9.9.9\n'),
      Buffer.alloc(0),
    ]
    for (const port of ports) for (const bytes of rubbish) await pour(port, bytes)
    await isWell(member)
  })

  test('an oversize message is refused by its size, a truncated one by its form', async () => {
    const member = await startMember()
    const post = (body: string) =>
      fetch(`${member.client.url}/v1/memory`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer csb_none' },
        body,
      }).then(async (response) => [response.status, ((await response.json()) as { code: string }).code])
    const large = `{"entry":{"content":"${'x'.repeat(9 * 1024 * 1024)}"}}`
    expect(await post(large)).toEqual([413, 'TOO_LARGE'])
    expect(await post('{"entry":{')).toEqual([400, 'MALFORMED'])
    expect(await post('['.repeat(100_000))).toEqual([400, 'MALFORMED'])
    await isWell(member)
  })

  test('an unknown version of a protocol is named as such', async () => {
    const member = await startMember()
    const response = await fetch(`${member.client.url}/a2a/clerk`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'a2a-version': '9.0' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: {} }),
    })
    expect(JSON.stringify(await response.json())).toContain('VERSION')
    await isWell(member)
  })
})

describe('grants that do not hold', () => {
  test('forged, expired or of somebody unknown are refused with the check that failed, and recorded', async () => {
    const member = await startMember()
    const desk = await member.desk()
    const lease: Lease = {
      type: 'urn:csb:lease:1',
      locations: [`nas://*/${String(member.home)}`],
      actions: ['read', 'write'],
      paths: ['/'],
      branches: ['*'],
    }
    const draft = (more: object = {}) =>
      draftGrant({
        type: 'scoped',
        from: { name: 'Ines', did: desk.owner.did },
        to: { name: 'agent', did: createKeyPair().did },
        audience: [member.did],
        scope: ['lease'],
        level: 'request',
        now: desk.now,
        ttlMs: 60_000,
        lease,
        ...more,
      })
    const good = signGrant(draft(), desk.owner)
    const forged = { ...good, delegation: { ...good.delegation, level: 'override' } } as Grant
    const expired = signGrant(draft({ now: desk.now - 3_600_000 }), desk.owner)
    const stranger = createKeyPair()
    const foreign = signGrant(draft({ from: { name: 'Ines', did: stranger.did } }), stranger)
    const bring = (grant: unknown) => member.client.call('POST', '/v1/grants', { grant })
    for (const [grant, reason] of [
      [forged, 'type_rule'],
      [{ ...good, delegation: { ...good.delegation, scope: ['everything'] } }, 'bad_signature'],
      [expired, 'expired'],
      [foreign, 'untrusted_root'],
      [{ delegation: {} }, 'malformed'],
    ] as const) {
      await expect(bring(grant)).rejects.toMatchObject({ code: 'GRANT_INVALID', details: { reason } })
    }
    await expect(bring(good)).resolves.toMatchObject({ id: good.delegation.id })
    const { items } = await member.client.call<{ items: { header: { code: string | null } }[] }>('GET', '/v1/record')
    expect(items.some(({ header }) => header.code === 'GRANT_INVALID')).toBe(true)
    await isWell(member)
  })
})

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

  test('a vault with broken front matter is taken in as far as it can be read', async () => {
    const member = await startMember()
    const vault = await mkdtemp(join(tmpdir(), 'csb-vault-'))
    onTestFinished(() => rm(vault, { recursive: true, force: true }))
    await mkdir(join(vault, '.obsidian'))
    await writeFile(join(vault, 'good.md'), '---\ntags: [a]\n---\nGood\n')
    await writeFile(join(vault, 'broken.md'), '---\ntags: [a\n  : {{\n---\nThe body is still here\n')
    await writeFile(join(vault, 'unclosed.md'), '---\ntags: [a]\nno end\n')
    await writeFile(join(vault, 'binary.md'), Buffer.from([0xff, 0xfe, 0x00, 0x80, 0xc3]))
    const report = await importNotes(member.client, vault, null, () => undefined)
    expect(report.created).toBe(3)
    expect(report.skipped.map(({ path }) => path)).toEqual(['binary.md'])
    expect(report.warnings.map(({ path }) => path)).toContain('broken.md')
    const texts = await Promise.all(report.ids.map((id) => recall(member, id)))
    expect(texts.map(({ content }) => content).join('\n')).toContain('The body is still here')
    await isWell(member)
  })
})

describe('a machine that does not help', () => {
  test('a port in use is said, and the folder is free for the next try', async () => {
    const member = await startMember()
    const port = Number(new URL(member.client.url).port)
    await member.stop()
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(port, '127.0.0.1', resolve))
    onTestFinished(() => void taken.close())
    await expect(member.start()).rejects.toThrow(/PORT_IN_USE/)
    await new Promise((resolve) => taken.close(resolve))
    await member.start()
    await isWell(member)
  })

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
      await until(() => acknowledged.length >= target, 20_000, 'enough was written')
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
  }, 60_000)

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
      const after = await until(() => remember(member, 'after').catch(() => undefined), 20_000, 'there is room again')
      for (const id of [...kept, after]) await expect(recall(member, id)).resolves.toMatchObject({ id })
      await expect(verify(member)).resolves.toMatchObject({ ok: true })
      await member.kill()
      await member.start()
      for (const id of [...kept, after]) await expect(recall(member, id)).resolves.toMatchObject({ id })
      await isWell(member)
    },
    90_000,
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
