/** Which home a command is about: the node's own, or a copy it keeps, by its id, the beginning of it, or its owner's name. */
import type { Command } from 'commander'
import { fail } from '@csb/core'
import type { Client } from '@csb/node'
import { t } from './texts.ts'

export type InHome = { readonly home?: string }

/** As the node tells of each home it keeps. */
export type Held = { readonly home: string; readonly owner: { readonly did: string; readonly name: string | null } }

const ID = /^home_[a-z2-7]{26}$/

export const withHome = (command: Command): Command => command.option('--home <home>', t('files.home'))

/**
 * What goes with a request.
 * @throws NOT_FOUND where no home here is called so, INVALID_INPUT where several are
 */
export async function homeIn(client: Client, { home: asked }: InHome): Promise<{ home?: string }> {
  if (asked === undefined) return {}
  if (ID.test(asked)) return { home: asked }
  const { held = [] } = await client.call<{ held?: readonly Held[] }>('GET', '/v1/status')
  const isMeant = ({ home, owner }: Held): boolean =>
    owner.name === asked || (/^home_./.test(asked) && home.startsWith(asked))
  const [found, ...others] = held.filter(isMeant).map(({ home }) => home)
  if (found === undefined) return fail('NOT_FOUND', { home: asked })
  if (others.length > 0) fail('INVALID_INPUT', { reason: 'several homes are called so', homes: [found, ...others] })
  return { home: found }
}
