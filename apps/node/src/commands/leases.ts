/** csb lease, grants, revoke: what is handed out, what there is, what ends. */
import { InvalidArgumentError, Option, type Command } from 'commander'
import { LEVELS, fail, systemClock, type Grant, type Lease, type Level } from '@csb/core'
import { leaseFor, narrowLease, revokeGrant, type LeaseFor, type Leased, type Peer, type Revoked } from '@csb/node'
import {
  acting,
  collect,
  collectDids,
  countOf,
  durationOf,
  fromCaller,
  given,
  listOf,
  named,
  owning,
  type Stand,
} from '../context.ts'
import { readLease } from '../lease-file.ts'
import { leaseText, reachText } from '../lease-text.ts'
import { checkOwner, isRun } from '../right.ts'
import { inline } from '../terminal.ts'
import { t } from '../texts.ts'

type Leasing = {
  readonly for: string
  readonly file?: string
  readonly actions?: string
  readonly paths?: string
  readonly deny?: string
  readonly branches?: string
  readonly level?: Level
  readonly tag?: string[]
  readonly floor?: Level
  readonly capability?: string[]
  readonly gate?: string[]
  readonly budget?: Budget
  readonly children?: number
  readonly ttl?: number
  readonly narrow?: boolean
}
type Budget = NonNullable<Lease['budget']>
type Granted = {
  readonly hash: string
  readonly revoked: boolean
  readonly grant: Grant
  readonly used?: Readonly<Record<string, number>>
}
type Self = { readonly did: string; readonly owner: { readonly did: string } }

const DAY_MS = 86_400_000
/** What is done at a path of a branch; a list alone is of what the node holds. */
const ON_PATHS = ['list', 'read', 'write', 'propose']
const ON_BRANCHES = ['read', 'write', 'propose']
/** What a node counts. */
const UNITS = ['calls', 'bytes_read', 'bytes_written', 'wall_ms', 'tokens', 'cost_micro'] as const

export function leaseCommands(program: Command): void {
  program.commandsGroup(t('group.authority'))
  program
    .command('lease')
    .description(t('lease.about'))
    .requiredOption('--for <name>', t('option.for'))
    .option('--file <path>', t('lease.file'))
    .option('--actions <list>', t('option.actions'))
    .option('--paths <list>', t('option.paths'))
    .option('--deny <list>', t('lease.deny'))
    .option('--branches <list>', t('option.branches'))
    .addOption(new Option('--level <level>', t('lease.level')).choices(LEVELS))
    .option('--tag <tag>', t('option.tag'), collect)
    .addOption(new Option('--floor <level>', t('lease.floor')).choices(LEVELS))
    .option('--capability <B|C>', t('lease.capability'), collect)
    .option('--gate <action>', t('lease.gate'), collect)
    .option('--budget <unit=n>', t('lease.budget'), budgetOf)
    .option('--children <n>', t('lease.children'), countOf)
    .option('--ttl <duration>', t('lease.ttl'), durationOf)
    .option('--narrow', t('lease.narrow'))
    .addHelpText('after', t('lease.help.rules'))
    .action(
      acting<Leasing>(async (stand, _args, options) => {
        const made = options.narrow === true ? await narrow(stand, options) : await handOut(stand, options)
        stand.out.answer(made, leaseText(options.for, made))
      }),
    )
  program
    .command('grants')
    .description(t('grants.about'))
    .option('--all', t('grants.all'))
    .action(acting<{ all?: boolean }>((stand, _args, { all }) => grants(stand, all === true)))
  program
    .command('revoke <grant>')
    .description(t('revoke.about'))
    .option('--tell <did>', t('option.tell'), collectDids)
    .action(
      owning<{ tell?: string[] }, [string]>(async ({ desk, out }, [grant], { tell = [] }) => {
        const done = await out.during(t('revoke.progress'), revokeGrant(await desk(), grant, tell))
        out.answer(done, revokedText(done))
      }),
    )
}

async function handOut({ desk }: Stand, options: Leasing): Promise<Leased> {
  checkOwner()
  const members = await membersOf(options)
  const lease: LeaseFor = { labels_max: 'public', ...members, actions: members.actions ?? ['send'] }
  checkReach(lease)
  return leaseFor(await desk(), { name: options.for, lease, ttlMs: options.ttl ?? 7 * DAY_MS })
}

/** What is not named stays as it is in the lease of the token, which stands where an agent finds its own. */
async function narrow({ client }: Stand, options: Leasing): Promise<Leased> {
  // the owner's own lease is not what is meant
  if (!isRun()) fail('UNAUTHENTICATED', { reason: 'no_token' })
  return narrowLease(await client(), {
    name: options.for,
    lease: await membersOf(options),
    ...given({ ttlMs: options.ttl }),
  })
}

