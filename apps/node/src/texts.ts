/** Every sentence the command says to a person, by key. One catalogue; code holds no prose. */

import { GIT_TEXTS, fillText, namesIn, wordOf } from '@csb/core'
import { AGENT_TEXTS } from './agent-texts.ts'
import { ERROR_TEXTS } from './error-texts.ts'
import { FILE_TEXTS } from './file-texts.ts'
import { GATE_TEXTS } from './gate-texts.ts'
import { GRANT_TEXTS } from './grant-texts.ts'
import { KEY_TEXTS } from './key-texts.ts'
import { NODE_TEXTS } from './node-texts.ts'
import { NOTE_TEXTS } from './note-texts.ts'
import { RECORD_TEXTS } from './record-texts.ts'

const EN = {
  // on one line with the usage: the whole help has to fit a screen
  'usage.budget':
    'A budget is calls=100, bytes_read=1000, bytes_written=1000, wall_ms=60000, tokens=10000 or cost_micro=500000.',
  'usage.frame': '[options] COMMAND - a peer-to-peer home for AI agents',
  'help.after':
    '\nExit codes: 0 done, 1 fault, 2 bad input, 3 refused, 4 not found, 5 busy or unreachable.\nWith CSB_TOKEN set, as in a run of an agent, it asks by that token and never as the owner.\nStart here: csb start --init. Then: csb status, csb note add "...", csb COMMAND --help.',
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

  ...AGENT_TEXTS,
  ...ERROR_TEXTS,
  ...FILE_TEXTS,
  ...GATE_TEXTS,
  ...GIT_TEXTS,
  ...GRANT_TEXTS,
  ...KEY_TEXTS,
  ...NODE_TEXTS,
  ...NOTE_TEXTS,
  ...RECORD_TEXTS,
} as const

export type TextKey = keyof typeof EN

/** Is there a text of that key? */
export const hasText = (key: string): key is TextKey => Object.hasOwn(EN, key)

/** The text of a key with its `{names}` filled in; `{name|one|many}` is a number and what is counted, in one of both. */
export const t = (key: TextKey, values: Readonly<Record<string, unknown>> = {}): string => fillText(EN[key], values)

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
  const reason = `${kind}.${code}.${wordOf(details['reason'])}`
  // the last word of a field says what is wrong with it, whatever it stands in
  const member = wordOf(details['field'])
    .split('.')
    .findLast((part) => !/^[0-9]+$/.test(part))
  const key = [`${reason}.${member ?? ''}`, reason, `${kind}.${code}`].find((one) => Object.hasOwn(EN, one))
  if (key === undefined) return undefined
  // a hint that could only say half of it is none
  const isWhole = namesIn(EN[key as TextKey]).every((name) => details[name] !== undefined)
  return isWhole ? t(key as TextKey, details) : undefined
}
