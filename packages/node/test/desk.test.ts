import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { NodeError, createKeyPair, systemClock, type Identity } from '@csb/core'
import type { LeaseFor } from '../src/leases.ts'
import { delegateTo, leaseFor, revokeGrant, shareWith, type Desk } from '../src/authorise.ts'
import { connect, createClient } from '../src/client.ts'
import { readJson } from '../src/data-folder.ts'
import { importNotes } from '../src/import-notes.ts'
import { openOwner } from '../src/owner.ts'
import { createFolder, made, started } from './folder.ts'

async function deskIn(): Promise<Desk> {
  const directory = await createFolder()
  await made(directory, { ownerName: 'Ines' })
  await started(directory)
  return {
    directory,
    client: await connect(directory),
    owner: await openOwner(directory, undefined),
    now: systemClock.now(),
  }
}

const DELEGATING = { audience: ['*'], level: 'execute', ttlMs: 60_000 } as const
const declared = async ({ directory }: Desk) => ((await readJson(directory, 'identity')) as Identity).delegations

describe('what the owner signs', () => {
  test('DEL-003.3.3 a delegation is declared in identity.json, and no more when it is revoked', async () => {
    const desk = await deskIn()
    const audience = [createKeyPair().did]
    const { grant } = await delegateTo(desk, { ...DELEGATING, audience, scope: ['reports'] })
    const { id, grantee, level } = grant.delegation
    expect(await declared(desk)).toEqual([{ agent: grantee, scope: ['reports'], level, delegation_id: id }])
    expect(await revokeGrant(desk, id, [])).toMatchObject({ reached: [], unreached: [] })
    expect(await declared(desk)).toEqual([])
    const { items } = await desk.client.call<{ items: { revoked: boolean; grant: typeof grant }[] }>(
      'GET',
      '/v1/grants',
    )
    expect(items.find((item) => item.grant.delegation.id === id)?.revoked).toBe(true)
  })

  test('a global, a scoped and a single delegation are told apart', async () => {
    const desk = await deskIn()
    const audience = [createKeyPair().did]
    const typeOf = async (asked: Partial<Parameters<typeof delegateTo>[1]>) =>
      (await delegateTo(desk, { ...DELEGATING, audience, scope: ['*'], ...asked })).grant.delegation.type
    expect(await typeOf({ audience: ['*'], level: 'request' })).toBe('global')
    expect(await typeOf({ scope: ['reports'] })).toBe('scoped')
    expect(await typeOf({ scope: ['reports'], task: 'task_1' })).toBe('single')
  })

  test('a lease comes with a token that opens what it names and nothing else', async () => {
    const desk = await deskIn()
    const lease: LeaseFor = { actions: ['list', 'read'], paths: ['/'], branches: ['memory'] }
    const { token, hash } = await leaseFor(desk, { name: 'reader', lease, ttlMs: 60_000 })
    const reader = createClient(desk.client.url, token)
    expect(await reader.call('GET', '/v1/memory')).toMatchObject({ items: [] })
    const entry = { content: 'x', type: 'other', level: 'warm' }
    await expect(reader.call('POST', '/v1/memory', { entry })).rejects.toMatchObject({ code: 'SCOPE_EXCEEDED' })
    await revokeGrant(desk, hash.slice(0, 19), [])
    await expect(reader.call('GET', '/v1/memory')).rejects.toMatchObject({ code: 'LEASE_REVOKED' })
  })

  test('what is shared names the peer, the level and nothing more', async () => {
    const desk = await deskIn()
    const { did } = createKeyPair()
    const { grant } = await shareWith(desk, {
      to: { name: 'friend', did },
      level: 'trusted',
      tags: [],
      mayWrite: false,
    })
    expect(grant.delegation.grantee_key).toBe(did)
    expect(grant.authorization_details?.[0]).toMatchObject({
      actions: ['list', 'read'],
      branches: ['memory'],
      labels_max: 'trusted',
    })
  })

  test('a grant that there is not is not revoked', async () => {
    await expect(revokeGrant(await deskIn(), 'del_0_none', [])).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })
})

