/** csb delegate, share, trust, lease, grants, revoke: what only the owner may say. */
import { Option, type Command } from 'commander'
import { LEVELS, type Grant, type Lease, type Level } from '@csb/core'
import { delegateTo, leaseFor, revokeGrant, shareWith, type Peer, type Revoked } from '@csb/node'
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
type Leasing = {
  readonly for: string
  readonly actions: string
  readonly paths?: string
  readonly branches?: string
  readonly level: Level
  readonly ttl: number
}
type Granted = { readonly hash: string; readonly revoked: boolean; readonly grant: Grant }

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
  leaseCommands(program)
}

function leaseCommands(program: Command): void {
  program
    .command('lease')
    .description(t('lease.about'))
    .requiredOption('--for <name>', t('option.for'))
    .option('--actions <list>', t('option.actions'), 'send')
    .option('--paths <list>', t('option.paths'))
    .option('--branches <list>', t('option.branches'))
    .addOption(levelOption('--level <level>', t('option.clearance')))
    .option('--ttl <duration>', t('option.ttl'), durationOf, 7 * DAY_MS)
    .action(
      acting<Leasing>(async ({ desk, out }, _args, { for: name, actions, paths = '', branches = '', level, ttl }) => {
        const made = await leaseFor(await desk(), {
          name,
          actions: listOf(actions) as Lease['actions'],
          paths: listOf(paths),
          branches: listOf(branches),
          level,
          ttlMs: ttl,
        })
        out.answer(made, t('lease.done', { name, token: made.token }))
      }),
    )
  program
    .command('grants')
    .description(t('grants.about'))
    .action(
      acting(async ({ client, out }) => {
        const found = await (await client()).call<{ items: Granted[] }>('GET', '/v1/grants')
        out.answer(found, found.items.map(grantText).join('\n'))
      }),
    )
  program
    .command('revoke <grant>')
    .description(t('revoke.about'))
    .option('--tell <did>', t('option.tell'), collect)
    .action(
      acting<{ tell?: string[] }, [string]>(async ({ desk, out }, [grant], { tell = [] }) => {
        const done = await out.during(t('revoke.progress'), revokeGrant(await desk(), grant, tell))
        out.answer(done, revokedText(done))
      }),
    )
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

/** Who has heard, and when those who have not stop by themselves. */
function revokedText({ target, reached, unreached }: Revoked): string {
  const who = ({ name, did }: Peer) => named(name ?? t('peer.unnamed'), did)
  return [
    t('revoke.done', { target }),
    ...reached.map((peer) => t('revoke.reached', { who: who(peer) })),
    ...unreached.map((peer) => t('revoke.unreached', { who: who(peer), at: new Date(peer.ends_at).toISOString() })),
  ].join('\n')
}

function grantText({ hash, revoked, grant: { delegation } }: Granted): string {
  const { id, grantor, grantor_key, grantee, grantee_key, level } = delegation
  const parties = `${named(grantor, grantor_key)} -> ${named(grantee, grantee_key)}`
  return `${hash.slice(0, 19)}  ${id}  ${parties}  ${level}${revoked ? t('grants.revoked') : ''}`
}