/** What a file says of a lease, with what was said beside it over it. */
async function membersOf(options: Leasing): Promise<Partial<LeaseFor>> {
  const { file, actions, paths, deny, branches, level, floor, tag, capability, gate, budget, children } = options
  const { type: _type, ...read } = file === undefined ? { type: undefined } : await readLease(fromCaller(file))
  return {
    ...read,
    ...given({
      actions: actions === undefined ? undefined : listOf(actions),
      paths: paths === undefined ? undefined : listOf(paths),
      deny_paths: deny === undefined ? undefined : listOf(deny),
      branches: branches === undefined ? undefined : listOf(branches),
      labels_max: level,
      label_tags: tag,
      label_floor: floor,
      capabilities: capability,
      gates: gate,
      budget,
      max_children: children,
    }),
  } as Partial<LeaseFor>
}

/** One that says what may be done and not where does nothing, and nobody would see why. */
function checkReach({ actions, paths = [], branches = [] }: LeaseFor): void {
  const needing = (needs: readonly string[]) => actions.filter((action) => needs.includes(action))
  const options = [
    ...(paths.length === 0 && needing(ON_PATHS).length > 0 ? ['--paths'] : []),
    ...(branches.length === 0 && needing(ON_BRANCHES).length > 0 ? ['--branches'] : []),
  ]
  if (options.length === 0) return
  const words = { actions: needing(ON_PATHS).join(', '), options: options.join(', ') }
  fail('INVALID_INPUT', { problem: t('lease.needs', words) })
}

/** `calls=100,bytes_written=1000000` */
function budgetOf(text: string, before: Budget | undefined): Budget {
  const budget: Budget = { ...before }
  for (const part of listOf(text)) {
    const [unit, amount = ''] = part.split('=')
    const known = UNITS.find((one) => one === unit)
    if (known === undefined || !/^[0-9]{1,15}$/.test(amount)) throw new InvalidArgumentError(t('usage.budget'))
    budget[known] = Number(amount)
  }
  return budget
}

/** What is kept: of one that is over, or was made for a single run, only on demand. */
async function grants({ client, out }: Stand, all: boolean): Promise<void> {
  const node = await client()
  const found = await node.call<{ items: Granted[] }>('GET', '/v1/grants')
  const { did, owner } = await node.call<Self>('GET', '/v1/status')
  const now = systemClock.now()
  const isShown = ({ revoked, grant: { delegation } }: Granted) =>
    all || (!revoked && (delegation.expires_at ?? now + 1) > now && delegation.task === null)
  const shown = found.items
    .filter(isShown)
    .toSorted((a, b) => a.grant.delegation.granted_at - b.grant.delegation.granted_at)
  const own = [did, owner.did]
  const lines = shown.map((one) => grantText(one, isPassable(one.grant, own)))
  const hidden = found.items.length - shown.length
  const notes = [
    ...(shown.some(({ grant }) => isPassable(grant, own)) ? [t('grants.passable')] : []),
    ...(hidden === 0 ? [] : [t('grants.hidden', { hidden })]),
  ]
  out.answer(found, [...(lines.length === 0 ? [t('grants.none')] : lines), ...notes].join('\n'))
}

/** Was it received here from somebody else, and may it be passed on? */
const isPassable = ({ delegation }: Grant, own: readonly string[]): boolean =>
  delegation.max_depth > 0 && own.includes(delegation.grantee_key) && !own.includes(delegation.grantor_key)

function grantText({ hash, revoked, used, grant }: Granted, passable: boolean): string {
  const { id, grantor, grantor_key, grantee, grantee_key, level, scope, expires_at: end, parent } = grant.delegation
  const lease = grant.authorization_details?.[0]
  const budget = Object.entries(lease?.budget ?? {})
  const lines = [
    t('grants.line', {
      mark: passable ? '*' : ' ',
      hash: hash.slice(0, 19),
      id: inline(id),
      parties: `${named(grantor, grantor_key)} -> ${named(grantee, grantee_key)}`,
      revoked: revoked ? t('grants.revoked') : '',
    }),
    t('grants.what', {
      level,
      scope: scope.map(inline).join(', '),
      until: end === null ? t('gate.ever') : new Date(end).toISOString(),
      parent: parent === null ? '' : t('grants.under', { parent: parent.slice(0, 19) }),
    }),
    ...(lease === undefined ? [] : [reachText(lease)]),
    ...(budget.length === 0
      ? []
      : [budget.map(([unit, most]) => t('grants.used', { unit, used: used?.[unit] ?? 0, most })).join(', ')]),
  ]
  return lines.join('\n    ')
}

/** Who has heard, and when those who have not stop by themselves. */
function revokedText({ target, grant: { delegation }, reached, unreached }: Revoked): string {
  const who = ({ name, did }: Peer) => named(name ?? t('peer.unnamed'), did)
  return [
    t('revoke.done', {
      target,
      grantor: named(delegation.grantor, delegation.grantor_key),
      grantee: named(delegation.grantee, delegation.grantee_key),
      level: delegation.level,
      scope: delegation.scope.map(inline).join(', '),
    }),
    ...reached.map((peer) => t('revoke.reached', { who: who(peer) })),
    ...unreached.map((peer) => t('revoke.unreached', { who: who(peer), at: new Date(peer.ends_at).toISOString() })),
  ].join('\n')
}
