/**
 * A node's configuration: flags win over CSB_* variables, which win over config.json, which wins over the
 * defaults. This is the only file that reads the environment.
 */
import { homedir } from 'node:os'
import { join } from 'node:path'
import { validate, type Config } from '@csb/core'
import { readJson } from './data-folder.ts'

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
  readonly listen?: readonly string[]
  readonly bootstrap?: readonly string[]
  readonly mdns?: boolean
  readonly logLevel?: Settings['log']['level']
}

export const DEFAULT_PORT = 7480

/** Where a node lives when nobody says otherwise. */
export const defaultDirectory = (env: Environment = process.env): string => env['CSB_DATA'] ?? join(homedir(), '.csb')

/** The passphrase of the owner's key, for machines without a terminal. */
export const passphraseOf = (env: Environment = process.env): string | undefined => env['CSB_PASSPHRASE']

/** What an attached agent may see of the environment, and nothing else. */
export const agentEnvironment = (env: Environment = process.env): Record<string, string> => {
  const passed: Record<string, string> = {}
  for (const name of ['PATH', 'HOME', 'LANG']) if (env[name] !== undefined) passed[name] = env[name]
  return passed
}

/** True where colours and moving lines would disturb. */
export const isPlain = (env: Environment = process.env): boolean =>
  env['NO_COLOR'] !== undefined || env['CI'] !== undefined

/**
 * @param directory of the node
 * @throws NOT_INITIALISED, CONFIG_INVALID with the field
 */
export async function readSettings(directory: string, flags: Flags, env: Environment = process.env): Promise<Settings> {
  const file = validate('Config', await readJson(directory, 'config'), 'CONFIG_INVALID')
  return settingsOf(validate('Config', merge(file, fromEnvironment(env)), 'CONFIG_INVALID'), flags)
}

/** The defaults, seen through a file and flags. */
export function settingsOf(config: Config, flags: Flags = {}): Settings {
  const port = flags.port ?? config.http?.port ?? DEFAULT_PORT
  const listen = flags.listen ?? config.p2p?.listen ?? listenBeside(port)
  return {
    http: {
      host: flags.host ?? config.http?.host ?? '127.0.0.1',
      port,
      insecure: config.http?.insecure ?? false,
      publicUrl: config.http?.public_url ?? null,
    },
    p2p: {
      listen,
      bootstrap: flags.bootstrap ?? config.p2p?.bootstrap ?? [],
      mdns: flags.mdns ?? config.p2p?.mdns ?? true,
      maxConnections: config.p2p?.max_connections ?? 120,
      loopback: listen.every((address) => address.startsWith('/ip4/127.')),
    },
    log: { level: flags.logLevel ?? config.log?.level ?? 'warn' },
    config,
  }
}

/** The peer ports stand beside the HTTP port, so that a second node needs only another --port. */
function listenBeside(port: number): string[] {
  const tcp = port === 0 ? 0 : port + 1
  const ws = port === 0 ? 0 : port + 2
  return [`/ip4/0.0.0.0/tcp/${tcp}`, `/ip4/0.0.0.0/tcp/${ws}/ws`]
}

/** CSB_HTTP_HOST, CSB_HTTP_PORT, CSB_HTTP_INSECURE, CSB_HTTP_PUBLIC_URL, CSB_P2P_LISTEN, CSB_P2P_BOOTSTRAP, CSB_P2P_MDNS, CSB_LOG_LEVEL */
function fromEnvironment(env: Environment): Record<string, Record<string, unknown>> {
  const list = (text: string | undefined) =>
    text
      ?.split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '')
  const flag = (text: string | undefined) => (text === undefined ? undefined : text === '1' || text === 'true')
  const port = env['CSB_HTTP_PORT']
  return {
    http: {
      host: env['CSB_HTTP_HOST'],
      port: port === undefined ? undefined : Number(port),
      insecure: flag(env['CSB_HTTP_INSECURE']),
      public_url: env['CSB_HTTP_PUBLIC_URL'],
    },
    p2p: {
      listen: list(env['CSB_P2P_LISTEN']),
      bootstrap: list(env['CSB_P2P_BOOTSTRAP']),
      mdns: flag(env['CSB_P2P_MDNS']),
    },
    log: { level: env['CSB_LOG_LEVEL'] },
  }
}

function merge(file: Config, over: Record<string, Record<string, unknown>>): unknown {
  const merged: Record<string, Record<string, unknown>> = structuredClone(file) as Record<
    string,
    Record<string, unknown>
  >
  for (const [section, values] of Object.entries(over)) {
    for (const [name, value] of Object.entries(values)) {
      if (value !== undefined) merged[section] = { ...merged[section], [name]: value }
    }
  }
  return merged
}
