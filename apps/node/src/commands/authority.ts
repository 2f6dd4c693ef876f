/** csb delegate, share, trust, inbox: who may speak for the owner, see the home, be believed here, and who did speak. */
import { Option, type Command } from 'commander'
import { LEVELS, systemClock, type Grant, type Level } from '@csb/core'
import { shareWith } from '@csb/node'
import {
  acting,
  collect,
  countOf,
  didOf,
  durationOf,
  given,
  listOf,
  named,
  owning,
  route,
  type Stand,
} from '../context.ts'
import { delegateCommand } from './delegate.ts'
import { checkOwner } from '../right.ts'
import { inline } from '../terminal.ts'
import { t } from '../texts.ts'

type Rank = Grant['delegation']['level']
type Trusted = {
  readonly did: string
  readonly name: string
  readonly ceiling: string
  /** ms since epoch: the key is in other hands, and nothing of it is honoured since */
  readonly ended_at?: number
  readonly clearance: { readonly level: string } | null
  readonly speaks?: {
    readonly name: string
    readonly scope: readonly string[]
    readonly level: string
    readonly until: number | null
  } | null
}
type Received = {
  readonly at: number
  readonly from: string
  readonly name: string | null
  readonly agent: string
  readonly text: string
  readonly authority: {
    readonly accepted: boolean
    readonly level?: string
    readonly delegated_by?: string
    readonly stale?: boolean
    readonly ended?: string
    readonly reason?: string
  } | null
}
type Sharing = { readonly name?: string; readonly level: Level; readonly tag?: string[]; readonly write?: boolean }
type Trusting = {
  readonly name?: string
  readonly ceiling: Rank
  readonly clearance: Level
  readonly remove?: boolean
  readonly delegate?: string
  readonly scope?: string
  readonly level: Rank
  readonly ttl?: number
}
/** Of a stranger's words that a list shows. */
const INBOX_CHARS = 200
const RANKS: readonly Rank[] = ['inform', 'request', 'execute', 'override']

const rankOption = (flags: string, about: string, fallback: Rank): Option =>
  new Option(flags, about).choices(RANKS).default(fallback)
const levelOption = (flags: string, about: string): Option => new Option(flags, about).choices(LEVELS).default('public')

export function authorityCommands(program: Command): void {
  program.commandsGroup(t('group.authority'))
  delegateCommand(program)
  program
    .command('share')
    .argument('<did>', '', didOf)
    .description(t('share.about'))
    .option('--name <name>', t('option.name'))
    .addOption(levelOption('--level <level>', t('option.clearance')))
    .option('--tag <tag>', t('option.tag'), collect)
    .option('--write', t('option.write'))
    .action(owning<Sharing, [string]>(share))
  program
    .command('trust')
    .argument('[did]', '', didOf)
    .description(t('trust.about'))
    .option('--name <name>', t('option.name'))
    .addOption(rankOption('--ceiling <level>', t('option.ceiling'), 'request'))
    .addOption(levelOption('--clearance <level>', t('option.clearance')))
    .option('--remove', t('option.remove'))
    .option('--delegate <name>', t('trust.delegate'))
    .option('--scope <tokens>', t('option.scope'))
    .addOption(new Option('--level <level>', t('trust.level')).choices(RANKS.slice(0, 3)).default('request'))
    .option('--ttl <duration>', t('option.ttl'), durationOf)
    .action(acting<Trusting, [string | undefined]>(trust))
  program
    .command('inbox')
    .description(t('inbox.about'))
    .option('--limit <n>', t('option.limit'), countOf)
    .action(acting<{ limit?: number }>(inbox))
}

async function share({ desk, out }: Stand, [did]: [string], options: Sharing): Promise<void> {
  const { name = did, level, tag, write = false } = options
  const { grant, hash } = await shareWith(await desk(), {
    to: { name, did },
    level,
    // another node of the owner keeps everything, whatever it is tagged
    tags: tag ?? (write ? ['*'] : []),
    mayWrite: write,
  })
  const words = { name: named(name, did), level, write: write ? t('share.write') : '', hash }
  out.answer({ id: grant.delegation.id, hash, grant }, t('share.done', words))
}

async function trust({ client, out }: Stand, [did]: [string | undefined], options: Trusting): Promise<void> {
  const { name = did, ceiling, clearance, remove } = options
  if (did !== undefined) checkOwner()
  const node = await client()
  if (did === undefined) {
    const found = await node.call<{ items: Trusted[] }>('GET', '/v1/trust')
    const lines = found.items.map(trustText)
    out.answer(found, lines.length === 0 ? t('trust.none') : lines.join('\n'))
    return
  }
  if (remove === true) {
    const removed = await node.call('DELETE', route(['v1', 'trust', did]))
    out.answer(removed, t('trust.removed', { did }))
    return
  }
  const { delegate: whom, scope = '*', level, ttl } = options
  const until = ttl === undefined ? null : systemClock.now() + ttl
  const speaks = whom === undefined ? undefined : { name: whom, scope: listOf(scope), level, until }
  // who may have something done in a name is honoured as far
  const highest = speaks === undefined || RANKS.indexOf(level) <= RANKS.indexOf(ceiling) ? ceiling : level
  const body = { did, name, ceiling: highest, clearance: { level: clearance, tags: [] }, ...given({ speaks }) }
  const entry = await node.call<Trusted>('POST', '/v1/trust', body)
  out.answer(entry, t('trust.done', { name: named(name ?? did, did), ceiling: highest }) + spokenText(entry))
}

const trustText = (entry: Trusted): string =>
  t(entry.ended_at === undefined ? 'trust.line' : 'trust.line.ended', {
    name: named(entry.name, entry.did),
    at: new Date(entry.ended_at ?? 0).toISOString(),
    ceiling: entry.ceiling,
    sees: entry.clearance === null ? t('trust.sees.granted') : t('trust.sees', entry.clearance),
  }) + spokenText(entry)

function spokenText({ speaks }: Trusted): string {
  if (speaks === undefined || speaks === null) return ''
  const until = speaks.until === null ? t('gate.ever') : new Date(speaks.until).toISOString()
  return t('trust.speaks', { ...speaks, name: inline(speaks.name), scope: speaks.scope.map(inline).join(', '), until })
}

async function inbox({ client, out }: Stand, _args: readonly [], { limit }: { limit?: number }): Promise<void> {
  const found = await (await client()).call<{ items: Received[] }>('GET', route(['v1', 'inbox'], { limit }))
  out.answer(found, found.items.length === 0 ? t('inbox.none') : found.items.map(receivedText).join('\n'))
}

/** Who says so is the key; a name is the owner's own for it, or there is none. Its words come last and prove nothing. */
function receivedText({ at, from, name, agent, text, authority }: Received): string {
  const words = inline(text.length > INBOX_CHARS ? `${text.slice(0, INBOX_CHARS)}…` : text)
  const treated =
    authority === null
      ? t('inbox.ordinary')
      : t(authority.accepted ? 'inbox.accepted' : 'inbox.downgraded', {
          level: authority.level,
          name: inline(authority.delegated_by ?? ''),
          stale: authority.stale === true ? t('inbox.stale') : '',
          ended: authority.ended === undefined ? '' : t('inbox.ended', { reason: authority.ended }),
          reason: authority.reason,
        })
  const who = named(name ?? t('peer.unnamed'), from)
  return `${new Date(at).toISOString()}  ${who} -> ${inline(agent)}  ${treated}\n    ${words}`
}
