/** csb init, start, status: the node itself. */
import { basename, dirname } from 'node:path'
import { InvalidArgumentError, type Command } from 'commander'
import { fail, isNodeError, systemClock } from '@csb/core'
import {
  commandName,
  defaultDirectory,
  forgetSecrets,
  initNode,
  passphraseOf,
  readOwner,
  readSettings,
  readText,
  serveNode,
  type Custody,
  type Flags,
  type Initialised,
  type RunningNode,
} from '@csb/node'
import { acting, collect, fromCaller, given, named, passphraseFor, type Stand } from '../context.ts'
import type { Held } from '../homes.ts'
import { newPassphrase } from '../passphrase.ts'
import { checkOwner } from '../right.ts'
import { inline } from '../terminal.ts'
import { vouchedText, type Vouching } from '../vouched.ts'
import { t } from '../texts.ts'

type Making = {
  readonly name?: string
  readonly owner?: string
  readonly unsealed?: boolean
  readonly join?: string
  readonly home: boolean
}

type Starting = Making & {
  readonly init?: boolean
  readonly port?: number
  readonly host?: string
  readonly insecure?: boolean
  readonly listen?: string[]
  readonly bootstrap?: string[]
  readonly mdns: boolean
}

type Status = {
  readonly name: string
  readonly did: string
  /** all that follows is for who may see everything */
  readonly owner?: { readonly name: string }
  readonly home?: string | null
  readonly held?: readonly Held[]
  readonly addresses?: readonly string[]
  readonly peers?: { readonly known: number; readonly connected: number }
  readonly record?: Vouching
}

/** The two ports behind it are for peers. */
const LAST_PORT = 65_533

export function nodeCommands(program: Command): void {
  program.commandsGroup(t('group.node'))
  making(program.command('init').description(t('init.about'))).action(
    acting<Making>(async (stand, _args, options) => {
      const made = await make(stand, options)
      stand.out.answer(made.identity, doneText(stand, made))
      const notice = await unsealedNotice(stand.directory)
      if (notice !== undefined) stand.out.notice(notice)
    }),
  )

  making(program.command('start').description(t('start.about')).option('--init', t('start.init')))
    .option('-p, --port <port>', t('start.port'), portOf)
    .option('--host <address>', t('start.host'))
    .option('--insecure', t('start.insecure'))
    .option('--listen <multiaddr>', t('start.listen'), collect)
    .option('--bootstrap <multiaddr>', t('start.bootstrap'), collect)
    .option('--no-mdns', t('start.no-mdns'))
    .action(acting<Starting>(start))

  program.command('status').description(t('status.about')).action(acting(status))
}

const making = (command: Command): Command =>
  command
    .option('--name <name>', t('init.name'))
    .option('--owner <name>', t('init.owner'))
    .option('--unsealed', t('init.unsealed'))
    .option('--join <dir>', t('init.join'))
    .option('--no-home', t('init.no-home'))

function portOf(text: string): number {
  if (!/^[0-9]{1,5}$/.test(text) || Number(text) > LAST_PORT)
    throw new InvalidArgumentError(t('usage.port', { last: LAST_PORT }))
  return Number(text)
}

async function make({ directory }: Stand, options: Making): Promise<Initialised> {
  if (options.join !== undefined) checkOwner()
  // before a passphrase is asked for, which would be for nothing
  if ((await readText(directory, 'identity')) !== undefined) fail('ALREADY_INITIALISED', { directory })
  const custody: Custody =
    options.unsealed === true ? 'unsealed' : { passphrase: await newPassphrase(passphraseOf(), 'none_given') }
  const join = options.join === undefined ? undefined : fromCaller(options.join)
  const passphrase = join === undefined ? undefined : await passphraseFor(join)
  return initNode({
    directory,
    name: options.name ?? nameFor(directory),
    ...given({ ownerName: options.owner }),
    custody,
    ...(join === undefined ? {} : { join: { directory: join, ...given({ passphrase }) } }),
    withHome: options.home,
    now: systemClock.now(),
  })
}

