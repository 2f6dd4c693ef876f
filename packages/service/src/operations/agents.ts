/** Agents: attach and detach a command, show its card, find agents on other nodes. */
import { LIMITS, fail, type AgentsAttach, type AgentRecord } from '@csb/core'
import {
  agentCard,
  attachAgent,
  detachAgent,
  getAgent,
  getAgentRecord,
  listAgentRecords,
  listAgents,
  listReceived,
  signCard,
  type AgentCard,
  type AttachedAgent,
} from '@csb/agents'
import { trusted } from '@csb/authority'
import { publishRecord } from '../messages/directory.ts'
import { noteAsked } from '../messages/outbound.ts'
import { checkClean } from '../session/minting.ts'
import { heard } from '../session/taint.ts'
import { isSession } from '../session/session.ts'
import {
  EVERYWHERE,
  checkReach,
  homeOf,
  isHere,
  locationOf,
  reaches,
  ruling,
  type Context,
  type Operation,
  type Parts,
} from '../operation.ts'

const doing = (action: 'list' | 'send' | 'read') => (_input: unknown, parts: Parts) => ({
  location: locationOf(parts, homeOf({}, parts)),
  action,
})

type Finding = { readonly did?: string; readonly capability?: string; readonly limit?: number }

/** What other nodes announced is known here; a did and a capability are looked for in the network. */
const isKnownHere = ({ did, capability }: Finding): boolean => did === undefined && capability === undefined

/** The signed card of an agent here. */
export function cardOf(context: Pick<Context, 'view' | 'identity' | 'key' | 'httpUrl'>, id: string) {
  const { name, did, peer_id: peerId } = context.identity
  return signCard(
    agentCard({ agent: getAgent(context.view, id), node: { name, did, peerId }, url: context.httpUrl() }),
    context.key,
  )
}

export const agentOperations: readonly Operation[] = [
  {
    name: 'agents.list',
    input: 'AgentsList',
    kind: 'read',
    open: 'lease',
    needs: doing('list'),
    run: async (context: Context) => {
      const agents = await listAgents(context.view)
      return { items: reaches(context, ruling({}, context)) ? agents : agents.map(withoutCommand) }
    },
  },
  {
    name: 'agents.inbox',
    input: 'AgentsInbox',
    kind: 'read',
    open: 'lease',
    // of every sender, with their words
    needs: (input: unknown, parts: Parts) => ({ ...doing('read')(input, parts), ...EVERYWHERE }),
    run: async (context: Context, { limit = LIMITS.listDefault }: { limit?: number }) => {
      const { view } = context
      const received = await listReceived(view, limit)
      if (isSession(context)) context.outside.push(...received.map(({ from }) => heard(context, `message of ${from}`)))
      return { items: received.map((item) => ({ ...item, name: trusted(view, item.from)?.name ?? null })) }
    },
  },
  {
    name: 'agents.attach',
    input: 'AgentsAttach',
    kind: 'write',
    open: 'lease',
    needs: ruling,
    run: async (context: Context, input: AgentsAttach) => {
      const agent = await context.write(
        (tx) => {
          checkClean(tx, context)
          return attachAgent(tx, input, context.clock.now())
        },
        ({ id, skills }) => ({ agent: id, skills: skills.map((skill) => skill.id) }),
      )
      context.background(publishRecord(context))
      return agent
    },
  },
  {
    name: 'agents.detach',
    input: 'AgentsDetach',
    kind: 'write',
    open: 'lease',
    needs: ruling,
    run: async (context: Context, input: { id: string }) => {
      await context.write(
        (tx) => detachAgent(tx, input.id),
        ({ id }) => ({ agent: id }),
      )
      context.background(publishRecord(context))
      return { id: input.id }
    },
  },
  {
    name: 'agents.card',
    input: 'AgentsCard',
    kind: 'read',
    open: 'nobody',
    looks: isHere,
    hears: (input: { agent?: string; did?: string }, parts: Parts) =>
      isHere(input, parts) ? undefined : `card of ${input.agent ?? ''} at ${input.did}`,
    run: async (context: Context, { did, agent = '', relay }: { agent?: string; did?: string; relay?: boolean }) => {
      if (did === undefined || isHere({ did }, context)) return cardOf(context, await agentOrFirst(context, agent))
      // a stranger's request must not make this node dial
      if (context.principal.lease === null) fail('LEASE_REQUIRED', { operation: 'agents.card' })
      // the name of the agent goes out, and may be any word
      checkReach(context, doing('send')({}, context))
      await noteAsked(context, { to: did, agent })
      const card = await foreignCard(context, did, agent)
      return relay === true ? relayed(context, card, did, agent) : card
    },
  },
  {
    name: 'agents.find',
    input: 'AgentsFind',
    kind: 'call',
    looks: (input: Finding) => isKnownHere(input),
    open: 'lease',
    needs: doing('send'),
    hears: () => 'what other nodes say of themselves',
    run: async (context: Context, input: Finding) => {
      const { peers, signal, view, clock } = context
      if (input.did !== undefined) {
        const record = await peers.findRecord(input.did, { signal })
        return { items: record === undefined ? [] : [record] }
      }
      const limit = input.limit ?? 10
      if (input.capability === undefined) return { items: await listAgentRecords(view, clock.now()) }
      const found: readonly AgentRecord[] = await peers.findProviders(input.capability, limit, { signal })
      return { items: found }
    },
  },
]

/** What an agent is, without how it is started: paths of this machine are for who rules it. */
function withoutCommand({ command: _command, cwd: _cwd, ...agent }: AttachedAgent) {
  return agent
}

/** The card of an agent elsewhere, with the hash its node's record names where that is known. */
async function foreignCard({ peers, view, signal }: Context, did: string, agent: string): Promise<AgentCard> {
  const hash = getAgentRecord(view, did)?.agents.find(({ id }) => id === agent)?.card ?? null
  return (await peers.card(did, agent, hash, { signal })) as AgentCard
}

/** The same agent, reached through this node: this node signs that, and only that. */
function relayed({ httpUrl, key }: Context, given: AgentCard, did: string, agent: string): AgentCard {
  const way = { url: `${httpUrl()}/a2a/${did}/${agent}`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }
  const { signatures: _signatures, ...card } = given
  return signCard({ ...card, supportedInterfaces: [way] }, key)
}

/** The agent asked for, or the first by id: the face of a node that has one. */
async function agentOrFirst({ view }: Context, id: string | undefined): Promise<string> {
  if (id !== undefined && id !== '') return id
  return (await listAgents(view))[0]?.id ?? fail('NOT_FOUND', { reason: 'no agent is attached' })
}
