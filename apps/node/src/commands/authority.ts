/** csb delegate, share, trust, inbox: who may speak for the owner, see the home, be believed here, and who did speak. */
import { Option, type Command } from 'commander'
import { LEVELS, systemClock, type Grant, type Level } from '@csb/core'
import { bringTo, delegateTo, shareWith } from '@csb/node'
import { acting, collect, countOf, didOf, durationOf, given, listOf, named, route, type Stand } from '../context.ts'
import { inline } from '../terminal.ts'
import { t } from '../texts.ts'

type Rank = Grant['delegation']['level']
type Delegating = {
  readonly audience: string[]
  readonly to?: string
  readonly toName?: string
  readonly scope?: string
  readonly level: Rank
  readonly ttl?: number
  readonly task?: string
  readonly depth?: number
  readonly maxAge?: number
  readonly send?: boolean
}
type Trusted = {
  readonly did: string
  readonly name: string
  readonly ceiling: string
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
const DAY_MS = 86_400_000
/** Of a stranger's words that a list shows. */
const INBOX_CHARS = 200
const RANKS: readonly Rank[] = ['inform', 'request', 'execute', 'override']

const rankOption = (flags: string, about: string, fallback: Rank): Option =>
  new Option(flags, about).choices(RANKS).default(fallback)
const levelOption = (flags: string, about: string): Option => new Option(flags, about).choices(LEVELS).default('public')

/** Dids, or every node. */
const audienceOf = (value: string, before: readonly string[] | undefined): string[] => [
  ...(before ?? []),
  ...listOf(value).map((one) => (one === '*' ? one : didOf(one))),
]

export function authorityCommands(program: Command): void {
  program.commandsGroup(t('group.authority'))
  program
    .command('delegate')
    .description(t('delegate.about'))
    .requiredOption('--audience <did>', t('option.audience'), audienceOf)
    .option('--to <did>', t('option.grantee'), didOf)
    .option('--to-name <name>', t('option.grantee-name'))
    .option('--scope <tokens>', t('option.scope'))
    .addOption(rankOption('--level <level>', t('option.rank'), 'request'))
    .option('--ttl <duration>', t('option.ttl'), durationOf)
    .option('--task <id>', t('option.task'))
    .option('--depth <n>', t('delegate.depth'), countOf)
    .option('--max-age <duration>', t('delegate.max-age'), durationOf)
    .option('--send', t('delegate.send'))
    .action(acting<Delegating>(delegate))
  program
    .command('share')
    .argument('<did>', '', didOf)
    .description(t('share.about'))
    .option('--name <name>', t('option.name'))
    .addOption(levelOption('--level <level>', t('option.clearance')))
    .option('--tag <tag>', t('option.tag'), collect)
    .option('--write', t('option.write'))
    .action(acting<Sharing, [string]>(share))
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
    .addOption(new Option('--level <level>', t('option.rank')).choices(RANKS.slice(0, 3)).default('request'))
    .option('--ttl <duration>', t('option.ttl'), durationOf)
    .action(acting<Trusting, [string | undefined]>(trust))
  program
    .command('inbox')
    .description(t('inbox.about'))
    .option('--limit <n>', t('option.limit'), countOf)
    .action(acting<{ limit?: number }>(inbox))
}

async function delegate({ desk, out }: Stand, _args: readonly [], options: Delegating): Promise<void> {
  const { audience, to, toName, scope = '*', level, ttl, task, depth, maxAge, send } = options
  const scopes = listOf(scope)
  const isGlobal = scopes.includes('*') && task === undefined
  const { grant, hash } = await delegateTo(await desk(), {
    ...(to === undefined ? {} : { to: { name: toName ?? to, did: to } }),
    audience,
    scope: scopes,
    level,
    // a global grant may live until it is revoked; the others need an end
    ttlMs: ttl ?? (isGlobal ? null : DAY_MS),
    ...given({ task, maxDepth: depth, maxAgeMs: maxAge }),
  })
  if (send === true && to !== undefined) await out.during(t('delegate.sending'), bringTo(await desk(), to, grant))
  const { id, grantee, grantee_key, grantor, grantor_key, ...rest } = grant.delegation
  const words = { grantee: named(grantee, grantee_key), grantor: named(grantor, grantor_key), id, hash }
  out.answer({ id, hash, grant }, t('delegate.done', { ...words, level: rest.level, scope: rest.scope.join(', ') }))
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

const trustText = (entry: Trusted): string => `${named(entry.name, entry.did)}  ${entry.ceiling}${spokenText(entry)}`

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
