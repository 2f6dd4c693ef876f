import { createServer, type AddressInfo, type Server } from 'node:net'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { key, openStore } from '@csb/store'
import { utf8 } from '@csb/core'
import { connect } from '../src/client.ts'
import type { Flags } from '../src/config.ts'
import { startNode } from '../src/start-node.ts'
import { pathOf, readJson, readText, writeJson } from '../src/data-folder.ts'
import { createFolder, made, settingsIn, started } from './folder.ts'

/** A port that somebody else has. */
async function taken(host = '127.0.0.1'): Promise<number> {
  const server: Server = createServer().listen(0, host)
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
  })
  return (server.address() as AddressInfo).port
}

type Refusal = { readonly code: string; readonly details: Readonly<Record<string, unknown>> }

/** With what it does not start; `started` where it does, and then it is stopped again. */
const refusal = async (directory: string, flags: Flags = {}): Promise<Refusal> =>
  startNode(directory, await settingsIn(directory, flags)).then(
    async (node) => {
      await node.stop()
      return { code: 'started', details: {} }
    },
    (error: unknown) => error as Refusal,
  )

describe('a running node', () => {
  test('is reached by the folder it runs in, and is not once it has stopped', async () => {
    const directory = await createFolder()
    const { identity } = await made(directory)
    await expect(connect(directory)).rejects.toMatchObject({
      code: 'PEER_UNREACHABLE',
      details: { reason: 'not_running' },
    })
    const node = await started(directory)
    const client = await connect(directory)
    expect(await client.call('GET', '/v1/status')).toMatchObject({ did: identity.did, home: identity.home })
    await node.stop()
    expect(await readText(directory, 'running')).toBeUndefined()
    await expect(connect(directory)).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    await expect(client.call('GET', '/v1/status')).rejects.toMatchObject({
      code: 'PEER_UNREACHABLE',
      details: { reason: 'not_answering' },
    })
  })

  test('one that was killed leaves its address behind, and no token is sent there', async () => {
    const directory = await createFolder()
    await made(directory)
    await writeJson(directory, 'running', { url: `http://127.0.0.1:${await taken()}`, pid: 2 ** 22 + 1 })
    await expect(connect(directory)).rejects.toMatchObject({ details: { reason: 'not_running' } })
  })

  test('may be stopped twice', async () => {
    const directory = await createFolder()
    await made(directory)
    const node = await started(directory)
    await Promise.all([node.stop(), node.stop()])
    await node.stop()
  })

  test('keeps others out of its folder, names itself to them, and goes on', async () => {
    const directory = await createFolder()
    await made(directory)
    await started(directory)
    const running = await readJson(directory, 'running')
    expect(await refusal(directory)).toMatchObject({ code: 'HOME_LOCKED', details: { pid: process.pid } })
    expect(await readJson(directory, 'running')).toEqual(running)
    expect(await (await connect(directory)).call('GET', '/v1/status')).toMatchObject({
      version: expect.any(String) as string,
    })
  })
})

describe('a port that is taken', () => {
  test('for HTTP is named, with one that is free', async () => {
    const directory = await createFolder()
    await made(directory)
    const port = await taken()
    const { code, details } = await refusal(directory, { port })
    expect({ code, port: details['port'], door: details['door'] }).toEqual({ code: 'PORT_IN_USE', port, door: 'http' })
    expect(await refusal(directory, { port: Number(details['next']) })).toMatchObject({ code: 'started' })
  })

  test.each(['', '/ws'])('for peers is named, at /tcp%s', async (suffix) => {
    const directory = await createFolder()
    await made(directory)
    const port = await taken()
    const { code, details } = await refusal(directory, { listen: [`/ip4/127.0.0.1/tcp/${port}${suffix}`] })
    expect({ code, port: details['port'], door: details['door'] }).toEqual({ code: 'PORT_IN_USE', port, door: 'peers' })
  })

  test('leaves the folder free', async () => {
    const directory = await createFolder()
    await made(directory)
    await refusal(directory, { port: await taken() })
    await started(directory)
  })
})

describe('what it can not start from', () => {
  test('no node', async () => {
    const directory = await createFolder()
    await expect(settingsIn(directory)).rejects.toMatchObject({ code: 'NOT_INITIALISED' })
  })

  test('a database of a newer version', async () => {
    const directory = await createFolder()
    await made(directory)
    const store = await openStore(pathOf(directory, 'database'))
    await store.transact((tx) => tx.put(key('meta', 'format'), utf8('99')))
    await store.close()
    expect(await refusal(directory)).toMatchObject({ code: 'DATA_TOO_NEW', details: { format: 99 } })
  })

  test('a database of an earlier version, of which nothing is changed', async () => {
    const directory = await createFolder()
    await made(directory)
    const store = await openStore(pathOf(directory, 'database'))
    await store.transact((tx) => tx.put(key('meta', 'format'), utf8('1')))
    await store.close()
    const before = await readdir(directory)
    expect(await refusal(directory)).toMatchObject({ code: 'DATA_TOO_OLD', details: { format: 1 } })
    expect(await readdir(directory)).toEqual(before)
  })

  test('an identity of a newer version', async () => {
    const directory = await createFolder()
    const { identity } = await made(directory)
    await writeJson(directory, 'identity', { ...identity, v: 2, more: true })
    expect(await refusal(directory)).toMatchObject({
      code: 'DATA_TOO_NEW',
      details: { file: 'identity.json', format: 2 },
    })
  })

  test('the key of another node', async () => {
    const [directory, other] = [await createFolder(), await createFolder()]
    await made(directory)
    await made(other)
    await writeJson(directory, 'nodeKey', await readJson(other, 'nodeKey'))
    expect(await refusal(directory)).toMatchObject({ code: 'CONFIG_INVALID', details: { file: 'node.key' } })
  })

  test('an open door without TLS that nobody asked for', async () => {
    const directory = await createFolder()
    await made(directory)
    expect(await refusal(directory, { host: '0.0.0.0' })).toMatchObject({ code: 'INSECURE_LISTEN' })
    expect(await refusal(directory, { host: '0.0.0.0', insecure: true })).toMatchObject({ code: 'started' })
  })
})
