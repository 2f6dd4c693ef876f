/** What every command needs: the folder, the way it answers, the running node, the owner's key for one signature. */
import { resolve } from 'node:path'
import { InvalidArgumentError, type Command } from 'commander'
import { EXIT, formatLabel, isIntegrity, isLevel, parseLabel, publicKeyFromDid, systemClock } from '@csb/core'
import {
  callerDirectory,
  createClient,
  defaultDirectory,
  openOwner,
  passphraseOf,
  readOwner,
  settleOwner,
  type Client,
  type Desk,
} from '@csb/node'
import { accessOf, checkOwner } from './right.ts'
import { askSecret, createOutput, inline, reportError, type Output } from './terminal.ts'
import { t } from './texts.ts'

type Shared = { readonly data?: string; readonly json?: boolean }

export type Stand = {
  readonly directory: string
  readonly isJson: boolean
  readonly out: Output
  /** asks as the owner, or in a run of an agent by its token */
  client(): Promise<Client>
  /** with the owner's key open: for what only the owner may sign */
  desk(): Promise<Desk>
}

type Work<Options, Args> = (stand: Stand, args: Args, options: Options) => Promise<void>

/**
 * Wrap a command's work: its stand, and one way to fail. `Options` and `Args` say what commander hands over for the
 * options and arguments that stand beside it.
 */
export function acting<Options extends object = object, Args extends readonly unknown[] = readonly []>(
  work: Work<Options, Args>,
): (...handed: unknown[]) => Promise<void> {
  return async (...handed) => {
    const command = handed.at(-1) as Command
    const stand = standOf(command)
    try {
      await work(stand, command.processedArgs as unknown as Args, command.opts<Options & Shared>())
    } catch (error) {
      stand.out.end()
      reportError(error, stand.isJson)
    }
  }
}

/** The same for what is the owner's alone: in a run of an agent it is refused before anything is read. */
export const owning = <Options extends object = object, Args extends readonly unknown[] = readonly []>(
  work: Work<Options, Args>,
): ((...handed: unknown[]) => Promise<void>) =>
  acting<Options, Args>((stand, args, options) => {
    checkOwner()
    return work(stand, args, options)
  })

function standOf(command: Command): Stand {
  const { data, json } = command.optsWithGlobals<Shared>()
  const directory = data === undefined ? resolve(defaultDirectory()) : fromCaller(data)
  return {
    directory,
    isJson: json === true,
    out: createOutput(json === true),
    client: () => clientOf(directory),
    desk: async () => {
      checkOwner()
      const client = await clientOf(directory)
      await settleOwner(directory, client)
      const owner = await openOwner(directory, await passphraseFor(directory))
      return { directory, client, owner, now: systemClock.now() }
    },
  }
}

async function clientOf(directory: string): Promise<Client> {
  const { url, token } = await accessOf(directory)
  return createClient(url, token)
}

/** The passphrase of the owner in a folder: from the environment, else asked for; undefined where none is needed. */
export async function passphraseFor(directory: string): Promise<string | undefined> {
  checkOwner()
  const { name, isSealed } = await readOwner(directory)
  if (!isSealed) return undefined
  return passphraseOf() ?? (await askSecret(t('owner.passphrase', { owner: inline(name) })))
}

/** A path as the person meant it. */
export const fromCaller = (path: string): string => resolve(callerDirectory(), path)

/** `/v1/memory/<id>?home=...` of its parts: what a person typed can not leave its place. */
export function route(
  parts: readonly string[],
  query: Readonly<Record<string, string | number | undefined>> = {},
): string {
  const asked = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) asked.set(name, String(value))
  return `/${parts.map(encodeURIComponent).join('/')}${asked.size === 0 ? '' : `?${asked.toString()}`}`
}

/** Enough of an id to tell it from others; dashes where the lease is told none. */
export const shortId = (id: string | undefined): string => id?.slice(0, 12) ?? '-'.repeat(12)

/** Only the members that were given. */
export function given<Values extends object>(
  values: Values,
): { [Name in keyof Values]?: Exclude<Values[Name], undefined> } {
  const told = Object.entries(values).filter(([, value]) => value !== undefined)
  return Object.fromEntries(told) as { [Name in keyof Values]?: Exclude<Values[Name], undefined> }
}

/** A name is free text of whoever wrote it: the key's last characters stand beside it, always. */
export const named = (name: string, did: string): string => `${inline(name)} (…${inline(did.slice(-8))})`

/** What became of a task that is not done is told by the exit code as well. */
export function exitBy(state: string): void {
  if (/REJECTED|rejected|refused/.test(state)) process.exitCode = EXIT.refused
  else if (/FAILED|failed/.test(state)) process.exitCode = EXIT.fault
}

/** `10s`, `5m`, `2h`, `7d` in ms, for an option. */
export function durationOf(text: string): number {
  const match = /^([0-9]{1,6})(s|m|h|d)$/.exec(text)
  const units: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
  const unit = units[match?.[2] ?? '']
  if (unit === undefined) throw new InvalidArgumentError(t('usage.duration'))
  return Number(match?.[1]) * unit
}

/** A whole number for an option. */
export function countOf(text: string): number {
  if (!/^[0-9]{1,9}$/.test(text)) throw new InvalidArgumentError(t('usage.count'))
  return Number(text)
}

/** The did of a node, an agent or an owner, for an argument. */
export function didOf(text: string): string {
  if (publicKeyFromDid(text) === undefined) throw new InvalidArgumentError(t('usage.did'))
  return text
}

/** The id of a note, for an argument. */
export function noteIdOf(text: string): string {
  if (!/^mem_[0-9]{13}_[0-9A-Za-z]{1,64}$/.test(text)) throw new InvalidArgumentError(t('usage.note'))
  return text
}

/** A label for an option: what can not be read as one would otherwise count as sealed, and a slip is no wish. */
export function labelOf(text: string): string {
  const [level, integrity] = text.split(':')
  if (!isLevel(level) || (integrity !== undefined && !isIntegrity(integrity)))
    throw new InvalidArgumentError(t('usage.label'))
  return formatLabel(parseLabel(text))
}

/** An option that may be given again, or take several by commas. */
export const collect = (value: string, before: readonly string[] | undefined): string[] => [
  ...(before ?? []),
  ...listOf(value),
]

/** The same, of dids. */
export const collectDids = (value: string, before: readonly string[] | undefined): string[] => [
  ...(before ?? []),
  ...listOf(value).map(didOf),
]

/** An option that takes several by commas. */
export const listOf = (text: string): string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
