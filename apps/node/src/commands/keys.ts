/** csb key: the key of the owner, another one in its place, and what is said of keys. */
import type { Command } from 'commander'
import { fail, systemClock, type Grant, type KeyStatement } from '@csb/core'
import {
  condemnKey,
  hangingChange,
  passphraseOf,
  readOwner,
  rotateOwner,
  sealOwner,
  settleOwner,
  takeOwner,
} from '@csb/node'
import { custodyOf, doneText, type Keeping } from '../changed-key.ts'
import { didOf, fromCaller, given, named, owning, passphraseFor, type Stand } from '../context.ts'
import { newPassphrase } from '../passphrase.ts'
import { askWord, inline } from '../terminal.ts'
import { t } from '../texts.ts'
import { recoveryCommands } from './recovery.ts'

type Condemning = Keeping & { readonly yes?: boolean }
type Party = { readonly name: string; readonly did: string }
type Status = Party & { readonly peer_id: string; readonly owner: Party }
type Spoken = {
  readonly items: readonly KeyStatement[]
  readonly recovery: string | null
  /** hash of the grant by which the node acts */
  readonly node_grant: string | null
}
type Listed = { readonly hash: string; readonly revoked: boolean; readonly grant: Grant }

export function keyCommands(program: Command): void {
  program.commandsGroup(t('group.authority'))
  const key = program.command('key').description(t('key.about'))
  sealing(key.command('seal'))
  key.command('show').description(t('key.show.about')).action(owning(show))
  key
    .command('rotate')
    .description(t('key.rotate.about'))
    .option('--unsealed', t('key.unsealed'))
    .action(
      owning<Keeping>(async (stand, _args, options) => {
        const desk = await stand.desk()
        const rotating = rotateOwner(desk, { custody: await custodyOf(options), isStolen: false })
        const done = await stand.out.during(t('key.rotate.progress'), rotating)
        stand.out.answer(done, doneText('key.rotate.done', done))
      }),
    )
  key
    .command('compromise')
    .description(t('key.compromise.about'))
    .argument('[did]', t('key.compromise.which'), didOf)
    .option('--unsealed', t('key.unsealed'))
    .option('--yes', t('key.yes'))
    .action(owning<Condemning, [string | undefined]>(compromise))
  recoveryCommands(key)
  key
    .command('take <dir>')
    .description(t('key.take.about'))
    .option('--unsealed', t('key.unsealed'))
    .action(
      owning<Keeping, [string]>(async ({ directory, out }, [dir], options) => {
        const from = fromCaller(dir)
        const passphrase = await passphraseFor(from)
        const custody = await custodyOf(options)
        const taken = await takeOwner({ directory, from: { directory: from, ...given({ passphrase }) }, custody })
        out.answer(taken, t(taken.isRunning ? 'key.taken.running' : 'key.taken', taken))
      }),
    )
}

const sealing = (command: Command): Command =>
  command.description(t('key.seal.about')).action(
    owning(async ({ directory, out }) => {
      const { isSealed } = await readOwner(directory)
      if (isSealed) fail('PASSPHRASE', { reason: 'sealed_already' })
      await sealOwner(directory, await newPassphrase(passphraseOf(), 'none_given'))
      out.answer({ sealed: true }, t('key.seal.done'))
    }),
  )

async function compromise(stand: Stand, [did]: [string | undefined], options: Condemning): Promise<void> {
  const { out, isJson } = stand
  const desk = await stand.desk()
  if (options.yes !== true) {
    if (isJson) fail('INVALID_INPUT', { option: '--yes', reason: 'no_terminal' })
    const words = { key: did ?? desk.owner.did, word: `"${t('key.word')}"` }
    const typed = await askWord(t('key.question', words))
    if (typed === undefined) fail('INVALID_INPUT', { option: '--yes', reason: 'no_terminal' })
    if (typed !== t('key.word')) {
      out.answer({ outcome: 'left' }, t('key.left'))
      return
    }
  }
  const isNow = did === undefined || did === desk.owner.did
  const work = isNow ? rotateOwner(desk, { custody: await custodyOf(options), isStolen: true }) : condemnKey(desk, did)
  const done = await out.during(t('key.rotate.progress'), work)
  out.answer(done, doneText('key.compromise.done', done))
}

async function show({ directory, client, out }: Stand): Promise<void> {
  const node = await client()
  await settleOwner(directory, node)
  const { name, did, peer_id: peer } = await node.call<Status>('GET', '/v1/status')
  const { items, recovery, node_grant: standing } = await node.call<Spoken>('GET', '/v1/keys')
  const grants = await node.call<{ items: readonly Listed[] }>('GET', '/v1/grants')
  const owner = await readOwner(directory)
  const hanging = await hangingChange(directory, node)
  const now = systemClock.now()
  // whoever has the node's key speaks by all of them
  const held = grants.items
    .filter(
      ({ revoked, grant: { delegation } }) => !revoked && delegation.grantee_key === did && delegation.task === null,
    )
    .filter(({ grant: { delegation } }) => (delegation.expires_at ?? now + 1) > now)
    .map(({ hash }) => hash)
  const hashes = [...new Set([...(standing === null ? [] : [standing]), ...held])]
  const own = new Set([owner.did, ...owner.statements.map(keyOf)])
  const before = items.filter((one) => own.has(keyOf(one)))
  const others = items.filter((one) => !own.has(keyOf(one)))
  const lines = [
    t('key.owner', {
      owner: named(owner.name, owner.did),
      did: owner.did,
      kept: t(owner.isSealed ? 'key.sealed' : 'key.open'),
    }),
    recovery === null ? t('key.recovery.none') : t('key.recovery.set', { digest: recovery.slice(0, 19) }),
    ...(hanging === undefined ? [] : [t(`key.hangs.${hanging.state}`, hanging)]),
    t('key.node', {
      node: named(name, did),
      did,
      peer,
      directory: inline(directory),
      grants: hashes.map((hash) => hash.slice(0, 19)).join(', '),
    }),
    ...(before.length === 0 ? [] : [t('key.before'), ...before.map(statementText)]),
    ...(others.length === 0 ? [] : [t('key.others'), ...others.map(statementText)]),
  ]
  const { isSealed: sealed } = owner
  const party = { name: owner.name, did: owner.did, sealed, recovery }
  const answer = {
    owner: party,
    node: { name, did, peer_id: peer, grants: hashes },
    statements: items,
    ...given({ hanging }),
  }
  out.answer(answer, lines.join('\n'))
}

/** Did of the key that it is about. */
function keyOf(statement: KeyStatement): string {
  if ('keychange' in statement) return statement.keychange.old
  if ('recovered' in statement) return statement.recovered.old
  return 'recovery' in statement ? statement.recovery.key : statement.compromise.key
}

function statementText(statement: KeyStatement): string {
  const key = keyOf(statement)
  if ('recovery' in statement) return t('key.recoverable', { key, digest: statement.recovery.digest.slice(0, 19) })
  if ('compromise' in statement) return t('key.stolen', { key, at: timeText(statement.compromise.all_before) })
  if ('recovered' in statement) {
    const { new: to, effective_at: at } = statement.recovered
    return t('key.recovered', { at: timeText(at), key, to })
  }
  const { new: to, effective_at: at } = statement.keychange
  return t('key.change', { at: timeText(at), key, to })
}

const timeText = (ms: number): string => new Date(ms).toISOString()
