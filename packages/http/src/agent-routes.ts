/** Agents, peers and the node itself over HTTP. */
import type { Route } from './route.ts'

export const AGENT_ROUTES: readonly Route[] = [
  { method: 'GET', path: '/v1/agents', operation: 'agents.list', input: 'AgentsList', summary: 'Agents attached here' },
  {
    method: 'POST',
    path: '/v1/agents',
    operation: 'agents.attach',
    input: 'AgentsAttach',
    summary: 'Attach an agent: a command',
    status: 201,
  },
  {
    method: 'GET',
    path: '/v1/agents/find',
    operation: 'agents.find',
    input: 'AgentsFind',
    summary: 'Find agents of other nodes by did or capability',
  },
  {
    method: 'GET',
    path: '/v1/inbox',
    operation: 'agents.inbox',
    input: 'AgentsInbox',
    summary: 'Messages that came in, and by what authority',
  },
  {
    method: 'DELETE',
    path: '/v1/agents/{id}',
    operation: 'agents.detach',
    input: 'AgentsDetach',
    summary: 'Detach an agent',
  },
  {
    method: 'POST',
    path: '/v1/agents/{agent}/send',
    operation: 'agents.send',
    input: 'AgentsSend',
    summary: 'Send an A2A message to an agent here, or with did on another node',
  },
  {
    method: 'GET',
    path: '/v1/agents/{agent}/card',
    operation: 'agents.card',
    input: 'AgentsCard',
    summary: 'Signed card of an agent here, or with did of one on another node',
  },
]

export const NODE_ROUTES: readonly Route[] = [
  { method: 'GET', path: '/v1/status', operation: 'node.status', input: 'NodeStatus', summary: 'How the node is' },
  { method: 'GET', path: '/v1/peers', operation: 'peers.list', input: 'PeersList', summary: 'Peers that are known' },
  {
    method: 'POST',
    path: '/v1/peers',
    operation: 'peers.dial',
    input: 'PeersDial',
    summary: 'Connect to a peer by multiaddr',
  },
]
