/** Every sentence the command says to a person, by key. One catalogue; code holds no prose. */

const EN = {
  about: 'a peer-to-peer home for AI agents',
  'option.data': 'data folder of the node (default: $CSB_DATA or ~/.csb)',
  'option.json': 'answer as JSON, one line',
  'help.exit':
    '\nExit codes: 0 done, 1 fault, 2 bad input, 3 refused, 4 not found, 5 busy or unreachable.\nStart here: csb start --init. Then csb status, csb note add "...", csb --help COMMAND.',

  'group.node': 'The node',
  'group.notes': 'Notes and files',
  'group.agents': 'Agents and peers',
  'group.authority': 'Authority',
  'group.record': 'Record',

  'init.about': "make a node: the owner's key, the node's key, its home",
  'init.name': 'name of the node',
  'init.owner': 'name of its owner',
  'init.unsealed': "leave the owner's key without a passphrase",
  'init.join': 'be another node of the owner whose node lies in DIR, with the same home',
  'init.no-home': 'a node without a home, for a gateway',
  'init.passphrase': "A passphrase seals the owner's key. At least 8 characters:",
  'init.again': 'Once more:',
  'init.differ': 'They differ. Try again.',
  'init.needs': "Give a passphrase in CSB_PASSPHRASE, or say --unsealed to leave the owner's key open.",
  'init.done': 'Made {name} in {directory}.\n  node   {did}\n  owner  {owner} {ownerDid}\n  home   {home}',
  'init.unsealed.notice':
    "NOTE: the owner's key is not sealed. Who can read {directory} can act as {owner}.\n      Seal it with: csb owner seal --data {directory}",

  'start.about': 'run the node until it is stopped',
  'start.init': 'make the node first where there is none',
  'start.port': 'HTTP port; peers connect on the two ports after it (default 7480)',
  'start.host': 'address of the HTTP door (default 127.0.0.1)',
  'start.listen': 'multiaddr to listen at for peers; may be given again',
  'start.bootstrap': 'multiaddr of a peer to find others by; may be given again',
  'start.no-mdns': 'do not look for nodes on the local network',
  'start.ready':
    '{name} is up.\n  id       {did}\n  url      {url}\n  peers    {addresses}\n  token    {token}\nStop it with Ctrl-C.',
  'start.stopping': 'Stopping.',

  'status.about': 'how the node is',
  'status.line':
    '{name}  {did}\n  owner    {owner}\n  home     {home}\n  url      {url}\n  peers    {connected} connected, {known} known\n  record   {size} entries\n{addresses}',

  'owner.about': "the owner's key",
  'owner.seal.about': 'seal it with a passphrase',
  'owner.sealed': 'Sealed.',
  'owner.passphrase': 'Passphrase of {owner}:',

  'note.about': 'notes of the home',
  'note.add.about': 'remember something',
  'note.list.about': 'list notes, newest first',
  'note.show.about': 'show one note',
  'note.rm.about': 'delete a note; it can be restored for 30 days',
  'note.restore.about': 'take a deletion back',
  'note.forget.about': 'forget a note for good, here and at every peer that is in step',
  'note.added': 'Remembered as {id}.',
  'note.deleted': 'Deleted {id}. Take it back with: csb note restore {id}',
  'note.restored': 'Restored {id}.',
  'note.forgotten': 'Forgot {id}. Files scanned afterwards: {scan}',
  'note.scan.clean': 'nothing of it is left',
  'note.scan.remains': 'something is left in {files}',
  'note.none': 'No notes.',

  'import.about': 'take in a folder of Markdown (an Obsidian vault as it is) or a chat transcript',
  'import.progress': '{count} notes',
  'import.done': '{created} notes taken in, {kept} were here already, {skipped} files skipped.',
  'import.skipped': '  skipped {path}: {reason}',

  'files.about': 'branches and files of the home',
  'files.refs.about': 'list branches',
  'files.ls.about': 'list files of a branch',
  'files.cat.about': 'print a file',
  'files.put.about': 'write a file into a run branch, from standard input',
  'files.log.about': 'list commits of a branch',
  'files.put': 'Committed {commit} on {branch}.',

  'agent.about': 'agents attached to this node',
  'agent.attach.about': 'attach a command: JSON on its stdin, JSON on its stdout',
  'agent.list.about': 'list attached agents',
  'agent.detach.about': 'detach an agent',
  'agent.card.about': "show an agent's card, here or on another node",
  'agent.attached': 'Attached {id}. Others find it by: {skills}',
  'agent.detached': 'Detached {id}.',
  'agent.none': 'No agents.',

  'find.about': 'find agents on other nodes, by capability or by id',
  'find.none': 'Nobody found.',
  'send.about': 'send a message to an agent, here or on another node',
  'send.task': 'task {id}: {state}',
  'peers.about': 'list peers, or connect to one',
  'peers.none': 'No peers yet.',
  'peers.dialled': 'Connected to {did}.',
  'sync.about': 'bring the notes of the home in step with a peer',
  'sync.done':
    'Sent {sent}, received {received}, forgot {tombstonesReceived}, told to forget {tombstonesSent}. In step: {equal}.',
  'handoff.about': 'hand work to an agent on another node, under a narrowed lease',
  'handoff.done': '{outcome}: {text}\n  result  {branch}',
  'handoff.withheld': '  withheld, since the peer may not see it: {ids}',

  'delegate.about': "let an agent speak with the owner's authority",
  'delegate.done': '{grantee} may speak for {grantor} at level {level} about {scope}.\n  id    {id}\n  hash  {hash}',
  'share.about': 'let a peer see the notes of the home up to a level',
  'share.done': '{name} may see notes up to {level}{write}.\n  hash  {hash}',
  'share.write': ' and write',
  'trust.about': 'whose authority this node honours, and how far',
  'trust.done': '{name} is honoured up to {ceiling}.',
  'lease.about': 'hand out a lease with a token, for an agent or a client',
  'lease.done': 'Token for {name}, shown once:\n{token}',
  'grants.about': 'list grants',
  'revoke.about': 'end a grant for ever',
  'revoke.done': 'Revoked {target}.',

  'record.about': 'the record of everything that was done or refused',
  'record.tail.about': 'the newest entries',
  'record.verify.about': 'verify the whole record',
  'record.verified': 'The record verifies: {size} entries, root {root}.',
  'explain.about': 'by what right a commit was made',
  'explain.text':
    'commit   {commit}\ndone     {operation} at {at} by {actor}\nrun      {run}\nlease    {lease}\n{chain}\nread     {reads}\nrecord   entry {seq} of {size}, root {root}',

  'error.line': 'csb: {message} [{code}]',
  'hint.NOT_INITIALISED': 'Run: csb init --data {directory}',
  'hint.PEER_UNREACHABLE': 'Is it running? Start it with: csb start',
  'hint.PORT_IN_USE': 'Try: csb start --port {next}',
  'hint.HOME_LOCKED': 'Process {pid} holds it. Stop that one, or use another folder with --data.',
  'hint.PASSPHRASE': 'Set CSB_PASSPHRASE, or run the command in a terminal that can ask.',
  'hint.LEASE_REQUIRED': 'Hand one out with: csb lease --for NAME',
  'hint.PROTECTED': 'Write into a run branch instead, as runs/NAME.',
  'hint.DATA_TOO_NEW': 'Install the newer version that wrote it; nothing was changed.',
  'hint.ALREADY_INITIALISED': 'Start it with: csb start --data {directory}',
} as const

export type TextKey = keyof typeof EN

/** The text of a key with its `{names}` filled in. */
export function t(key: TextKey, values: Readonly<Record<string, unknown>> = {}): string {
  return EN[key].replaceAll(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? '-'))
}

/** What to do next after an error, or undefined where there is nothing to add. */
export function hintFor(code: string, values: Readonly<Record<string, unknown>>): string | undefined {
  const key = `hint.${code}`
  return Object.hasOwn(EN, key) ? t(key as TextKey, values) : undefined
}
