/**
 * csb key recovery, csb key recover: a key that lies elsewhere, and the way back by it. It is made and opened here, for one
 * signature, and the node never has it.
 */
import type { Command } from 'commander'
import { fail } from '@csb/core'
import {
  createRecoveryFile,
  isThere,
  nameRecovery,
  newPassphraseOf,
  openRecoveryFile,
  readOwner,
  readRecoveryFile,
  recoverOwner,
  recoveryPassphraseOf,
  type Client,
  type Desk,
  type RecoveryKey,
} from '@csb/node'
import { custodyOf, doneText, peersText, type Keeping } from '../changed-key.ts'
import { didOf, fromCaller, given, named, owning, type Stand } from '../context.ts'
import { newPassphrase } from '../passphrase.ts'
import { askSecret, inline } from '../terminal.ts'
import { t } from '../texts.ts'

type Replacing = { readonly replace?: string }
type Recovering = Keeping & { readonly stolen?: boolean }

export function recoveryCommands(key: Command): void {
  const recovery = key.command('recovery').description(t('key.recovery.about'))
  recovery
    .command('new')
    .description(t('key.recovery.new.about'))
    .argument('<file>', t('key.recovery.new.file'))
    .option('--replace <file>', t('key.recovery.replace'))
    .action(owning<Replacing, [string]>(make))
  recovery
    .command('show')
    .description(t('key.recovery.show.about'))
    .argument('[file]', t('key.recover.file'))
    .action(owning<object, [string | undefined]>(show))
  key
    .command('recover')
    .description(t('key.recover.about'))
    .argument('<file>', t('key.recover.file'))
    .argument('[did]', t('key.recover.which'), didOf)
    .option('--stolen', t('key.recover.stolen.about'))
    .option('--unsealed', t('key.unsealed'))
    .action(owning<Recovering, [string, string | undefined]>(recover))
}

async function make({ desk, directory, out }: Stand, [name]: [string], { replace }: Replacing): Promise<void> {
  const file = fromCaller(name)
  const at = await desk()
  const standing = await digestAt(at.client)
  if (standing !== null && replace === undefined && !(await isThere(file)))
    fail('CONFLICT', { reason: 'recovery_set', digest: standing })
  const replaced = replace === undefined ? undefined : await openedAt(fromCaller(replace))
  const { digest } = await recoveryKeyIn(file, at)
  const done = await nameRecovery(at, digest, digest === standing ? undefined : replaced?.key)
  const { did } = await readOwner(directory)
  const lines = [t('key.recovery.made', { digest, file: inline(file) }), ...peersText(done)]
  out.answer({ key: did, digest, file, ...done }, lines.join('\n'))
}

/**
 * Made now, or by the same command before, where it was broken off: then its passphrase shows that it is that one, and not
 * one that somebody put there.
 */
async function recoveryKeyIn(file: string, { directory }: Desk): Promise<RecoveryKey> {
  if (await isThere(file)) {
    const { owner } = await readRecoveryFile(file).catch((error: unknown) =>
      fail('ALREADY_HERE', { reason: 'file', file }, error),
    )
    const { did } = await readOwner(directory)
    if (owner.did !== did) fail('ALREADY_HERE', { reason: 'file', file })
    return openedAt(file, newPassphraseOf())
  }
  const { name, did } = await readOwner(directory)
  const passphrase = await newPassphrase(newPassphraseOf(), 'no_new_recovery')
  return createRecoveryFile(file, { directory, owner: { name, did }, passphrase })
}

async function show({ client, out }: Stand, [name]: [string | undefined]): Promise<void> {
  const recovery = await digestAt(await client())
  const text = recovery === null ? t('key.recovery.is.none') : t('key.recovery.is', { digest: recovery })
  if (name === undefined) {
    out.answer({ recovery }, text)
    return
  }
  const file = fromCaller(name)
  const { digest, owner } = await readRecoveryFile(file)
  const isIt = digest === recovery
  const held = t(isIt ? 'key.recovery.file.is' : 'key.recovery.file.not', {
    file: inline(file),
    owner: named(owner.name, owner.did),
  })
  out.answer({ recovery, file: { digest, owner, is_it: isIt } }, `${text}\n${held}`)
}

async function recover(
  { directory, out }: Stand,
  [name, old]: [string, string | undefined],
  options: Recovering,
): Promise<void> {
  const { key: recovery } = await openedAt(fromCaller(name))
  const custody = await custodyOf(options)
  const work = recoverOwner({ directory, recovery, custody, isStolen: options.stolen === true, ...given({ old }) })
  const done = await out.during(t('key.recover.progress'), work)
  out.answer(done, doneText(done.ended === null ? 'key.recover.done' : 'key.recover.stolen', done))
}

/** Digest of the recovery key that the node counts. */
const digestAt = async (client: Client): Promise<string | null> =>
  (await client.call<{ readonly recovery: string | null }>('GET', '/v1/keys')).recovery

async function openedAt(file: string, told = recoveryPassphraseOf()): Promise<RecoveryKey> {
  // before anybody is asked
  await readRecoveryFile(file)
  const passphrase = told ?? (await askSecret(t('key.recovery.passphrase', { file: inline(file) })))
  if (passphrase === undefined) fail('PASSPHRASE', { reason: 'no_recovery' })
  return openRecoveryFile(file, passphrase)
}
