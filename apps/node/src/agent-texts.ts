/** What the command says of agents and peers: the part of the catalogue that texts.ts takes in. */

export const AGENT_TEXTS = {
  'agent.about': 'agents of this node: attach, list, detach, card',
  'agent.attach.about': 'attach a command: JSON on its stdin, JSON on its stdout',
  'agent.attach.usage': '[options] <id> -- <command> [arguments...]',
  'agent.attach.example':
    '\nWhat stands behind -- is the command with its own options, as in:\n  csb agent attach echo --accept anyone -- node echo.mjs --loud\nA csb it calls asks by its token (CSB_TOKEN), never as you; what takes your key is refused.',
  'agent.attach.described': 'the command {command}',
  'agent.list.about': 'list attached agents',
  'agent.detach.about': 'detach an agent',
  'agent.card.about': "show an agent's card, here or on another node",
  'agent.attached': 'Attached {id}. Others find it by: {skills}',
  'agent.detached': 'Detached {id}.',
  'agent.none': 'No agents.',

  'find.about': 'find agents on other nodes, by capability or by node',
  'find.progress': 'Looking',
  'find.found': '{name}  {did}\n  agents {agents}; capabilities {capabilities}',
  'find.none': 'Nobody found.',
  'send.about': 'send a message to an agent, here or on another node',
  'send.progress': 'Waiting for {agent}',
  'send.task': 'task {id}: {state}',
  'send.failed': '  {name}  {value}',
  'send.stderr': '  what it wrote to stderr, at the end:',
  'peers.about': 'list peers, or connect to one',
  'peers.progress': 'Connecting',
  'peers.none': 'No peers yet.',
  'peers.legend': '* connected now; the others were heard of',
  'peers.dialled': 'Connected to {did}.',
  'sync.about': 'bring the notes of the home in step with a peer',
  'sync.progress': 'Syncing with {did}',
  'sync.partly': 'no, run it again',
  'sync.done':
    'Sent {sent}, received {received}, forgot {tombstonesReceived}, told to forget {tombstonesSent}. In step: {equal}.',
  'handoff.about': 'hand work to an agent on another node, under a narrowed lease',
  'handoff.progress': 'Waiting for {agent} at {did}',
  'handoff.done': '{outcome}: {text}',
  'handoff.result': '  result  {branch}',
  'handoff.nothing':
    'NOTE: none of the notes you named was handed over: the peer may not see them. The agent worked without them.',
  'handoff.withheld': '  withheld, since the peer may not see it: {ids}',

  'peer.unnamed': 'a peer without a name here',
} as const
