/** csb delegate, share, trust, lease, grants, revoke: what only the owner may say. Names are shown with the key's end. */
import type { Command } from 'commander'
import type { Grant, Lease } from '@csb/core'
import { delegateTo, leaseFor, revokeGrant, shareWith } from '@csb/node'
import { acting, collect, durationOf, listOf } from '../context.ts'
import { t } from '../texts.ts'

/** A name is free text of whoever wrote it: the key's last characters stand beside it, always. */
const named = (name: string, did: string): string => `${name} (…${did.slice(-8)})`

const DAY_MS = 86_400_000

export function authorityCommands(program: Command): void {
  program.commandsGroup(t('group.authority'))
  program
    .command('delegate')
    .description(t('delegate.about'))
    .requiredOption('--audience <did>', '', collect)
    .option('--to <did>')
    .option('--to-name <name>')
    .option('--scope <tokens>')
    .option('--level <level>')
    .option('--ttl <duration>')
    .option('--task <id>')
    .action(
      acting(async (stand, _args, { audience, to, toName, scope, level = 'request', ttl, task }) => {
        const scopes = listOf(scope)
        const isGlobal = scopes.length === 0 || scopes.includes('*')
        const { grant, hash } = await delegateTo(await stand.desk(), {
          ...(to === undefined ? {} : { to: { name: String(toName ?? to), did: String(to) } }),
          audience: listOf(audience),
          scope: isGlobal ? ['*'] : scopes,
          level: level as Grant['delegation']['level'],
          ttlMs: ttlOf(ttl, isGlobal && task === undefined),
          ...(task === undefined ? {} : { task: String(task) }),
        })
        const { delegation } = grant
        const text = t('delegate.done', {
          grantee: named(delegation.grantee, delegation.grantee_key),
          grantor: named(delegation.grantor, delegation.grantor_key),
          level: delegation.level,
          scope: delegation.scope.join(', '),
          id: delegation.id,
          hash,
        })
        stand.out.answer({ id: delegation.id, hash, grant }, text)
      }),
    )
  program
    .command('share <did>')
    .description(t('share.about'))
    .option('--name <name>')
    .option('--level <level>')
    .option('--tag <tag>', '', collect)
    .option('--write')
    .action(
      acting(async (stand, [did = ''], { name, level = 'public', tag, write }) => {
        const asked = {
          to: { name: String(name ?? did), did },
          level: level as NonNullable<Lease['labels_max']>,
          tags: write === true && tag === undefined ? ['*'] : listOf(tag),
          mayWrite: write === true,
        }
        const { grant, hash } = await shareWith(await stand.desk(), asked)
        const words = { name: named(asked.to.name, did), level, write: asked.mayWrite ? t('share.write') : '', hash }
        stand.out.answer({ id: grant.delegation.id, hash, grant }, t('share.done', words))
      }),
    )
  program
    .command('trust [did]')
    .description(t('trust.about'))
    .option('--name <name>')
    .option('--ceiling <level>')
    .option('--clearance <level>')
    .action(
      acting(async (stand, [did], { name, ceiling = 'request', clearance = 'public' }) => {
        const client = await stand.client()
        if (did === undefined) {
          type Trusted = { items: { did: string; name: string; ceiling: string }[] }
          const found = await client.call<Trusted>('GET', '/v1/trust')
          stand.out.answer(
            found,
            found.items.map((entry) => `${named(entry.name, entry.did)}  ${entry.ceiling}`).join('\n'),
          )
          return
        }
        const body = { did, name: name ?? did, ceiling, clearance: { level: clearance, tags: [] } }
        const entry = await client.call<Record<string, unknown>>('POST', '/v1/trust', body)
        stand.out.answer(entry, t('trust.done', { name: named(String(body.name), did), ceiling }))
      }),
    )
  leaseCommands(program)
}

function leaseCommands(program: Command): void {
  program
    .command('lease')
    .description(t('lease.about'))
    .requiredOption('--for <name>')
    .option('--actions <list>')
    .option('--paths <list>')
    .option('--branches <list>')
    .option('--level <level>')
    .option('--ttl <duration>')
    .action(
      acting(async (stand, _args, { for: name, actions = 'send', paths, branches, level = 'public', ttl = '7d' }) => {
        const made = await leaseFor(await stand.desk(), {
          name: String(name),
          actions: listOf(actions) as Lease['actions'],
          paths: listOf(paths),
          branches: listOf(branches),
          level: level as NonNullable<Lease['labels_max']>,
          ttlMs: durationOf(String(ttl)),
        })
        stand.out.answer(made, t('lease.done', { name, token: made.token }))
      }),
    )
  program
    .command('grants')
    .description(t('grants.about'))
    .action(
      acting(async (stand) => {
        type Grants = { items: { hash: string; revoked: boolean; grant: Grant }[] }
        const found = await (await stand.client()).call<Grants>('GET', '/v1/grants')
        const line = ({ hash, revoked, grant: { delegation: d } }: Grants['items'][number]) =>
          `${hash.slice(0, 19)}  ${d.id}  ${named(d.grantor, d.grantor_key)} -> ${named(d.grantee, d.grantee_key)}  ${d.level}${revoked ? '  REVOKED' : ''}`
        stand.out.answer(found, found.items.map(line).join('\n'))
      }),
    )
  program
    .command('revoke <grant>')
    .description(t('revoke.about'))
    .option('--tell <did>', '', collect)
    .action(
      acting(async (stand, [grant = ''], { tell }) => {
        const done = await revokeGrant(await stand.desk(), grant, listOf(tell))
        stand.out.answer(done, t('revoke.done', done))
      }),
    )
}

/** A global grant may live until it is revoked; the others need an end. */
function ttlOf(ttl: unknown, isGlobal: boolean): number | null {
  if (ttl !== undefined) return durationOf(String(ttl))
  return isGlobal ? null : DAY_MS
}
