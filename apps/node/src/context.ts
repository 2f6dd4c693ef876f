/** What every command needs: the folder, the way it answers, the running node, the owner's key for one signature. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { fail, systemClock } from '@csb/core'
import { connect, defaultDirectory, openOwner, passphraseOf, readOwner, type Client, type Desk } from '@csb/node'
import { askSecret, createOutput, reportError, type Output } from './terminal.ts'
import { t } from './texts.ts'

export type Shared = { readonly data?: string; readonly json?: boolean }

export type Stand = {
  readonly directory: string
  readonly isJson: boolean
  readonly out: Output
  client(): Promise<Client>
  /** with the owner's key open: for what only the owner may sign */
  desk(): Promise<Desk>
}

export function standOf(command: Command): Stand {
  const { data, json } = command.optsWithGlobals<Shared>()
  const directory = resolve(data ?? defaultDirectory())
  return {
    directory,
    isJson: json === true,
    out: createOutput(json === true),
    client: () => connect(directory),
    desk: async () => {
      const client = await connect(directory)
      return {
        directory,
        client,
        owner: await openOwner(directory, await passphraseFor(directory)),
        now: systemClock.now(),
      }
    },
  }
}

/** The passphrase of the owner in a folder: from the environment, else asked for; undefined where none is needed. */
export async function passphraseFor(directory: string): Promise<string | undefined> {
  const { name, isSealed } = await readOwner(directory)
  if (!isSealed) return undefined
  return passphraseOf() ?? (await askSecret(t('owner.passphrase', { owner: name })))
}

type Action = (stand: Stand, args: readonly string[], options: Readonly<Record<string, unknown>>) => Promise<void>

/** Wrap a command's work: its stand, and one way to fail. */
export function acting(work: Action): (...args: unknown[]) => Promise<void> {
  return async (...given) => {
    const command = given.at(-1) as Command
    const stand = standOf(command)
    try {
      await work(stand, command.processedArgs as readonly string[], command.opts())
    } catch (error) {
      reportError(error, stand.isJson)
    }
  }
}

/** `10s`, `5m`, `2h`, `7d` in ms. @throws INVALID_INPUT */
export function durationOf(text: string): number {
  const match = /^([0-9]{1,6})(s|m|h|d)$/.exec(text)
  const units: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
  const unit = units[match?.[2] ?? '']
  return unit === undefined
    ? fail('INVALID_INPUT', { duration: text, expected: '10s, 5m, 2h or 7d' })
    : Number(match?.[1]) * unit
}

export const listOf = (text: unknown): string[] =>
  (Array.isArray(text) ? text.join(',') : String(text ?? ''))
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')

export const collect = (value: string, before: readonly string[] | undefined): string[] => [...(before ?? []), value]
