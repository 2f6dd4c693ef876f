/** A key that follows another one: how it is kept, and what is said when it is done. */
import { newPassphraseOf, type Custody, type Peer, type Rotated } from '@csb/node'
import { named } from './context.ts'
import { newPassphrase } from './passphrase.ts'
import { t } from './texts.ts'

export type Keeping = { readonly unsealed?: boolean }

/** The key that follows is behind a passphrase of its own, unless a person says that it is to lie open. */
export async function custodyOf({ unsealed }: Keeping): Promise<Custody> {
  return unsealed === true ? 'unsealed' : { passphrase: await newPassphrase(newPassphraseOf(), 'no_new') }
}

/** What came of another key, with who has heard of it. */
export function doneText(
  what: `key.${'rotate' | 'compromise'}.done` | `key.recover.${'done' | 'stolen'}`,
  done: Rotated,
): string {
  return [t(what, { ...done }), ...peersText(done)].join('\n')
}

/** A line for each peer: has it heard, or is it told when it comes? */
export function peersText({ reached, unreached }: Pick<Rotated, 'reached' | 'unreached'>): readonly string[] {
  const who = ({ name, did }: Peer) => named(name ?? t('peer.unnamed'), did)
  return [
    ...reached.map((peer) => t('key.heard', { who: who(peer) })),
    ...unreached.map((peer) => t('key.away', { who: who(peer) })),
  ]
}
