import { describe, expect, test } from 'vitest'
import { attachAgent, createReply, detachAgent, failureUpdate, getAgent, listAgents } from '../src/index.ts'
import { NodeError } from '@csb/core'
import { attachment, temporaryStore } from './fixtures.ts'

const store = await temporaryStore()

describe('attached agents', () => {
  test('A2A-005 an agent is attached, listed by id, replaced, detached', async () => {
    await store.transact((tx) => {
      attachAgent(tx, { ...attachment, id: 'b' }, 1)
      attachAgent(tx, { ...attachment, id: 'a' }, 2)
      attachAgent(tx, { ...attachment, id: 'b', name: 'Second' }, 3)
    })
    expect((await listAgents(store.view())).map(({ id, name, attachedAt }) => [id, name, attachedAt])).toEqual([
      ['a', 'Echo', 2],
      ['b', 'Second', 3],
    ])
    await store.transact((tx) => detachAgent(tx, 'a'))
    expect(() => getAgent(store.view(), 'a')).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }))
    await expect(store.transact((tx) => detachAgent(tx, 'a'))).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test.each([
    ['no command', { command: [] }],
    ['an empty command', { command: [''] }],
    ['a folder that depends on where the node runs', { cwd: 'here' }],
    ['an id with a slash', { id: 'a/b' }],
  ])('%s is refused', async (_, change) => {
    await expect(store.transact((tx) => attachAgent(tx, { ...attachment, ...change }, 1))).rejects.toMatchObject({
      code: 'INVALID_INPUT',
    })
  })
})

describe('what an agent tells becomes A2A', () => {
  test('texts are chunks of one artifact, the result replaces them and completes the task', () => {
    const reply = createReply()
    const updates = [
      ...reply.updates({ kind: 'status', text: 'thinking' }, 1),
      ...reply.updates({ kind: 'text', text: 'a' }, 1),
      ...reply.updates({ kind: 'text', text: 'b' }, 1),
      ...reply.updates({ kind: 'result', result: { text: 'ab', data: 1, files: [{ path: 'x.md', text: 'y' }] } }, 1),
    ]
    expect(updates).toMatchObject([
      {
        statusUpdate: {
          status: { state: 'TASK_STATE_WORKING', message: { role: 'ROLE_AGENT', parts: [{ text: 'thinking' }] } },
        },
      },
      { artifactUpdate: { artifact: { artifactId: 'reply', parts: [{ text: 'a' }] }, lastChunk: false } },
      { artifactUpdate: { artifact: { artifactId: 'reply', parts: [{ text: 'b' }] }, append: true, lastChunk: false } },
      { artifactUpdate: { artifact: { artifactId: 'reply', parts: [{ text: 'ab' }] }, lastChunk: true } },
      { artifactUpdate: { artifact: { artifactId: 'data', parts: [{ data: 1 }] } } },
      {
        artifactUpdate: { artifact: { artifactId: 'file-1', name: 'x.md', parts: [{ text: 'y', filename: 'x.md' }] } },
      },
      { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } },
    ])
  })

  test('an artifact always has an id and good parts, whatever the agent wrote', () => {
    const reply = createReply()
    const parts = [{ text: 'a' }, { text: 'a', url: 'b' }, 7, { raw: 1 }]
    expect(reply.updates({ kind: 'artifact', artifact: { artifactId: 5, parts } }, 1)).toMatchObject([
      {
        artifactUpdate: {
          artifact: {
            artifactId: 'artifact-1',
            parts: [{ text: 'a' }, { data: { text: 'a', url: 'b' } }, { data: 7 }, { data: { raw: 1 } }],
          },
        },
      },
    ])
    expect(
      reply.updates(
        { kind: 'artifact', artifact: { artifactId: 'mine', text: 't', append: true, lastChunk: false } },
        1,
      ),
    ).toMatchObject([
      { artifactUpdate: { artifact: { artifactId: 'mine', parts: [{ text: 't' }] }, append: true, lastChunk: false } },
    ])
  })

  test('a failure tells its code, and nothing that the agent wrote to stderr', () => {
    const update = failureUpdate(new NodeError('AGENT_FAILED', { stderr: 'secret' }), 1)
    expect(update).toMatchObject({
      statusUpdate: {
        status: { state: 'TASK_STATE_FAILED' },
        metadata: { 'urn:csb:ext:error:v1': { code: 'AGENT_FAILED' } },
      },
    })
    expect(JSON.stringify(update)).not.toContain('secret')
  })
})
