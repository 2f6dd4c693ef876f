/** What the tests of delegation stand on: a friend who honours the owner of the node under test, and agents that listen. */
import { randomUUID } from 'node:crypto'
import { createKeyPair, signDocument, type Grant } from '@csb/core'
import { payloadDigest, signAuthority } from '@csb/authority'
import type { Context } from './acceptance.ts'
import { wordsOf, type Task } from './door.ts'
import type { LocalNode } from './nodes.ts'

type Given = { readonly id: string; readonly hash: string; readonly grant: Grant }

export const SCOPE = ['reports']

/** An agent in one line of JavaScript. */
const agentOf = (id: string, script: string, accept = 'anyone') => ({
  id,
  name: id,
  description: id,
  command: [process.execPath, '-e', script],
  skills: [{ id, name: id, description: id }],
  accept,
})
const saying = (result: object) => `process.stdout.write(${JSON.stringify(JSON.stringify({ result }))})`
const AGENTS = [
  agentOf('echo', saying({ text: 'heard' })),
  agentOf('guarded', saying({ text: 'heard' }), 'nobody'),
  agentOf('scribe', saying({ text: 'written', files: [{ path: 'report.md', text: 'all is well\n' }] })),
  agentOf('sleeper', 'setTimeout(() => undefined, 600_000)'),
  agentOf(
    'mirror',
    "process.stdin.on('data', (bytes) => process.stdout.write(JSON.stringify({result:{text:String(bytes)}})))",
  ),
]

/** The friend, who trusts the owner as Ines; `say` gives the last words of what is said to an agent of hers. */
export async function stage({ own, node, friend: befriend }: Context) {
  const friend = await befriend()
  const { did, addresses } = await friend.door.status()
  await node.dial(addresses[0] ?? '')
  const { owner } = await node.status()
  const clearance = { level: 'trusted', tags: [] }
  await friend.door.call('POST', '/v1/trust', { did: owner.did, name: 'Ines', ceiling: 'override', clearance })
  for (const agent of AGENTS) await friend.door.attach(agent)
  return {
    friend,
    did,
    say: (more: object) => own.door.say('echo', did, more),
    send: (agent: string, more: object, params: object = {}) => own.door.send(agent, did, more, params),
  }
}

export const ordinary = (reason: string): string => `processed without authority: ${reason}`

/** What the owner signs with `csb delegate`, for a friend to honour. */
export async function delegate(own: LocalNode, audience: string, ...more: readonly string[]): Promise<Given> {
  return JSON.parse(await own.command('delegate', '--audience', audience, ...more)) as Given
}

/** Somebody with a key and no node, who speaks A2A over HTTP and signs what is said. */
export function createStranger() {
  const key = createKeyPair()
  return {
    did: key.did,
    /**
     * `tasks/send` as the document has it, with authority in its place. Resolves with the words that came of it.
     * @param without the member that the authority lacks, though it is signed as it is
     */
    say: async (friend: LocalNode, agent: string, grant: Grant, without?: string): Promise<string> => {
      const params = {
        id: `task_${randomUUID()}`,
        sessionId: `session_${randomUUID()}`,
        message: { role: 'agent', parts: [{ type: 'text', text: '请完成晋升/遗忘标准定义' }] },
      }
      const { level, scope } = grant.delegation
      const payload = payloadDigest({ method: 'tasks/send', params })
      const audience = (await friend.door.status()).did
      const init = { chain: [grant], payload, level, scope, audience, now: Date.now(), ttlMs: 60_000 }
      const { signature: _, chain, ...signed } = signAuthority(init, key)
      const body = Object.fromEntries(Object.entries(signed).filter(([name]) => name !== without))
      const authority = { ...body, chain, signature: signDocument('authority', body, key) }
      return wordsOf(
        await friend.door.rpc<Pick<Task, 'status'>>(`/a2a/${agent}`, 'tasks/send', { ...params, authority }),
      )
    },
  }
}
