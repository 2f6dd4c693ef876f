/** A new passphrase, from the environment or asked for twice. */
import { fail } from '@csb/core'
import { askSecret } from './terminal.ts'
import { t } from './texts.ts'

const SHORTEST = 8

/**
 * @param told from the environment
 * @param missing the reason where none is given and nobody can be asked
 * @throws PASSPHRASE where none is given, or it is too short
 */
export async function newPassphrase(
  told: string | undefined,
  missing: 'none_given' | 'no_new' | 'no_new_recovery',
): Promise<string> {
  if (told !== undefined) {
    if (told.length < SHORTEST) fail('PASSPHRASE', { reason: 'too_short', shortest: SHORTEST })
    return told
  }
  for (;;) {
    const first = await askSecret(t('init.passphrase', { shortest: SHORTEST }))
    if (first === undefined) fail('PASSPHRASE', { reason: missing })
    if (first.length < SHORTEST) process.stderr.write(`${t('init.short')}\n`)
    else if (first === (await askSecret(t('init.again')))) return first
    else process.stderr.write(`${t('init.differ')}\n`)
  }
}
