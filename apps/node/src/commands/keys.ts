/** csb key: the key of the owner, another one in its place, and what is said of keys. */
import type { Command } from 'commander'
import { fail, type Grant, type KeyStatement } from '@csb/core'
import {
  condemnKey,
  hangingChange,
  newPassphraseOf,
  passphraseOf,
  readOwner,
  rotateOwner,
  sealOwner,
  settleOwner,
  takeOwner,
  type Custody,
  type Peer,
  type Rotated,
} from '@csb/node'
import { acting, didOf, fromCaller, given, named, passphraseFor, type Stand } from '../context.ts'
import { newPassphrase } from '../passphrase.ts'
import { askWord, inline } from '../terminal.ts'
import { t } from '../texts.ts'

type Keeping = { readonly unsealed?: boolean }
type Condemning = Keeping & { readonly yes?: boolean }
type Party = { readonly name: string; readonly did: string }
type Status = Party & { readonly peer_id: string; readonly owner: Party }
type Listed = { readonly hash: string; readonly grant: Grant }

export function keyCommands(program: Command): void {
  program.commandsGroup(t('group.authority'))
  const key = program.command('key').description(t('key.about'))
  sealing(key.command('seal'))
  // what it was called before
  sealing(program.command('owner', { hidden: true }).description(t('key.about')).command('seal'))
  key.command('show').description(t('key.show.about')).action(acting(show))
  key
    .command('rotate')
    .description(t('key.rotate.about'))
    .option('--unsealed', t('key.unsealed'))
    .action(
      acting<Keeping>(async (stand, _args, options) => {
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
    .action(acting<Condemning, [string | undefined]>(compromise))
  key
    .command('take <dir>')
    .description(t('key.take.about'))
    .option('--unsealed', t('key.unsealed'))
    .action(
      acting<Keeping, [string]>(async ({ directory, out }, [dir], options) => {
        const from = fromCaller(dir)
        const passphrase = await passphraseFor(from)
        const custody = await custodyOf(options)
        const taken = await takeOwner({ directory, from: { directory: from, ...given({ passphrase }) }, custody })
        out.answer(taken, t('key.taken', taken))
      }),
    )
}

const sealing = (command: Command): Command =>
  command.description(t('key.seal.about')).action(
    acting(async ({ directory, out }) => {
      const { isSealed } = await readOwner(directory)
      if (isSealed) fail('PASSPHRASE', { reason: 'sealed_already' })
      await sealOwner(directory, await newPassphrase(passphraseOf(), 'none_given'))
      out.answer({ sealed: true }, t('key.seal.done'))
    }),
  )

/** The key that follows is behind a passphrase of its own, unless a person says that it is to lie open. */
async function custodyOf({ unsealed }: Keeping): Promise<Custody> {
  return unsealed === true ? 'unsealed' : { passphrase: await newPassphrase(newPassphraseOf(), 'no_new') }
}

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

function doneText(what: 'key.rotate.done' | 'key.compromise.done', done: Rotated): string {
  const who = ({ name, did }: Peer) => named(name ?? t('peer.unnamed'), did)
  return [
    t(what, { ...done }),
    ...done.reached.map((peer) => t('key.heard', { who: who(peer) })),
    ...done.unreached.map((peer) => t('key.away', { who: who(peer) })),
  ].join('\n')
}

async function show({ directory, client, out }: Stand): Promise<void> {
  const node = await client()
  await settleOwner(directory, node)
  const { name, did, peer_id: peer } = await node.call<Status>('GET', '/v1/status')
  const { items } = await node.call<{ items: readonly KeyStatement[] }>('GET', '/v1/keys')
  const grants = await node.call<{ items: readonly Listed[] }>('GET', '/v1/grants')
  const owner = await readOwner(directory)
  const hanging = await hangingChange(directory, node)
  const grant = grants.items
    .filter(({ grant: { delegation } }) => delegation.grantee_key === did && delegation.parent === null)
    .toSorted((x, y) => x.grant.delegation.granted_at - y.grant.delegation.granted_at)
    .at(-1)
  const own = new Set([
    owner.did,
    ...owner.statements.flatMap((one) => ('keychange' in one ? [one.keychange.old] : [])),
  ])
  const inOrder = items.toSorted((x, y) => timeOf(x) - timeOf(y))
  const before = inOrder.filter((one) => own.has(keyOf(one)))
  const others = inOrder.filter((one) => !own.has(keyOf(one)))
  const lines = [
    t('key.owner', {
      owner: named(owner.name, owner.did),
      did: owner.did,
      kept: t(owner.isSealed ? 'key.sealed' : 'key.open'),
    }),
    ...(hanging === undefined ? [] : [t(`key.hangs.${hanging.state}`, hanging)]),
    t('key.node', {
      node: named(name, did),
      did,
      peer,
      directory: inline(directory),
      grant: (grant?.hash ?? '').slice(0, 19),
    }),
    ...(before.length === 0 ? [] : [t('key.before'), ...before.map(statementText)]),
    ...(others.length === 0 ? [] : [t('key.others'), ...others.map(statementText)]),
  ]
  const { isSealed: sealed } = owner
  const party = { name: owner.name, did: owner.did, sealed }
  const answer = { owner: party, node: { name, did, peer_id: peer }, statements: items, ...given({ hanging }) }
  out.answer(answer, lines.join('\n'))
}

const keyOf = (statement: KeyStatement): string =>
  'keychange' in statement ? statement.keychange.old : statement.compromise.key

/** From when it counts, in ms since epoch. */
const timeOf = (statement: KeyStatement): number =>
  'keychange' in statement ? statement.keychange.effective_at : statement.compromise.all_before

function statementText(statement: KeyStatement): string {
  const at = new Date(timeOf(statement)).toISOString()
  if ('keychange' in statement) {
    const { old, new: to } = statement.keychange
    return t('key.change', { at, key: old, to })
  }
  return t('key.stolen', { key: statement.compromise.key, at })
}
