import { expect, test } from 'vitest'
import { openDoor, post } from './fixtures.ts'

const rpc = (method: string, params: unknown) => ({ jsonrpc: '2.0', id: 1, method, params })

test("a client's fault is no fault of this node, and is not logged as one", async () => {
  const logged: unknown[] = []
  const door = await openDoor({
    log: (level, event) => {
      if (level === 'error') logged.push([level, event])
    },
  })
  door.service.answers.set('agents.getTask', () => {
    throw new Error('ours')
  })
  const ask = async (body: unknown, version: string) => {
    await (await door.request('/a2a/echo', post(body, { 'A2A-Version': version }))).json()
  }
  for (const body of [[], {}, rpc('DropTask', {}), rpc('CreateTaskPushNotificationConfig', {})]) await ask(body, '1.0')
  await ask(rpc('GetTask', { id: 'x' }), '7.0')
  expect(logged).toEqual([])
  await ask(rpc('GetTask', { id: 'x' }), '1.0')
  expect(logged).toEqual([['error', 'request failed']])
})
