/** csb delegate: who may speak for the owner, and what was received passed on. */
import { Option, type Command } from 'commander'
import { fail, type Grant, type Lease } from '@csb/core'
import { bringTo, delegateTo, passOnFrom, type Passed } from '@csb/node'
import { countOf, didOf, durationOf, fromCaller, given, listOf, named, owning, type Stand } from '../context.ts'
import { readLease } from '../lease-file.ts'
import { inline } from '../terminal.ts'
import { t } from '../texts.ts'

type Rank = Grant['delegation']['level']
type Delegating = {
  readonly from?: string
  readonly audience?: string[]
  readonly to?: string
  readonly toName?: string
  readonly scope?: string
  readonly level?: Rank
  readonly ttl?: number
  readonly task?: string
  readonly depth?: number
  readonly maxAge?: number
  readonly lease?: string
  readonly send?: boolean
}

const DAY_MS = 86_400_000
const RANKS: readonly Rank[] = ['inform', 'request', 'execute', 'override']

/** Dids, or every node. */
const audienceOf = (value: string, before: readonly string[] | undefined): string[] => [
  ...(before ?? []),
  ...listOf(value).map((one) => (one === '*' ? one : didOf(one))),
]

export function delegateCommand(program: Command): void {
  program
    .command('delegate')
    .description(t('delegate.about'))
    .option('--from <grant>', t('delegate.from'))
    .option('--audience <did>', t('option.audience'), audienceOf)
    .option('--to <did>', t('option.grantee'), didOf)
    .option('--to-name <name>', t('option.grantee-name'))
    .option('--scope <tokens>', t('option.scope'))
    .addOption(new Option('--level <level>', t('delegate.level')).choices(RANKS))
    .option('--ttl <duration>', t('option.ttl'), durationOf)
    .option('--task <id>', t('option.task'))
    .option('--depth <n>', t('delegate.depth'), countOf)
    .option('--max-age <duration>', t('delegate.max-age'), durationOf)
    .option('--lease <file>', t('delegate.lease'))
    .option('--send', t('delegate.send'))
    .action(
      owning<Delegating>((stand, _args, options) =>
        options.from === undefined ? delegate(stand, options) : pass(stand, options.from, options),
      ),
    )
}

async function delegate({ desk, out }: Stand, options: Delegating): Promise<void> {
  const { audience, to, toName, scope = '*', level = 'request', ttl, task, depth, maxAge, lease, send } = options
  if (audience === undefined) fail('INVALID_INPUT', { problem: t('delegate.needs', { option: '--audience' }) })
  if (lease !== undefined) fail('INVALID_INPUT', { problem: t('delegate.lease.only') })
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
  if (send === true && to !== undefined) await out.during(t('delegate.sending'), bringTo(await desk(), to, [grant]))
  const { id, grantee, grantee_key, grantor, grantor_key, ...rest } = grant.delegation
  const words = { grantee: named(grantee, grantee_key), grantor: named(grantor, grantor_key), id, hash }
  const scoped = rest.scope.map(inline).join(', ')
  out.answer({ id, hash, grant }, t('delegate.done', { ...words, level: rest.level, scope: scoped }))
}

async function pass({ desk, out }: Stand, from: string, options: Delegating): Promise<void> {
  const { audience, to, toName, scope, level, ttl, task, depth, maxAge, lease, send } = options
  if (to === undefined) fail('INVALID_INPUT', { problem: t('delegate.needs', { option: '--to' }) })
  const members = lease === undefined ? undefined : await readLease(fromCaller(lease))
  const opened = await desk()
  const done = await passOnFrom(opened, from, {
    to: { name: toName ?? to, did: to },
    ...given({ audience, level, task, ttlMs: ttl, maxDepth: depth, maxAgeMs: maxAge, lease: narrower(members) }),
    ...(scope === undefined ? {} : { scope: listOf(scope) }),
  })
  if (send === true) await out.during(t('delegate.sending'), bringTo(opened, to, done.chain))
  out.answer({ ...done, grant: done.chain.at(-1) }, passedText(done))
}

/** What the file says of a lease; its type is always the same. */
function narrower(members: Partial<Lease> | undefined): Partial<Lease> | undefined {
  if (members === undefined) return undefined
  const { type: _type, ...rest } = members
  return rest
}

/** The whole way, by keys: a name alone would prove nothing. */
function passedText({ id, hash, chain }: Passed): string {
  const [root] = chain
  const leaf = chain.at(-1)
  if (root === undefined || leaf === undefined) return ''
  const way = [
    named(root.delegation.grantor, root.delegation.grantor_key),
    ...chain.map(({ delegation }) => named(delegation.grantee, delegation.grantee_key)),
  ]
  const { level, scope, expires_at: end, max_depth: depth } = leaf.delegation
  return t('delegate.passed', {
    grantee: way.at(-1),
    grantor: way[0],
    level,
    scope: scope.map(inline).join(', '),
    until: end === null ? t('gate.ever') : new Date(end).toISOString(),
    depth,
    way: way.join(' -> '),
    id,
    hash,
  })
}
