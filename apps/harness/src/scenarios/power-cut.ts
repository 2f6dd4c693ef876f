/** The power goes in the middle of writing, again and again: what was acknowledged is there, and the rest is whole. */
import { fileURLToPath } from 'node:url'
import { until } from '@csb/core'
import { addNote, message, notesAt, verifyRecord, type Task } from '../asking.ts'
import type { Member } from '../cluster.ts'
import type { Scenario } from '../stage.ts'

const SLEEPER = fileURLToPath(new URL('../../agents/sleeper.mjs', import.meta.url))
/** After so many answers the power goes. */
const CUTS = [3, 20, 60]
const WRITERS = 8
const WAIT_MS = 60_000

export const powerCut: Scenario = {
  name: 'power-cut',
  about: 'a node is killed in the middle of writes and work; nothing acknowledged is lost, the record verifies',
  run: async ({ cluster, step, say, prove }) => {
    step('A node with an agent that is at work, and many writers at once')
    const node = await cluster.add({ name: 'nas', ownerName: 'Ines' })
    await node.client.call('POST', '/v1/agents', {
      id: 'sleeper',
      name: 'sleeper',
      description: 'never comes to an end',
      command: [process.execPath, SLEEPER],
      skills: [{ id: 'sleep', name: 'sleep', description: 'sleeps' }],
    })
    const acknowledged = new Map<string, string>()
    for (const [round, cut] of CUTS.entries()) {
      const task = await beginTask(node)
      await writeUntilCut(node, acknowledged, cut)
      say(`cut ${round + 1}: killed while ${WRITERS} wrote; ${acknowledged.size} notes are acknowledged so far`)

      await node.start()
      const held = new Map((await notesAt(node, node.home)).map(({ id, content }) => [id, content]))
      const lost = [...acknowledged].filter(([id, content]) => held.get(id) !== content)
      prove(`after cut ${round + 1} every acknowledged note is there`, lost.length === 0, `${acknowledged.size} notes`)
      const { ok, size } = await verifyRecord(node)
      prove(`after cut ${round + 1} the record verifies (L1.6)`, ok, `${size} entries`)
      const state = await stateOf(node, task)
      prove(`after cut ${round + 1} the task at work has failed, and is not lost`, state === 'TASK_STATE_FAILED', state)
    }
    step('It goes on as before')
    const id = await addNote(node, 'The power is back.')
    const isThere = (await notesAt(node, node.home)).some((note) => note.id === id)
    prove('the node takes notes after the last cut', isThere, id)
  },
}

/** @returns id of a task that is being worked on */
async function beginTask(node: Member): Promise<string> {
  const params = { ...message('Sleep.'), configuration: { returnImmediately: true } }
  const { task } = await node.client.call<{ task: Task }>('POST', '/v1/agents/sleeper/send', { params })
  await until(async () => (await stateOf(node, task.id)) === 'TASK_STATE_WORKING', WAIT_MS, 'the agent is at work')
  return task.id
}

async function stateOf(node: Member, id: string): Promise<string> {
  const body = { jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id } }
  return (await node.client.call<{ result?: Task }>('POST', '/a2a/sleeper', body)).result?.status.state ?? 'unknown'
}

/** Writers go on until the node is gone; it is killed after `cut` more answers, with others under way. */
async function writeUntilCut(node: Member, acknowledged: Map<string, string>, cut: number): Promise<void> {
  const enough = acknowledged.size + cut
  const cutOff = Promise.withResolvers<void>()
  const writer = async (number: number): Promise<void> => {
    for (let n = 0; ; n++) {
      const content = `Writer ${number}, note ${n}, after ${acknowledged.size}.`
      const id = await addNote(node, content).catch(() => undefined)
      if (id === undefined) return
      acknowledged.set(id, content)
      if (acknowledged.size >= enough) cutOff.resolve()
    }
  }
  const writers = Array.from({ length: WRITERS }, (_, number) => writer(number))
  await cutOff.promise
  await node.kill()
  await Promise.all(writers)
}
