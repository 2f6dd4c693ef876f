/** Many nodes of many owners: each finds an agent at any other by what it can do, knowing only one node at first. */
import { fileURLToPath } from 'node:url'
import { findProvider, message, noteOf, send, short } from '../asking.ts'
import type { Member } from '../cluster.ts'
import type { Scenario } from '../stage.ts'

const CLERK = fileURLToPath(new URL('../../agents/clerk.mjs', import.meta.url))
const SKILL = 'bread.bake'
const DEFAULT_NODES = 8
const FEWEST = 3

export const crowd: Scenario = {
  name: 'crowd',
  about: 'N nodes (default 8, --nodes N) that know one of them at first; each finds the same agent, and talks to it',
  run: async ({ cluster, options, step, say, prove }) => {
    const count = Math.max(FEWEST, options.nodes ?? DEFAULT_NODES)
    step(`${count} nodes of ${count} owners; all but the first know the first, and nobody else`)
    const first = await cluster.add({ name: 'node-1' })
    for (let n = 2; n <= count; n++) await cluster.add({ name: `node-${n}`, knows: [first] })
    const baker = cluster.members.at(-1) ?? first
    await baker.client.call('POST', '/v1/agents', {
      id: 'baker',
      name: 'baker',
      description: 'bakes bread',
      command: [process.execPath, CLERK],
      skills: [{ id: SKILL, name: 'baking', description: 'bakes bread' }],
      accept: 'anyone',
    })
    say(`the baker is at ${baker.name} ${short(baker.did)}`)

    step(`Each of the others looks for "${SKILL}" and says good morning`)
    const others = cluster.members.filter((member) => member !== baker)
    const answers = await Promise.all(others.map((member) => greet(member, baker)))
    for (const [at, answer] of answers.entries()) say(`${others[at]?.name.padEnd(8) ?? ''} ${answer}`)
    const served = answers.filter((answer) => answer === 'processed without authority: absent').length
    prove(
      'the agent is found by capability from every node',
      answers.length === count - 1,
      `${answers.length} of ${count - 1}`,
    )
    prove('and answers each of them', served === count - 1, `${served} of ${count - 1}`)
  },
}

async function greet(member: Member, baker: Member): Promise<string> {
  const { agents } = await findProvider(member, SKILL, baker)
  const agent = agents.find(({ id }) => id === 'baker')?.id ?? ''
  return noteOf(await send(member, { to: baker, agent, params: message('Good morning.') }))
}
