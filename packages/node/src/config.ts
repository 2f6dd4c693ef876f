/**
 * A node's configuration: flags win over CSB_* variables, which win over config.json, which wins over the
 * defaults. This is the only file that reads the environment.
 */
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fail, isNodeError, validate, type Config } from '@csb/core'
import { FILES, readJson } from './data-folder.ts'

/** Every value is there: what a running node was told. */
export type Settings = {
  readonly http: {
    readonly host: string
    readonly port: number
    readonly insecure: boolean
    readonly publicUrl: string | null
  }
  readonly p2p: {
    readonly listen: readonly string[]
    readonly bootstrap: readonly string[]
    readonly mdns: boolean
    readonly maxConnections: number
    /** many nodes on one address: for tests and demonstrations */
    readonly loopback: boolean
  }
  readonly log: { readonly level: 'debug' | 'info' | 'warn' | 'error' | 'silent' }
  /** what the operations look at: the file with the environment over it */
  readonly config: Config
}

export type Environment = Readonly<Record<string, string | undefined>>

/** What the command line may set. */
export type Flags = {
  readonly host?: string
  readonly port?: number
  readonly insecure?: boolean
  readonly listen?: readonly string[]
  readonly bootstrap?: readonly string[]
  readonly mdns?: boolean
  readonly logLevel?: Settings['log']['level']
}

const DEFAULT_PORT = 7480
/** The peer ports stand behind the HTTP port. */
const LAST_PORT = 65_535 - 2

/** TCP, or WebSocket over it: what a node can listen at. */
const LISTEN = /^\/(?:ip4|ip6|dns|dns4|dns6)\/[^/]+\/tcp\/[0-9]{1,5}(?:\/wss?)?$/
/** The same and whom to expect there. */
const PEER =
  /^\/(?:ip4|ip6|dns|dns4|dns6)\/[^/]+\/tcp\/[0-9]{1,5}(?:\/(?:tls\/)?wss?)?\/p2p\/[1-9A-HJ-NP-Za-km-z]{40,64}$/

/** Where a node lives when nobody says otherwise. */
export const defaultDirectory = (env: Environment = process.env): string =>
  given(env['CSB_DATA']) ?? join(homedir(), '.csb')

/** Passphrases that are told by the environment: for one signature, and for no process that lives on. */
const SECRETS = ['CSB_PASSPHRASE', 'CSB_NEW_PASSPHRASE', 'CSB_RECOVERY_PASSPHRASE'] as const

/**
 * Take the passphrases out of the environment.
 * @returns what is left of it, and whether there was one
 */
export function dropSecrets(env: Record<string, string | undefined> = process.env): {
  readonly left: Environment
  readonly had: boolean
} {
  const had = SECRETS.some((name) => env[name] !== undefined)
  // not set to undefined, which would be the text 'undefined'
  for (const name of SECRETS) Reflect.deleteProperty(env, name)
  return { left: env, had }
}

/** The passphrase of the owner's key, for machines without a terminal. */
export const passphraseOf = (env: Environment = process.env): string | undefined => given(env['CSB_PASSPHRASE'])

/** The passphrase for a key that is to follow. */
export const newPassphraseOf = (env: Environment = process.env): string | undefined => given(env['CSB_NEW_PASSPHRASE'])

/** The passphrase of a file with a recovery key. */
export const recoveryPassphraseOf = (env: Environment = process.env): string | undefined =>
  given(env['CSB_RECOVERY_PASSPHRASE'])

/**
 * What a run of an agent is given to ask with, see `agent attach`: the token of its lease, and where. `isRun` where there
 * is any sign of one: what stands between may have taken the token away, as programs do with variables of that name.
 */
export const sessionOf = (
  env: Environment = process.env,
): { readonly isRun: boolean; readonly token?: string; readonly url?: string } => {
  const [run, token, url] = [given(env['CSB_RUN']), given(env['CSB_TOKEN']), given(env['CSB_URL'])]
  return {
    isRun: [run, token, url].some((told) => told !== undefined),
    ...(token === undefined ? {} : { token }),
    ...(url === undefined ? {} : { url }),
  }
}

/** Where the person stands: npm starts a script at the root of the checkout, wherever it was called. */
export const callerDirectory = (env: Environment = process.env): string =>
  (isNpmScript(env) ? given(env['INIT_CWD']) : undefined) ?? process.cwd()

/** How the person calls the command, to be printed in front of an example. */
export const commandName = (env: Environment = process.env): string => (isNpmScript(env) ? 'npm run -s csb --' : 'csb')

/** What an attached agent may see of the environment, and nothing else. */
export const agentEnvironment = (env: Environment = process.env): Record<string, string> => {
  const passed: Record<string, string> = {}
  for (const name of ['PATH', 'HOME', 'LANG']) if (env[name] !== undefined) passed[name] = env[name]
  return passed
}

/** True where moving lines would disturb. */
export const isPlain = (env: Environment = process.env): boolean =>
  env['NO_COLOR'] !== undefined || env['CI'] !== undefined || env['TERM'] === 'dumb'

/**
 * @param directory of the node
 * @throws NOT_INITIALISED, CONFIG_INVALID with the field and where it was said: config.json, the environment, the
 *   command line
 */
