/** Every sentence the command says to a person, by key. One catalogue; code holds no prose. */

const EN = {
  about: 'a peer-to-peer home for AI agents',
  'help.after':
    '\nExit codes: 0 done, 1 fault, 2 bad input, 3 refused, 4 not found, 5 busy or unreachable.\nStart here: csb start --init. Then: csb status, csb note add "...", csb COMMAND --help.',
  'usage.hint': 'How it is used: {command} --help',
  'usage.command': 'a command is missing',
  'usage.port': 'A port is a number from 0 to {last}; 0 takes any.',
  'usage.duration': 'A duration is 10s, 5m, 2h or 7d.',
  'usage.label': 'A label is public, trusted, private or sealed, with :owner, :agent or :external behind it, and tags.',
  'usage.count': 'It is a whole number.',
  'progress.seconds': '{text} {seconds} s',
  yes: 'yes',

  'group.node': 'This node and its home',
  'group.agents': 'Agents and peers',
  'group.authority': 'Authority and record',
  'group.any': 'Commands',

  'option.data': 'folder of the node (default: $CSB_DATA or ~/.csb)',
  'option.json': 'answer in one line of JSON',
  'option.version': 'print the version',
  'option.help': 'print this',
  'option.type': 'event, decision, lesson, todo, discovery, preference, identity or other',
  'option.level': 'how near at hand',
  'option.tag': 'a tag; may be given again',
  'option.label': 'who may see it: public, trusted, private or sealed, as in trusted:owner',
  'option.limit': 'how many at most',
  'option.cursor': 'go on after this one',
  'option.home': 'another home that this node keeps a copy of',
  'option.reason': 'why, for the record',
  'option.message': 'what the commit says',
  'option.node': 'the node it is at, by its did',
  'option.name': 'a name for people',
  'option.description': 'what it does, in one sentence',
  'option.skill': 'what others find it by; may be given again (default: its id)',
  'option.accept': 'whose messages from other nodes it takes (default: anyone)',
  'option.timeout': 'how long it may take for one message',
  'option.cwd': 'folder it runs in (default: where you are)',
  'option.capability': 'what it can do, as in report.write',
  'option.delegation': 'id of the grant whose authority the message carries',
  'option.rank': 'how it is to be treated: inform, request, execute or override',
  'option.scope': 'what it is about; several with commas (default: anything)',
  'option.stream': 'print what the agent says as it says it',
  'option.note': 'a note to hand over; may be given again',
  'option.max-level': 'hand over nothing above this level',
  'option.ttl': 'how long it holds: 10m, 2h, 7d',
  'option.audience': 'did of a node that is to honour it, or *; may be given again',
  'option.grantee': 'did of whom it is for (default: this node, for its agents)',
  'option.grantee-name': 'name of whom it is for',
  'option.task': 'only for this one task',
  'option.clearance': 'up to what label',
  'option.write': 'let it write too: for another node of the same owner',
  'option.ceiling': 'up to what level its authority is honoured',
  'option.remove': 'honour it no more',
  'option.for': 'name of whom it is for',
  'option.actions': 'list, read, write, propose, snapshot, send, exec; several with commas',
  'option.paths': 'only these paths',
  'option.branches': 'only these branches, as in runs/*',
  'option.tell': 'did of a node to tell; may be given again',

  'init.about': 'make a node: its key, the key of its owner, its home',
  'init.name': 'name of the node',
  'init.owner': 'name of its owner',
  'init.unsealed': "leave the owner's key without a passphrase",
  'init.join': 'be another node of the owner whose node lies in DIR, with the same home',
  'init.no-home': 'a node without a home, for a gateway',
  'init.no-home.done': 'none',
  'init.my-node': 'my node',
  'init.passphrase': "A passphrase seals the owner's key. At least {shortest} characters:",
  'init.again': 'Once more:',
  'init.differ': 'They differ. Try again.',
  'init.short': 'That is too short. Try again.',
  'init.done': 'Made {name} in {directory}\n  node   {did}\n  owner  {owner} {ownerDid}\n  home   {home}',
  'init.unsealed.notice':
    "NOTE: the owner's key is not sealed. Who can read {directory} can act as {owner}.\n      Seal it with: {csb} owner seal{data}",

  'start.about': 'run the node until it is stopped',
  'start.init': 'make the node first where there is none',
  'start.port': 'HTTP port; peers connect at the two after it (default 7480)',
  'start.host': 'address of the HTTP door (default 127.0.0.1)',
  'start.insecure': 'let the HTTP door listen beyond this machine without TLS',
  'start.listen': 'multiaddr to listen at for peers; may be given again',
  'start.bootstrap': 'multiaddr of a peer to find others by; may be given again',
  'start.no-mdns': 'do not look for nodes on the local network',
  'start.ready':
    '{name} is up.\n  id       {did}\n  url      {url}\n  peers    {addresses}\n  data     {directory}\n  token    {directory}/owner.token\nNext, in another terminal:\n  {csb} status{data}\n  {csb} note add "The spare key hangs behind the mill."{data}\nStop it with Ctrl-C.',
  'start.stopping': 'Stopping.',

  'status.about': 'how the node is',
  'status.line':
    '{name}  {did}\n  owner    {owner}\n  home     {home}\n  url      {url}\n  peers    {connected} connected, {known} known\n  record   {size} entries\n{addresses}',
  'status.address': '  address  {address}',

  'owner.about': "the owner's key: seal",
  'owner.seal.about': 'seal it with a passphrase',
  'owner.sealed': 'Sealed.',
  'owner.passphrase': 'Passphrase of {owner}:',

  'note.about': 'notes of the home: add, list, show, rm, restore, forget',
  'note.add.about': 'remember something',
  'note.list.about': 'list notes, newest first',
  'note.show.about': 'show one note',
  'note.rm.about': 'delete a note; it can be restored for 30 days',
  'note.restore.about': 'take a deletion back',
  'note.forget.about': 'forget a note for good, here and at every peer that is in step',
  'note.added': 'Remembered as {id}.',
  'note.remark': '  {path} {from} is none: it became {to}.',
  'note.deleted': 'Deleted {id}. Take it back with: csb note restore {id}',
  'note.restored': 'Restored {id}.',
  'note.forget.progress': 'Forgetting {id}',
  'note.forgotten': 'Forgot {id}. Files scanned afterwards: {scan}',
  'note.scan.clean': 'nothing of it is left',
  'note.scan.remains': 'something is left in {files}',
  'note.none': 'No notes.',

  'import.about': 'take in a folder of Markdown, an Obsidian vault, or a chat',
  'import.progress': 'Taking in notes: {count}',
  'import.done': '{created} notes taken in, {kept} were here already, {skipped} files skipped.',
  'import.skipped': '  skipped {path}: {reason}',

  'files.about': 'branches and files of the home: refs, ls, cat, put, log',
  'files.refs.about': 'list branches',
  'files.ls.about': 'list files of a branch',
  'files.cat.about': 'print a file',
  'files.put.about': 'write a file into a run branch, from standard input',
  'files.log.about': 'list commits of a branch',
  'files.put': 'Committed {commit} on {branch}.',
  'files.protected': '  (protected)',

  'agent.about': 'agents of this node: attach, list, detach, card',
  'agent.attach.about': 'attach a command: JSON on its stdin, JSON on its stdout',
  'agent.attach.usage': '[options] <id> -- <command> [arguments...]',
  'agent.attach.example':
    '\nWhat stands behind -- is the command with its own options, as in:\n  csb agent attach echo --accept anyone -- node echo.mjs --loud',
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
  'peers.about': 'list peers, or connect to one',
  'peers.progress': 'Connecting',
  'peers.none': 'No peers yet.',
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
  'handoff.withheld': '  withheld, since the peer may not see it: {ids}',

  'delegate.about': "let an agent speak with the owner's authority",
  'delegate.done': '{grantee} may speak for {grantor} at level {level} about {scope}.\n  id    {id}\n  hash  {hash}',
  'share.about': 'let a peer see the notes of the home up to a level',
  'share.done': '{name} may see notes up to {level}{write}.\n  hash  {hash}',
  'share.write': ' and write',
  'trust.about': 'whose authority this node honours, and how far',
  'trust.done': '{name} is honoured up to {ceiling}.',
  'trust.removed': '{did} is honoured no more.',
  'trust.none': 'Nobody.',
  'lease.about': 'hand out a lease with a token, for an agent or a client',
  'lease.done': 'Token for {name}, shown once:\n{token}',
  'grants.about': 'list grants',
  'grants.revoked': '  REVOKED',
  'revoke.about': 'end a grant for ever',
  'revoke.progress': 'Telling',
  'revoke.done': 'Revoked {target}.',

  'record.about': 'what was done or refused: tail, verify',
  'record.tail.about': 'the newest entries',
  'record.verify.about': 'verify the whole record',
  'record.verify.progress': 'Verifying',
  'record.verified': 'The record verifies: {size} entries, root {root}.',
  'explain.about': 'by what right a commit was made',
  'explain.granted': '{from} granted {to}, {level}',
  'explain.no-lease': 'none',
  'explain.nothing': 'nothing',
  'explain.text':
    'commit   {commit}\ndone     {operation} at {at} by {actor}\nrun      {run}\nlease    {lease}\n{chain}\nread     {reads}\nrecord   entry {seq} of {size}, root {root}',

  'error.line': 'csb: {message} [{code}]',
  // where the table's sentence is true and says too little; the word behind the code is `reason` in the details
  'message.PEER_UNREACHABLE.not_running': 'The node in that folder does not run.',
  'message.PEER_UNREACHABLE.not_answering': 'The node in that folder does not answer.',
  'message.PASSPHRASE.none_given': "The owner's key needs a passphrase, or a word that it should have none.",
  'message.PASSPHRASE.too_short': 'That passphrase is too short.',
  'message.PASSPHRASE.wrong': 'The passphrase is wrong.',
  'message.PASSPHRASE.sealed_already': "The owner's key is sealed already.",
  'message.CONFIG_INVALID.missing': 'That folder holds keys of a node, and its identity.json is missing.',

  'hint.ALREADY_INITIALISED': 'Start it with: csb start --data {directory}. For another node choose another --data.',
  'hint.AGENT_FAILED': 'Run its command by hand with a JSON object on its stdin: csb agent list shows the command.',
  'hint.AGENT_TIMEOUT': 'Give it longer: csb agent attach ID --timeout 10m -- COMMAND.',
  'hint.BUSY': 'Wait a moment and try again.',
  'hint.CLEARANCE': 'The owner may raise it: csb share DID --level LEVEL.',
  'hint.CONFIG_INVALID': 'Correct what is named above; schemas/config-v1.schema.json lists what there is.',
  'hint.CONFIG_INVALID.missing':
    'Put identity.json back from a copy, or make a new node in another folder: nothing was changed.',
  'hint.DATA_TOO_NEW': 'Install the newer version that wrote it; nothing was changed.',
  'hint.DENIED': 'Ask its owner to trust you: csb trust DID --ceiling LEVEL, at that node.',
  'hint.DISK_FULL': 'Free some space, then do it again: nothing of it was kept.',
  'hint.GRANT_INVALID': 'See what is granted with: csb grants',
  'hint.GRANT_INVALID.malformed': 'That field does not fit; grant-v1.schema.json says what it takes.',
  'hint.HOME_LOCKED': 'Process {pid} holds it. Stop that one, or use another folder with --data.',
  'hint.INSECURE_LISTEN':
    'Leave --host out, or say --insecure where nobody can listen in, or a proxy with TLS stands in front.',
  'hint.INTERNAL': 'If it comes again, run it with CSB_LOG_LEVEL=debug and report what it says.',
  'hint.LEASE_EXPIRED': 'Hand out a new one with: csb lease --for NAME',
  'hint.LEASE_REQUIRED': 'Hand one out with: csb lease --for NAME',
  'hint.NOT_FOUND': 'Names are listed by: csb note list, csb agent list, csb files refs, csb grants.',
  'hint.NOT_INITIALISED': 'Make one with: csb init --data {directory}',
  'hint.PASSPHRASE': 'Set CSB_PASSPHRASE, or run the command in a terminal that can ask.',
  'hint.PASSPHRASE.none_given': 'Set CSB_PASSPHRASE, run it in a terminal that can ask, or say --unsealed.',
  'hint.PASSPHRASE.too_short': 'Take at least {shortest} characters.',
  'hint.PASSPHRASE.wrong': 'Try again; CSB_PASSPHRASE wins over what is typed. A lost one can not be recovered.',
  'hint.PASSPHRASE.sealed_already': 'There is nothing to do.',
  'hint.PEER_UNREACHABLE': 'See who is there with: csb peers. Connect to one with: csb peers MULTIADDR',
  'hint.PEER_UNREACHABLE.not_running': 'Start it with: csb start --data {directory}',
  'hint.PEER_UNREACHABLE.not_answering': 'Look at what it logs; stop it and start it again.',
  'hint.PORT_IN_USE': 'This one is free, with the two after it: csb start --port {next}',
  'hint.PROTECTED': 'Write into a run branch instead, as runs/NAME.',
  'hint.SCOPE_EXCEEDED': 'See what is granted with: csb grants',
  'hint.TIMEOUT': 'Try again; csb peers shows whether it is connected.',
  'hint.UNAUTHENTICATED': 'The token in owner.token of the data folder is for the node of that folder only.',
} as const

