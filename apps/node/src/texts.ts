/** Every sentence the command says to a person, by key. One catalogue; code holds no prose. */

import { ERROR_TEXTS } from './error-texts.ts'
import { GATE_TEXTS } from './gate-texts.ts'
import { GRANT_TEXTS } from './grant-texts.ts'
import { KEY_TEXTS } from './key-texts.ts'
import { RECORD_TEXTS } from './record-texts.ts'

const EN = {
  // on one line with the usage: the whole help has to fit a screen
  'usage.budget':
    'A budget is calls=100, bytes_read=1000, bytes_written=1000, wall_ms=60000, tokens=10000 or cost_micro=500000.',
  'usage.frame': '[options] COMMAND - a peer-to-peer home for AI agents',
  'help.after':
    '\nExit codes: 0 done, 1 fault, 2 bad input, 3 refused, 4 not found, 5 busy or unreachable.\nStart here: csb start --init. Then: csb status, csb note add "...", csb COMMAND --help.',
  'usage.hint': 'How it is used: {command} --help',
  'usage.command': 'a command is missing',
  'usage.port': 'A port is a number from 0 to {last}; 0 takes any.',
  'usage.duration': 'A duration is 10s, 5m, 2h or 7d.',
  'usage.label': 'A label is public, trusted, private or sealed, with :owner, :agent or :external behind it, and tags.',
  'usage.did': 'A did is did:key:z6Mk..., as csb status and csb peers show it.',
  'usage.note': 'The id of a note is mem_..., as csb note list shows it.',
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
  'option.type': 'what kind of note',
  'option.level': 'how near at hand',
  'option.tag': 'a tag; may be given again',
  'option.label': 'who may see it: public, trusted, private or sealed, as in trusted:owner',
  'option.limit': 'how many at most',
  'option.cursor': 'go on after this one',
  'option.reason': 'why, for the record',
  'option.message': 'what the commit says',
  'option.resume': 'go on with an export that broke off',
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
  'option.actions': 'list, read, write, propose, snapshot, send, exec; several with commas (default: send)',
  'option.paths': 'these paths and nothing else, / for all; needed to list, read, write or propose',
  'option.branches': 'these branches and no others, as in runs/* or *; needed to read, write or propose',
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
    "NOTE: the owner's key is not sealed. Who can read {directory} can act as {owner}.\n      Seal it with: {csb} key seal{data}",

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
    '{name}  {did}\n  owner    {owner}\n  home     {home}\n  url      {url}\n  peers    {connected} connected, {known} known\n  record   {size} entries, {vouched}\n{addresses}',
  'status.address': '  address  {address}',
  'status.copy': '  copy     {home} of {owner}',

  'owner.passphrase': 'Passphrase of {owner}:',

  'note.about': 'notes of the home: add, list, show, rm, restore, forget',
  'note.add.about': 'remember something',
  'note.list.about': 'list notes, newest first',
  'note.show.about': 'show one note',
  'note.rm.about': 'delete a note; it can be restored for 30 days',
  'note.restore.about': 'take a deletion back',
  'note.added': 'Remembered as {id}.',
  'note.long':
    'A note holds {most} characters, and this has {chars}. Put it into a file: csb import FILE.md takes it in, in parts.',
  'note.remark': '  {path} {from} is none: it became {to}.',
  'note.deleted': 'Deleted {id}. Take it back with: csb note restore {id}',
  'note.restored': 'Restored {id}.',
  'note.scan.clean': 'nothing of it is left',
  'note.scan.remains': 'something is left in {files}',
  'note.none': 'No notes.',
  'note.more': 'There are more: say the same again with --cursor {next}, or a higher --limit.',

  'import.about': 'take in Markdown or text, an Obsidian vault, or a chat',
  'import.progress': 'Taking in notes: {count}',
  'import.done': '{created|note|notes} taken in, {kept|was|were} here already, {skipped|file|files} skipped.',
  'import.warned': '  {path}: {warnings}',
  'import.skipped': '  skipped {path}: {reason}',

  'files.about': 'files: ls, cat, put, merge, snapshot, restore, export, import',
  'files.home': 'another home that this node keeps a copy of: its id, the beginning of it, or the name of its owner',
  'files.refs.about': 'list branches',
  'files.ls.about': 'list files of a branch',
  'files.cat.about': 'print a file',
  'files.put.about': 'write a file into a run branch, from standard input',
  'files.log.about': 'list commits of a branch',
  'files.put': 'Committed {commit} on {branch}.',
  'files.rm.about': 'delete a file of a run branch',
  'files.branch.about': 'start a branch where main is, or another branch',
  'files.branch.remove': 'take the branch away; it can be restored for 30 days',
  'files.branch.restore': 'bring back the head of a branch that was removed or moved to other history',
  'files.branch.as': 'with --restore: the branch that it becomes, where one of the old name is there',
  'files.branch.head': 'with --restore: which head, where there were several (csb files recycle)',
  'files.branch.done': 'Branch {branch} is at {commit}.',
  'files.branch.removed': 'Removed {branch}. Take it back with: csb files branch {branch} --restore',
  'files.diff.about': 'show what differs between two branches',
  'files.same': 'Nothing differs.',
  'files.merge.about': 'merge a branch into another, by default main; main asks for your approval',
  'files.merge.preview': 'only show what it would do',
  'files.merged': 'Merged {from} into {into}: {commit}.',
  'files.conflict': 'conflict ({kind}) {path}, kept: {kept}',
  'files.snapshot.about': 'keep what a branch holds now, by default main, under a name, for good',
  'files.snapshot.done': 'Kept as {branch}. Nothing moves or removes it.',
  'files.recycle.about': 'list what was deleted and can be restored',
  'files.recycle.none': 'Nothing was deleted.',
  'files.recycle.file': '{path}  {label}  deleted from {branch} by {commit}, kept until {until}',
  'files.recycle.branch': 'branch {branch}  at {commit}, kept until {until}',
  'files.restore.about': 'restore a deleted file into a run branch, with its label',
  'files.restore.by': 'the merge that deleted it; default the latest',
  'files.restored': 'Restored {path} on {branch}: {commit}.',
  'files.fsck.about': 'check every object, and name what needs a damaged one',
  'files.fsck.progress': 'Checking',
  'files.fsck.done': '{objects|object|objects} checked, {unneeded} of them needed by nothing.',
  'files.fsck.damaged': '{reason} {oid}',
  'files.fsck.paths': '  paths     {names}',
  'files.fsck.commits': '  commits   {names}',
  'files.fsck.branches': '  branches  {names}',
  'files.fsck.holders': '  kept for  {names}',
  'files.fsck.cut': '  and more',
  'files.gc.about': 'remove what nothing needs any more',
  'files.gc.progress': 'Collecting',
  'files.gc.done': '{removed|object|objects} removed, {kept} kept, {expired|entry|entries} past their date.',
  'files.gc.paused': 'Something is being taken in: the rest goes another time.',
  'files.credential.about': 'give git the token of this node where it asks for it: a credential helper',
  'files.credential.help':
    '\ngit asks it where it is named for the clone; it is asked for the address of this node alone:\n  git clone -c credential.helper="!csb files credential --data DIR" URL',
  'files.protected': '  (protected)',
  'files.submodule': '{path}  (submodule at {commit})',
  'files.export.about': 'write a home with its history into one file',
  'files.export.progress': 'Exporting [{bar}] {done} of {total} MiB',
  'files.exported': 'Wrote {bytes} bytes to {file}. Whoever has it can read the home.',
  'files.import.about': 'take a home in from such a file',
  'files.import.progress': 'Importing [{bar}] {done} of {total} MiB',
  'files.imported': 'Took in {home}: {objects|object|objects}, {branches|branch|branches}.',

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

  'label.about': 'label a file or a note; lowering waits for the owner',
  'label.file.about': 'label a file or a folder of a branch',
  'label.note.about': 'label a note',
  'label.done': 'Labelled {what} as {label}.',

  ...GATE_TEXTS,
  ...GRANT_TEXTS,

  ...KEY_TEXTS,

  ...RECORD_TEXTS,

  ...ERROR_TEXTS,
} as const

const NAMED = /\{(\w+)(?:\|([^|}]*)\|([^|}]*))?\}/g

export type TextKey = keyof typeof EN

/** Is there a text of that key? */
export const hasText = (key: string): key is TextKey => Object.hasOwn(EN, key)

/** The text of a key with its `{names}` filled in; `{name|one|many}` is a number and what is counted, in one of both. */
export function t(key: TextKey, values: Readonly<Record<string, unknown>> = {}): string {
  return EN[key].replaceAll(NAMED, (_, name: string, one?: string, many?: string) => {
    const value = wordOf(values[name])
    return one === undefined ? value : `${value} ${value === '1' ? one : many}`
  })
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
  const isWhole = [...text.matchAll(NAMED)].every(([, name = '']) => details[name] !== undefined)
  return isWhole ? t(key as TextKey, details) : undefined
}

function wordOf(value: unknown): string {
  if (value === undefined || value === null) return '-'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