describe('import', () => {
  test('takes a folder in once, in batches, and says what it skipped', async () => {
    const { client, directory } = await deskIn()
    const vault = join(directory, '..', 'vault')
    await mkdir(vault)
    for (let n = 0; n < 130; n++) await writeFile(join(vault, `${n}.md`), `Note ${n}.`)
    await writeFile(join(vault, 'broken.md'), Buffer.from([0xff, 0xfe, 0x00]))
    const counts: number[] = []
    const first = await importNotes(client, vault, { label: null }, (count) => counts.push(count))
    expect(first).toMatchObject({ created: 130, kept: 0, skipped: [{ path: 'broken.md' }] })
    expect(counts).toEqual([100, 130])
    expect(await importNotes(client, vault, { label: null }, () => undefined)).toMatchObject({ created: 0, kept: 130 })
  })

  test('one note that the node refuses is named, and the others go in', async () => {
    const { client, directory } = await deskIn()
    const vault = join(directory, '..', 'hostile')
    await mkdir(vault)
    for (let n = 0; n < 9; n++) await writeFile(join(vault, `${n}.md`), `Note ${n}.`)
    await writeFile(join(vault, 'proto.md'), '---\n__proto__: {admin: true}\n---\nText of it.\n')
    const taken = await importNotes(client, vault, { label: null }, () => undefined)
    expect(taken).toMatchObject({ created: 10, skipped: [], warnings: [{ path: 'proto.md' }] })
    // a door of another version may refuse what this reader lets through
    const strict = {
      ...client,
      call: ((method: 'POST', path: string, body: { items: { entry: { content: string } }[] }) =>
        body.items.some(({ entry }) => entry.content.includes('5'))
          ? Promise.reject(new NodeError('MALFORMED', { reason: 'for a test' }))
          : client.call(method, path, body)) as typeof client.call,
    }
    const most = await importNotes(strict, vault, { label: null }, () => undefined)
    expect(most).toMatchObject({
      created: 0,
      kept: 9,
      skipped: [{ path: '5.md', reason: expect.stringContaining('MALFORMED') as string }],
    })
  })

  test('takes in one file of text, in parts where it is long, and once with the folder it lies in', async () => {
    const { client, directory } = await deskIn()
    const vault = join(directory, '..', 'one')
    await mkdir(vault)
    await writeFile(join(vault, 'long.md'), 'A sentence of some words. '.repeat(200))
    await writeFile(join(vault, 'plain.txt'), 'Plain.')
    const long = await importNotes(client, join(vault, 'long.md'), { label: null }, () => undefined)
    expect(long.created).toBeGreaterThan(2)
    expect(await importNotes(client, vault, { label: null }, () => undefined)).toMatchObject({
      created: 0,
      kept: long.created,
    })
    expect(await importNotes(client, join(vault, 'plain.txt'), { label: null }, () => undefined)).toMatchObject({
      created: 1,
    })
  })

  test('names a path that there is not, and a file that is no transcript', async () => {
    const { client, directory } = await deskIn()
    const nowhere = join(directory, 'nowhere')
    await expect(importNotes(client, nowhere, { label: null }, () => undefined)).rejects.toMatchObject({
      code: 'NOT_FOUND',
    })
    const file = join(directory, '..', 'chat.json')
    await writeFile(file, '{"hello":1}')
    await expect(importNotes(client, file, { label: null }, () => undefined)).rejects.toMatchObject({
      code: 'MALFORMED',
    })
  })
})

describe('the client', () => {
  test('tells the errors of the node by their codes and details', async () => {
    const { client } = await deskIn()
    await expect(client.call('GET', '/v1/memory/mem_1700000000000_none')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(client.call('POST', '/v1/memory', {})).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      details: { errors: expect.any(Array) as unknown[] },
    })
    const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hi' }] }
    const body = { jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: { message } }
    await expect(client.stream('/a2a/nobody', body).next()).rejects.toMatchObject({ code: 'NOT_FOUND' })
    const stranger = createClient(client.url, 'csb_none')
    await expect(stranger.stream('/a2a/nobody', body).next()).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
  })

  test('streams what an agent says as it says it', async () => {
    const { client } = await deskIn()
    const say = (text: string) => `process.stdout.write(JSON.stringify(${text})+'\\n')`
    const script = `${say("{status:'thinking, é …'}")};${say("{result:{text:'done'}}")}`
    await client.call('POST', '/v1/agents', {
      id: 'echo',
      name: 'echo',
      description: 'says two things',
      command: [process.execPath, '-e', script],
      skills: [{ id: 'echo', name: 'echo', description: 'echo' }],
    })
    const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hi' }] }
    const body = { jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: { message } }
    const events: string[] = []
    for await (const event of client.stream('/a2a/echo', body)) events.push(JSON.stringify(event))
    expect(events.join('\n')).toContain('thinking, é …')
    expect(events.at(-1)).toContain('TASK_STATE_COMPLETED')
  })

  test('says so when nobody answers', async () => {
    const client = createClient('http://127.0.0.1:1', 'token')
    await expect(client.call('GET', '/v1/status')).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
  })
})
