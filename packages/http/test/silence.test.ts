import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { withinSilence } from '../src/silence.ts'

async function connected(): Promise<{ here: Socket; there: Socket }> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = once(server, 'connection') as Promise<[Socket]>
  const there = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [here] = await accepted
  onTestFinished(() => {
    for (const end of [here, there]) end.destroy()
    server.close()
  })
  return { here, there }
}

/** The whole process stands still, as on a machine that has other things to do. */
const standStill = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

test('what came in time is taken, though the process stood still for longer than a client may', async () => {
  const { here, there } = await connected()
  const piece = withinSilence(once(here, 'data') as Promise<[Buffer]>, 30)
  there.write('here')
  standStill(200)
  expect(String((await piece)[0])).toBe('here')
})

test('where nothing comes it is a TIMEOUT, and a failure of what was awaited stays what it is', async () => {
  const { here } = await connected()
  await expect(withinSilence(once(here, 'data'), 5)).rejects.toMatchObject({ code: 'TIMEOUT', details: { idleMs: 5 } })
  await expect(withinSilence(Promise.reject(new Error('gone')), 60_000)).rejects.toThrow('gone')
})
