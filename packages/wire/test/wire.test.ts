import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createKeyPair, until } from '@csb/core'
import { collect, echo, envelopeTo, startNode, stopAll, type Node } from './rig.ts'

afterAll(stopAll)

const isConnected = async (from: Node, to: Node): Promise<boolean> =>
  (await from.wire.peers.list()).some(({ did, connected }) => did === to.wire.did && connected)

describe('a node on the network', () => {
  test('A2A-001 its peer id and did are the key it was given', async () => {
    const key = createKeyPair()
    const node = await startNode({ key })
    expect(node.wire).toMatchObject({ did: key.did, peerId: key.peerId })
    expect(node.address()).toContain(`/p2p/${key.peerId}`)
  })

  test('it is reached over WebSocket as over TCP', async () => {
    const server = await startNode({ listen: ['/ip4/127.0.0.1/tcp/0/ws'], answers: echo })
    expect(server.address()).toContain('/ws/')
    const client = await startNode()
    expect(await client.wire.peers.dial(server.address())).toBe(server.wire.did)
    expect(await collect(client.wire.peers.request(envelopeTo(server, client)))).toHaveLength(1)
  })

  test('an address that is none, that names nobody or this node itself is INVALID_INPUT', async () => {
    const node = await startNode()
    for (const address of ['nowhere', '/ip4/127.0.0.1/tcp/1', node.address()]) {
      await expect(node.wire.peers.dial(address)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    }
    const absent = `/ip4/127.0.0.1/tcp/1/p2p/${createKeyPair().peerId}`
    await expect(node.wire.peers.dial(absent)).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
  })

  test('a node is not made with a listen or bootstrap address that is none', async () => {
    await expect(startNode({ listen: ['port 80'] })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await expect(startNode({ bootstrap: ['/ip4/127.0.0.1/tcp/1'] })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  test('a peer with another key than the address names is not accepted', async () => {
    const [node, server] = [await startNode(), await startNode()]
    const address = server.address().replace(server.wire.peerId, createKeyPair().peerId)
    await expect(node.wire.peers.dial(address)).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
  })

  test('a blocked peer is cut off in both directions, and let in again a pinned one is back at once', async () => {
    const [a, b] = [await startNode({ answers: echo }), await startNode({ answers: echo })]
    a.wire.pin(b.address())
    await until(() => isConnected(a, b), 30_000, 'the pinned peer is connected')
    await a.wire.block([b.wire.did])
    await until(async () => !(await isConnected(b, a)), 30_000, 'the connection is closed')
    await expect(a.wire.peers.dial(b.address())).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    await b.wire.peers.dial(a.address()).catch(() => undefined)
    await expect(collect(b.wire.peers.request(envelopeTo(a, b)))).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    a.wire.unblock([b.wire.did])
    await until(() => isConnected(a, b), 30_000, 'the pinned peer is back')
    expect(await collect(a.wire.peers.request(envelopeTo(b, a)))).toHaveLength(1)
  })

  test('a pinned peer that was down is dialled until it is there, and again after it went', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'csb-wire-'))
    const key = createKeyPair()
    const first = await startNode({ key, directory: folder })
    const address = first.address()
    const port = /tcp\/(\d+)/.exec(address)?.[1] ?? '0'
    await first.stop()
    const keeper = await startNode()
    keeper.wire.pin(address)
    const again = await startNode({ key, directory: folder, listen: [`/ip4/127.0.0.1/tcp/${port}`] })
    await until(() => isConnected(keeper, again), 30_000, 'it is connected')
    await again.stop()
    await until(async () => !(await isConnected(keeper, again)), 30_000, 'it is gone')
    const third = await startNode({ key, directory: folder, listen: [`/ip4/127.0.0.1/tcp/${port}`] })
    await until(() => isConnected(keeper, third), 30_000, 'it is connected again')
    await third.stop()
    await rm(folder, { recursive: true, force: true })
  })

  test('what it knows of peers survives a restart', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'csb-wire-'))
    const key = createKeyPair()
    const server = await startNode({ answers: echo })
    const before = await startNode({ key, directory: folder })
    await before.wire.peers.dial(server.address())
    await until(
      async () => ((await before.wire.peers.list())[0]?.addresses ?? []).some((address) => address.includes('/tcp/')),
      30_000,
      'known',
    )
    await before.stop()
    const after = await startNode({ key, directory: folder })
    const known = await after.wire.peers.list()
    expect(known).toMatchObject([{ did: server.wire.did, peerId: server.wire.peerId, connected: false }])
    // its address is enough to ask it
    expect(await collect(after.wire.peers.request(envelopeTo(server, after)))).toHaveLength(1)
    await after.stop()
    await rm(folder, { recursive: true, force: true })
  })
})

describe('two nodes on one network', () => {
  test('find each other without any configuration and end with one connection', async () => {
    const [a, b] = [await startNode({ mdns: true }), await startNode({ mdns: true })]
    await until(async () => (await isConnected(a, b)) && (await isConnected(b, a)), 30_000, 'they found each other')
  })
})