export type TextKey = keyof typeof EN

/** The text of a key with its `{names}` filled in. */
export function t(key: TextKey, values: Readonly<Record<string, unknown>> = {}): string {
  return EN[key].replaceAll(/\{(\w+)\}/g, (_, name: string) => wordOf(values[name]))
}

/** What happened, where the sentence of the table says too little; undefined where it does. */
export const messageFor = (code: string, details: Readonly<Record<string, unknown>>): string | undefined =>
  textFor('message', code, details)

/** What to do next after an error, or undefined where there is nothing to add. */
export const hintFor = (code: string, details: Readonly<Record<string, unknown>>): string | undefined =>
  textFor('hint', code, details)

function textFor(
  kind: 'message' | 'hint',
  code: string,
  details: Readonly<Record<string, unknown>>,
): string | undefined {
  const keys = [`${kind}.${code}.${wordOf(details['reason'])}`, `${kind}.${code}`]
  const key = keys.find((one) => Object.hasOwn(EN, one))
  if (key === undefined) return undefined
  const text = EN[key as TextKey]
  // a hint that could only say half of it is none
  const isWhole = [...text.matchAll(/\{(\w+)\}/g)].every(([, name = '']) => details[name] !== undefined)
  return isWhole ? t(key as TextKey, details) : undefined
}

function wordOf(value: unknown): string {
  if (value === undefined || value === null) return '-'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
