import { afterAll, describe, expect, test } from 'vitest'
import { multiaddr } from '@multiformats/multiaddr'
import { LIMITS, fail, until } from '@csb/core'
import type { SessionKind } from '@csb/service'
import { openStream } from '../src/protocol.ts'
import { startHost, startNode, stopAll, type Answers } from './rig.ts'

afterAll(stopAll)

/** Tells what it was opened with, then answers every message until the other side ends. */
const talker: Answers = {
  attend: async (caller, operation, input, port) => {
    await port.send({ caller, operation, input })
    for (let message = await port.receive(); message !== undefined; message = await port.receive()) {
      await port.send({ heard: message })
    }
  },
}

describe('sessions', () => {
  for (const [kind, operation] of [
    ['sync', 'sync.serve'],
    ['handoff', 'handoff.receive'],
    ['delegation', 'authority.receive'],
    ['witness', 'witness.serve'],
  ] as const satisfies readonly (readonly [SessionKind, string])[]) {
    test(`${kind} opens ${operation} with the input, and messages go both ways until both ended`, async () => {
      const [server, client] = [await startNode({ answers: talker }), await startNode()]
      await client.wire.peers.dial(server.address())
      const port = await client.wire.peers.session(server.wire.did, kind, { home: 'home_a' })
      const caller = { kind: 'peer', did: client.wire.did, door: 'libp2p' }
      expect(await port.receive()).toEqual({ caller, operation, input: { home: 'home_a' } })
      await port.send({ n: 1 })
      expect(await port.receive()).toEqual({ heard: { n: 1 } })
      await port.close()
      expect(await port.receive()).toBeUndefined()
    })
  }

  test('a refusal of the service is thrown by receive with its code', async () => {
    const server = await startNode({ answers: { attend: async () => fail('LEASE_REQUIRED', { action: 'read' }) } })
    const client = await startNode()
    await client.wire.peers.dial(server.address())
    const port = await client.wire.peers.session(server.wire.did, 'sync', {})
    await expect(port.receive()).rejects.toMatchObject({ code: 'LEASE_REQUIRED', details: { action: 'read' } })
  })

  test('an opening of another major version is VERSION_MISMATCH, one without version or input is MALFORMED', async () => {
    const server = await startNode({ answers: talker })
    const stranger = await startHost()
    const connection = await stranger.libp2p.dial(multiaddr(server.address()))
    for (const [opening, code] of [
      [{ v: '2.0', input: {} }, 'VERSION_MISMATCH'],
      [{ v: 1, input: {} }, 'MALFORMED'],
      [{ v: '1.0' }, 'MALFORMED'],
      [null, 'MALFORMED'],
    ] as const) {
      const frames = await openStream(connection, '/csb/sync/1.0.0')
      await frames.send(opening)
      expect(await frames.receive()).toMatchObject({ error: { code } })
    }
    const frames = await openStream(connection, '/csb/sync/1.0.0')
    await frames.send({ v: '1.7', input: { home: 'x' }, later: true })
    expect(await frames.receive()).toMatchObject({ operation: 'sync.serve' })
  })

  test('a signal breaks the session on both sides', async () => {
    let told: unknown
    const server = await startNode({
      answers: {
        attend: async (_caller, _operation, _input, port) => {
          await port.send('in')
          await port.receive().catch((error: unknown) => {
            told = error
            throw error
          })
        },
      },
    })
    const client = await startNode()
    await client.wire.peers.dial(server.address())
    const stop = new AbortController()
    const port = await client.wire.peers.session(server.wire.did, 'handoff', {}, { signal: stop.signal })
    expect(await port.receive()).toBe('in')
    stop.abort()
    await expect(port.receive()).rejects.toMatchObject({ name: 'NodeError' })
    await until(() => told !== undefined, 30_000, 'the other side is told')
    expect(told).toMatchObject({ code: 'PEER_UNREACHABLE' })
  })

  test('a handoff of many megabytes fits in one message, a larger one is refused before it is sent', async () => {
    const [server, client] = [await startNode({ answers: talker }), await startNode()]
    await client.wire.peers.dial(server.address())
    const port = await client.wire.peers.session(server.wire.did, 'handoff', {})
    await port.receive()
    const bulk = 'x'.repeat(6 * 1024 * 1024)
    await port.send(bulk)
    expect(await port.receive()).toEqual({ heard: bulk })
    await expect(port.send('x'.repeat(LIMITS.handoffBytes))).rejects.toMatchObject({ code: 'TOO_LARGE' })
    await port.close()
  })
})

describe('cards', () => {
  const card = { name: 'echo', version: '1' }
  const answers: Answers = {
    perform: async (_caller, operation, input) => {
      if (operation !== 'agents.card' || (input as { agent: string }).agent !== 'echo') fail('NOT_FOUND')
      return card
    },
  }

  test('A2A-012 a card is fetched by stream and verified with the hash of the record', async () => {
    const asked: unknown[] = []
    const server = await startNode({ answers })
    const client = await startNode({
      card: (value, did, hash) => {
        asked.push([value, did, hash])
        return hash === 'sha256:right'
      },
    })
    await client.wire.peers.dial(server.address())
    expect(await client.wire.peers.card(server.wire.did, 'echo', 'sha256:right')).toEqual(card)
    expect(asked).toEqual([[card, server.wire.did, 'sha256:right']])
    await expect(client.wire.peers.card(server.wire.did, 'echo', 'sha256:other')).rejects.toMatchObject({
      code: 'PEER_MISBEHAVED',
    })
    await expect(client.wire.peers.card(server.wire.did, 'nobody', null)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })
})