/** A second node on one machine has a folder of its own, and is told apart by it. */
function nameFor(directory: string): string {
  const isUsual = directory === fromCaller(defaultDirectory()) || dirname(directory) === '/'
  return isUsual ? t('init.my-node') : basename(directory).replace(/^\.+/, '') || t('init.my-node')
}

function doneText({ directory }: Stand, { identity }: Initialised): string {
  const { name, did, owner, home } = identity
  const words = { name: inline(name), directory, did, owner: inline(owner.name), ownerDid: owner.did }
  return t('init.done', { ...words, home: home ?? t('init.no-home.done') })
}

/** Nothing to say where the owner keeps the key elsewhere: the node runs without it. */
async function unsealedNotice(directory: string): Promise<string | undefined> {
  if ((await readText(directory, 'owner')) === undefined) return undefined
  const { isSealed, name } = await readOwner(directory)
  return isSealed ? undefined : t('init.unsealed.notice', { directory, owner: inline(name), ...callOf(directory) })
}

/** The command as the person would call it again for this folder. */
const callOf = (directory: string): { csb: string; data: string } => ({
  csb: commandName(),
  data: directory === fromCaller(defaultDirectory()) ? '' : ` --data ${directory}`,
})

async function start(stand: Stand, _args: readonly [], options: Starting): Promise<void> {
  const { directory, out, isJson } = stand
  const isMaking = options.init === true && (await readText(directory, 'identity')) === undefined
  if (isMaking) out.notice(doneText(stand, await make(stand, options)))
  forgetSecrets(isMaking)
  const { port, host, insecure, listen, bootstrap, mdns } = options
  // true is what commander says where nobody did
  const flags: Flags = given({ port, host, insecure, listen, bootstrap, mdns: mdns ? undefined : false })
  const settings = await readSettings(directory, flags)
  const notice = await unsealedNotice(directory)
  await serveNode(directory, settings, {
    ready: (node) => {
      if (notice !== undefined) out.notice(notice)
      out.answer(readyOf(node), readyText(directory, node))
    },
    stopping: () => {
      if (!isJson) out.notice(t('start.stopping'))
    },
  }).catch((error: unknown) => {
    // with the folder, so that what is said to do next is for this node
    if (isNodeError(error, 'PORT_IN_USE')) fail('PORT_IN_USE', { ...error.details, directory }, error)
    throw error
  })
}

const readyOf = ({ identity, url, addresses }: RunningNode) => ({
  ready: true,
  name: identity.name,
  did: identity.did,
  home: identity.home,
  url,
  addresses,
  pid: process.pid,
})

function readyText(directory: string, { identity, url, addresses }: RunningNode): string {
  return t('start.ready', {
    name: inline(identity.name),
    did: identity.did,
    directory,
    url,
    addresses: addresses.join('\n           '),
    ...callOf(directory),
  })
}

async function status({ client, out }: Stand): Promise<void> {
  const node = await client()
  const state = await node.call<Status>('GET', '/v1/status')
  const { name, did, owner, home = null, held = [], addresses = [], peers, record } = state
  const own = { name: inline(name), did, url: node.url }
  if (owner === undefined || record === undefined) {
    out.answer({ ...state, url: node.url }, t('status.short', own))
    return
  }
  const copies = held
    .filter((one) => one.home !== home)
    .map((one) => t('status.copy', { home: one.home, owner: named(one.owner.name ?? '', one.owner.did).trim() }))
  const shown = [...copies, ...addresses.map((address) => t('status.address', { address }))].join('\n')
  const words = { ...own, owner: inline(owner.name), home, size: record.size, vouched: vouchedText(record) }
  out.answer({ ...state, url: node.url }, t('status.line', { ...words, ...peers, addresses: shown }))
}
