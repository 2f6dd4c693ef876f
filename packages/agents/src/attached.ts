/**
 * The agents attached to this node: a name, skills, and the command that is the agent. Kept in table `agent`.
 *
 * Nothing here starts a process.
 * @clause A2A-005
 */
import { isAbsolute } from 'node:path'
import { checkSchema, fail, type AgentsAttach } from '@csb/core'
import { key, prefix, type Transaction, type View } from '@csb/store'

/** An agent as it was attached; `attachedAt` in ms since epoch. */
export type AttachedAgent = AgentsAttach & { readonly attachedAt: number }

/**
 * Attach an agent; one of the same id is replaced.
 * @param now ms since epoch
 * @throws INVALID_INPUT where it does not fit its schema, its command is empty or its folder is relative
 */
export function attachAgent(tx: Transaction, input: AgentsAttach, now: number): AttachedAgent {
  checkSchema('AgentsAttach', input)
  if (input.command[0] === '') fail('INVALID_INPUT', { reason: 'the command is empty', path: '/command/0' })
  // a relative folder would depend on where the node was started
  if (input.cwd !== undefined && !isAbsolute(input.cwd))
    fail('INVALID_INPUT', { reason: 'cwd must be absolute', path: '/cwd' })
  const agent: AttachedAgent = { ...input, attachedAt: now }
  tx.putJson(key('agent', input.id), agent)
  return agent
}

/** @throws NOT_FOUND */
export function detachAgent(tx: Transaction, id: string): AttachedAgent {
  const agent = getAgent(tx, id)
  tx.del(key('agent', id))
  return agent
}

/** @throws NOT_FOUND */
export function getAgent(view: View, id: string): AttachedAgent {
  return view.getJson<AttachedAgent>(key('agent', id)) ?? fail('NOT_FOUND', { agent: id })
}

/** All of them, by id. */
export async function listAgents(view: View): Promise<AttachedAgent[]> {
  const agents: AttachedAgent[] = []
  for await (const [k] of view.range({ prefix: prefix('agent') })) {
    const agent = view.getJson<AttachedAgent>(k)
    if (agent !== undefined) agents.push(agent)
  }
  return agents
}
