/** csb delegate, share, trust: who may speak for the owner, see the home, be believed here. */
import { Option, type Command } from 'commander'
import { LEVELS, type Grant, type Level } from '@csb/core'
import { delegateTo, shareWith } from '@csb/node'
import { acting, collect, durationOf, listOf, named, route, type Stand } from '../context.ts'
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
}
type Sharing = { readonly name?: string; readonly level: Level; readonly tag?: string[]; readonly write?: boolean }
type Trusting = {
  readonly name?: string
  readonly ceiling: Rank
  readonly clearance: Level
  readonly remove?: boolean
}
const DAY_MS = 86_400_000
const RANKS: readonly Rank[] = ['inform', 'request', 'execute', 'override']

const rankOption = (flags: string, about: string, fallback: Rank): Option =>
  new Option(flags, about).choices(RANKS).default(fallback)
const levelOption = (flags: string, about: string): Option => new Option(flags, about).choices(LEVELS).default('public')

export function authorityCommands(program: Command): void {
  program.commandsGroup(t('group.authority'))
  program
    .command('delegate')
    .description(t('delegate.about'))
    .requiredOption('--audience <did>', t('option.audience'), collect)
    .option('--to <did>', t('option.grantee'))
    .option('--to-name <name>', t('option.grantee-name'))
    .option('--scope <tokens>', t('option.scope'))
    .addOption(rankOption('--level <level>', t('option.rank'), 'request'))
    .option('--ttl <duration>', t('option.ttl'), durationOf)
    .option('--task <id>', t('option.task'))
    .action(acting<Delegating>(delegate))
  program
    .command('share <did>')
    .description(t('share.about'))
    .option('--name <name>', t('option.name'))
    .addOption(levelOption('--level <level>', t('option.clearance')))
    .option('--tag <tag>', t('option.tag'), collect)
    .option('--write', t('option.write'))
    .action(acting<Sharing, [string]>(share))
  program
    .command('trust [did]')
    .description(t('trust.about'))
    .option('--name <name>', t('option.name'))
    .addOption(rankOption('--ceiling <level>', t('option.ceiling'), 'request'))
    .addOption(levelOption('--clearance <level>', t('option.clearance')))
    .option('--remove', t('option.remove'))
    .action(acting<Trusting, [string | undefined]>(trust))
}

async function delegate({ desk, out }: Stand, _args: readonly [], options: Delegating): Promise<void> {
  const { audience, to, toName, scope = '*', level, ttl, task } = options
  const scopes = listOf(scope)
  const isGlobal = scopes.includes('*') && task === undefined
  const { grant, hash } = await delegateTo(await desk(), {
    ...(to === undefined ? {} : { to: { name: toName ?? to, did: to } }),
    audience,
    scope: scopes,
    level,
    // a global grant may live until it is revoked; the others need an end
    ttlMs: ttl ?? (isGlobal ? null : DAY_MS),
    ...(task === undefined ? {} : { task }),
  })
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
    const found = await node.call<{ items: { did: string; name: string; ceiling: string }[] }>('GET', '/v1/trust')
    const lines = found.items.map((entry) => `${named(entry.name, entry.did)}  ${entry.ceiling}`)
    out.answer(found, lines.length === 0 ? t('trust.none') : lines.join('\n'))
    return
  }
  if (remove === true) {
    const removed = await node.call('DELETE', route(['v1', 'trust', did]))
    out.answer(removed, t('trust.removed', { did }))
    return
  }
  const body = { did, name, ceiling, clearance: { level: clearance, tags: [] } }
  const entry = await node.call('POST', '/v1/trust', body)
  out.answer(entry, t('trust.done', { name: named(name ?? did, did), ceiling }))
}
