/** csb init, start, status, owner: the node itself. */
import type { Command } from 'commander'
import { fail, isNodeError, systemClock } from '@csb/core'
import {
  initNode,
  passphraseOf,
  readOwner,
  readSettings,
  readText,
  sealOwner,
  startNode,
  type Custody,
  type Initialised,
} from '@csb/node'
import { acting, collect, passphraseFor, type Stand } from '../context.ts'
import { askSecret } from '../terminal.ts'
import { t } from '../texts.ts'

type Making = {
  readonly name?: string
  readonly owner?: string
  readonly unsealed?: boolean
  readonly join?: string
  readonly home?: boolean
}

const SHORTEST_PASSPHRASE = 8

export function nodeCommands(program: Command): void {
  program.commandsGroup(t('group.node'))
  making(program.command('init').description(t('init.about'))).action(
    acting(async (stand, _args, options) => {
      const made = await make(stand, options as Making)
      stand.out.answer(made.identity, doneText(stand, made))
    }),
  )

  making(program.command('start').description(t('start.about')).option('--init', t('start.init')))
    .option('-p, --port <port>', t('start.port'), Number)
    .option('--host <address>', t('start.host'))
    .option('--listen <multiaddr>', t('start.listen'), collect)
    .option('--bootstrap <multiaddr>', t('start.bootstrap'), collect)
    .option('--no-mdns', t('start.no-mdns'))
    .action(acting(start))

  program.command('status').description(t('status.about')).action(acting(status))

  const owner = program.command('owner').description(t('owner.about'))
  owner
    .command('seal')
    .description(t('owner.seal.about'))
    .action(
      acting(async (stand) => {
        await sealOwner(stand.directory, passphraseOf() ?? (await askTwice()))
        stand.out.answer({ sealed: true }, t('owner.sealed'))
      }),
    )
}

const making = (command: Command): Command =>
  command
    .option('--name <name>', t('init.name'))
    .option('--owner <name>', t('init.owner'))
    .option('--unsealed', t('init.unsealed'))
    .option('--join <dir>', t('init.join'))
    .option('--no-home', t('init.no-home'))

async function make({ directory }: Stand, options: Making): Promise<Initialised> {
  const custody: Custody = options.unsealed === true ? 'unsealed' : { passphrase: passphraseOf() ?? (await askTwice()) }
  const { join } = options
  const passphrase = join === undefined ? undefined : await passphraseFor(join)
  return initNode({
    directory,
    name: options.name ?? 'my node',
    ...(options.owner === undefined ? {} : { ownerName: options.owner }),
    custody,
    ...(join === undefined ? {} : { join: { directory: join, ...(passphrase === undefined ? {} : { passphrase }) } }),
    withHome: options.home !== false,
    now: systemClock.now(),
  })
}

async function askTwice(): Promise<string> {
  for (;;) {
    const first = await askSecret(t('init.passphrase'))
    if (first === undefined) fail('PASSPHRASE', { reason: t('init.needs') })
    if (first.length < SHORTEST_PASSPHRASE) continue
    if (first === (await askSecret(t('init.again')))) return first
    process.stderr.write(`${t('init.differ')}\n`)
  }
}

function doneText({ directory }: Stand, { identity }: Initialised): string {
  const { name, did, owner, home } = identity
  return t('init.done', { name, directory, did, owner: owner.name, ownerDid: owner.did, home: home ?? '-' })
}

async function start(
  stand: Stand,
  _args: readonly string[],
  options: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { directory, out } = stand
  if (options['init'] === true && (await readText(directory, 'identity')) === undefined) {
    out.notice(doneText(stand, await make(stand, options as Making)))
  }
  const settings = await readSettings(directory, {
    ...(options['port'] === undefined ? {} : { port: options['port'] as number }),
    ...(options['host'] === undefined ? {} : { host: options['host'] as string }),
    ...(options['listen'] === undefined ? {} : { listen: options['listen'] as string[] }),
    ...(options['bootstrap'] === undefined ? {} : { bootstrap: options['bootstrap'] as string[] }),
    ...(options['mdns'] === false ? { mdns: false } : {}),
  })
  const node = await startNode(directory, settings).catch((error: unknown) => {
    if (isNodeError(error, 'PORT_IN_USE'))
      fail('PORT_IN_USE', { ...error.details, next: settings.http.port + 10 }, error)
    throw error
  })
  const owner = await readOwner(directory).catch(() => undefined)
  if (owner?.isSealed === false) out.notice(t('init.unsealed.notice', { directory, owner: owner.name }))
  const { identity, url, addresses } = node
  const ready = {
    ready: true,
    name: identity.name,
    did: identity.did,
    home: identity.home,
    url,
    addresses,
    pid: process.pid,
  }
  out.answer(
    ready,
    t('start.ready', { ...ready, addresses: addresses.join('\n           '), token: `${directory}/owner.token` }),
  )

  const { promise, resolve } = Promise.withResolvers<void>()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, resolve)
  // a fault in one request must not take down a node that others rely on; it is logged and the node goes on
  process.on('unhandledRejection', (error) =>
    process.stderr.write(`${JSON.stringify({ level: 50, msg: 'unhandled rejection', error: String(error) })}\n`),
  )
  await promise
  if (!stand.isJson) out.notice(t('start.stopping'))
  await node.stop()
}

async function status({ client, out }: Stand): Promise<void> {
  const node = await client()
  const state = await node.call<Record<string, never>>('GET', '/v1/status')
  const { name, did, owner, home, addresses, peers, record } = state as unknown as {
    name: string
    did: string
    owner: { name: string }
    home: string | null
    addresses: string[]
    peers: { known: number; connected: number }
    record: { size: number }
  }
  const shown = addresses.map((address) => `  address  ${address}`).join('\n')
  out.answer(
    { ...(state as object), url: node.url },
    t('status.line', {
      name,
      did,
      owner: owner.name,
      home: home ?? '-',
      url: node.url,
      ...peers,
      size: record.size,
      addresses: shown,
    }),
  )
}
