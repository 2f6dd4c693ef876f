import { afterAll, describe, expect, test } from 'vitest'
import { NodeError, fail, until } from '@csb/core'
import { collect, echo, envelopeTo, startNode, stopAll } from './rig.ts'

afterAll(stopAll)

describe('envelopes', () => {
  test('A2A-017 an envelope reaches the service with the proved did of its sender, and its answer comes back', async () => {
    const seen: unknown[] = []
    const server = await startNode({
      answers: {
        deliver: async function* (caller, envelope) {
          seen.push(caller)
          yield { id: envelope.id, body: { result: envelope.body.params }, done: true }
        },
      },
    })
    const client = await startNode()
    await client.wire.peers.dial(server.address())
    const envelope = envelopeTo(server, client, { params: { text: '若兰' } })
    const replies = await collect(client.wire.peers.request(envelope))
    expect(replies).toEqual([{ id: envelope.id, body: { result: { text: '若兰' } }, done: true }])
    expect(seen).toEqual([{ kind: 'peer', did: client.wire.did, door: 'libp2p' }])
  })

  test('the first request has its own stream, later ones share one, and answers never mix', async () => {
    const [server, client] = [await startNode({ answers: echo }), await startNode()]
    await client.wire.peers.dial(server.address())
    const asked = Array.from({ length: 200 }, (_, n) => envelopeTo(server, client, { params: { n } }))
    const answers = await Promise.all(asked.map((envelope) => collect(client.wire.peers.request(envelope))))
    expect(answers.map(([reply]) => reply?.body)).toEqual(
      asked.map((_, n) => ({ jsonrpc: '2.0', id: 1, result: { n } })),
    )
  })

  test('a refusal keeps its code and details, on the first stream and on the shared one', async () => {
    const server = await startNode({
      answers: {
        // eslint-disable-next-line require-yield
        deliver: async function* () {
          fail('DENIED', { rule: 'floor' })
        },
      },
    })
    const client = await startNode()
    await client.wire.peers.dial(server.address())
    for (let n = 0; n < 3; n++) {
      const answer = collect(client.wire.peers.request(envelopeTo(server, client)))
      await expect(answer).rejects.toMatchObject({ code: 'DENIED', details: { rule: 'floor' } })
    }
  })

  test('a stream of answers comes one by one, and leaving early stops the other side', async () => {
    let stopped = false
    const server = await startNode({
      answers: {
        deliver: async function* (_caller, envelope, { signal }) {
          signal?.addEventListener('abort', () => {
            stopped = true
          })
          for (let n = 0; ; n++) {
            yield { id: envelope.id, body: { n }, done: false }
            if (n > 3) await until(() => stopped, 30_000, 'the caller leaves')
            if (stopped) return
          }
        },
      },
    })
    const client = await startNode()
    await client.wire.peers.dial(server.address())
    const got: unknown[] = []
    for await (const reply of client.wire.peers.request(
      envelopeTo(server, client, { method: 'SendStreamingMessage' }),
    )) {
      got.push(reply.body)
      if (got.length === 4) break
    }
    expect(got).toEqual([{ n: 0 }, { n: 1 }, { n: 2 }, { n: 3 }])
    await until(() => stopped, 30_000, 'the service is told that the caller left')
  })

  test('a caller that gives up on the shared stream stops the other side and leaves the stream usable', async () => {
    let stopped = 0
    const server = await startNode({
      answers: {
        deliver: async function* (_caller, envelope, { signal }) {
          if (envelope.body.method === 'wait') {
            await new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve(), { once: true }))
            stopped++
            return
          }
          yield { id: envelope.id, body: 'ok', done: true }
        },
      },
    })
    const client = await startNode()
    await client.wire.peers.dial(server.address())
    await collect(client.wire.peers.request(envelopeTo(server, client)))
    const gaveUp = new AbortController()
    const waiting = collect(
      client.wire.peers.request(envelopeTo(server, client, { method: 'wait' }), { signal: gaveUp.signal }),
    )
    const other = await collect(client.wire.peers.request(envelopeTo(server, client)))
    expect(other).toHaveLength(1)
    gaveUp.abort()
    await expect(waiting).rejects.toMatchObject({ code: 'TIMEOUT' })
    await until(() => stopped === 1, 30_000, 'the service is told')
    expect(await collect(client.wire.peers.request(envelopeTo(server, client)))).toHaveLength(1)
  })

  test('an answer that does not come within the life of the envelope is a TIMEOUT', async () => {
    const server = await startNode({
      answers: {
        // eslint-disable-next-line require-yield
        deliver: async function* (_caller, _envelope, { signal }) {
          await new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve(), { once: true }))
        },
      },
    })
    const client = await startNode()
    await client.wire.peers.dial(server.address())
    await expect(collect(client.wire.peers.request(envelopeTo(server, client, {}, 1)))).rejects.toMatchObject({
      code: 'TIMEOUT',
    })
  })

  test('a peer that nobody knows is PEER_UNREACHABLE', async () => {
    const [client, gone] = [await startNode(), await startNode()]
    const envelope = envelopeTo(gone, client)
    await gone.stop()
    await expect(collect(client.wire.peers.request(envelope))).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    expect(new NodeError('PEER_UNREACHABLE').row.retryable).toBe(true)
  })

  test('an answer larger than a frame is TOO_LARGE, and the node answers on', async () => {
    const server = await startNode({
      answers: {
        deliver: async function* (_caller, envelope) {
          yield { id: envelope.id, body: envelope.body.method === 'big' ? 'x'.repeat(2 ** 21) : 'small', done: true }
        },
      },
    })
    const client = await startNode()
    await client.wire.peers.dial(server.address())
    const big = collect(client.wire.peers.request(envelopeTo(server, client, { method: 'big' })))
    await expect(big).rejects.toMatchObject({ code: 'TOO_LARGE' })
    expect(await collect(client.wire.peers.request(envelopeTo(server, client)))).toHaveLength(1)
  })
})
