/** What a node does with input it can not use: a real process, asked from outside, and still there afterwards. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createKeyPair, type Grant, type Lease } from '@csb/core'
import { draftGrant, signGrant } from '@csb/authority'
import { importNotes } from '@csb/node'
import type { Member } from '../../apps/harness/src/cluster.ts'
import { isWell, recall, startMember } from './member.ts'

let member: Member

beforeAll(async () => {
  member = await startMember()
})

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

describe('notes and ports', () => {
  test('a vault with broken front matter is taken in as far as it can be read', async () => {
    const vault = await mkdtemp(join(tmpdir(), 'csb-vault-'))
    onTestFinished(() => rm(vault, { recursive: true, force: true }))
    await mkdir(join(vault, '.obsidian'))
    await writeFile(join(vault, 'good.md'), '---\ntags: [a]\n---\nGood\n')
    await writeFile(join(vault, 'broken.md'), '---\ntags: [a\n  : {{\n---\nThe body is still here\n')
    await writeFile(join(vault, 'unclosed.md'), '---\ntags: [a]\nno end\n')
    await writeFile(join(vault, 'binary.md'), Buffer.from([0xff, 0xfe, 0x00, 0x80, 0xc3]))
    const report = await importNotes(member.client, vault, { label: null }, () => undefined)
    expect(report.created).toBe(3)
    expect(report.skipped.map(({ path }) => path)).toEqual(['binary.md'])
    expect(report.warnings.map(({ path }) => path)).toContain('broken.md')
    const texts = await Promise.all(report.ids.map((id) => recall(member, id)))
    expect(texts.map(({ content }) => content).join('\n')).toContain('The body is still here')
    await isWell(member)
  })

  test('a port in use is said, and the folder is free for the next try', async () => {
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
})