export async function readSettings(directory: string, flags: Flags, env: Environment = process.env): Promise<Settings> {
  const file = checked(await readJson(directory, 'config'), FILES.config)
  const environed = checked(merge(file, fromEnvironment(env)), 'environment')
  return settingsOf(checked(merge(environed, fromFlags(flags)), 'command line'))
}

/** The defaults, seen through a configuration. @throws CONFIG_INVALID where no port is left for peers */
function settingsOf(config: Config): Settings {
  const port = config.http?.port ?? DEFAULT_PORT
  const listen = config.p2p?.listen ?? listenBeside(port)
  return {
    http: {
      host: config.http?.host ?? '127.0.0.1',
      port,
      insecure: config.http?.insecure ?? false,
      publicUrl: config.http?.public_url ?? null,
    },
    p2p: {
      listen,
      bootstrap: config.p2p?.bootstrap ?? [],
      mdns: config.p2p?.mdns ?? true,
      maxConnections: config.p2p?.max_connections ?? 120,
      loopback: listen.every((address) => address.startsWith('/ip4/127.')),
    },
    log: { level: config.log?.level ?? 'warn' },
    config,
  }
}

/** The first thing that is wrong, by its name in config.json, and where it was said. */
function checked(value: unknown, source: string): Config {
  try {
    const config = validate('Config', value, 'CONFIG_INVALID')
    checkAddresses(config.p2p?.listen, LISTEN, 'p2p.listen', source)
    checkAddresses(config.p2p?.bootstrap, PEER, 'p2p.bootstrap', source)
    return config
  } catch (error) {
    if (!isNodeError(error, 'CONFIG_INVALID') || error.details['errors'] === undefined) throw error
    const [first] = (error.details['errors'] ?? []) as readonly { path: string; message: string; member?: string }[]
    const path = (first?.path ?? '/').split('/').filter((part) => part !== '')
    const field = [...path, ...(first?.member === undefined ? [] : [first.member])].join('.')
    return fail('CONFIG_INVALID', { source, field, problem: first?.message }, error)
  }
}

function checkAddresses(told: readonly string[] | undefined, form: RegExp, field: string, source: string): void {
  const wrong = told?.find((address) => !form.test(address))
  if (wrong !== undefined)
    fail('CONFIG_INVALID', { source, field, problem: 'is no multiaddr of its kind', value: wrong })
}

/** The peer ports stand beside the HTTP port, so that a second node needs only another --port. */
function listenBeside(port: number): string[] {
  if (port > LAST_PORT) fail('CONFIG_INVALID', { field: 'http.port', problem: `must be at most ${LAST_PORT}` })
  const tcp = port === 0 ? 0 : port + 1
  const ws = port === 0 ? 0 : port + 2
  return [`/ip4/0.0.0.0/tcp/${tcp}`, `/ip4/0.0.0.0/tcp/${ws}/ws`]
}

/** Values by section and name; undefined where nothing was said. */
type Layer = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/** CSB_HTTP_HOST, CSB_HTTP_PORT, CSB_HTTP_INSECURE, CSB_HTTP_PUBLIC_URL, CSB_P2P_LISTEN, CSB_P2P_BOOTSTRAP, CSB_P2P_MDNS, CSB_LOG_LEVEL */
function fromEnvironment(env: Environment): Layer {
  return {
    http: {
      host: given(env['CSB_HTTP_HOST']),
      port: numberOf(given(env['CSB_HTTP_PORT'])),
      insecure: switchOf(given(env['CSB_HTTP_INSECURE'])),
      public_url: given(env['CSB_HTTP_PUBLIC_URL']),
    },
    p2p: {
      listen: listOf(given(env['CSB_P2P_LISTEN'])),
      bootstrap: listOf(given(env['CSB_P2P_BOOTSTRAP'])),
      mdns: switchOf(given(env['CSB_P2P_MDNS'])),
    },
    log: { level: given(env['CSB_LOG_LEVEL']) },
  }
}

const fromFlags = ({ host, port, insecure, listen, bootstrap, mdns, logLevel }: Flags): Layer => ({
  http: { host, port, insecure },
  p2p: { listen, bootstrap, mdns },
  log: { level: logLevel },
})

function merge(under: Config, over: Layer): unknown {
  const merged: Record<string, unknown> = { ...under }
  for (const [section, values] of Object.entries(over)) {
    const told = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
    if (Object.keys(told).length > 0) merged[section] = { ...(merged[section] as object | undefined), ...told }
  }
  return merged
}

/** A variable that is set to nothing says nothing. */
const given = (text: string | undefined): string | undefined => (text === '' ? undefined : text)

const isNpmScript = (env: Environment): boolean =>
  env['npm_package_name'] === 'csb' && ['csb', 'start', 'demo'].includes(env['npm_lifecycle_event'] ?? '')

/** What can not be read stays text, and the schema refuses it. */
function numberOf(text: string | undefined): unknown {
  return text !== undefined && /^[0-9]+$/.test(text) ? Number(text) : text
}

function switchOf(text: string | undefined): unknown {
  if (text === '1' || text === 'true') return true
  return text === '0' || text === 'false' ? false : text
}

const listOf = (text: string | undefined): string[] | undefined =>
  text
    ?.split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
