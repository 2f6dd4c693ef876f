/**
 * A recovery key as a file of the person's choosing, sealed with a passphrase of its own: outside of the data folder, so that
 * who loses the one has the other. It is made and opened by the command, never by the node, and never overwritten.
 */
import { open, readFile, realpath, rm, stat } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { createKeyPair, exportSeed, fail, fromUtf8, parseBounded, toNodeError, type KeyPair } from '@csb/core'
import { openSeed, recoveryDigest, sealSeed, type SealedSeed } from '@csb/authority'
import { syncFolder } from './data-folder.ts'

const KIND = 'csb recovery key'
const MAX_BYTES = 64 * 1024

type RecoveryFile = {
  readonly v: 1
  readonly kind: typeof KIND
  /** whose key it recovers, for people */
  readonly owner: { readonly name: string; readonly did: string }
  /** of the key, as it is published */
  readonly digest: string
  readonly sealed: SealedSeed
}

/** What can be read of such a file without its passphrase; who wrote it is not known by that. */
export type RecoveryNote = Pick<RecoveryFile, 'owner' | 'digest'>

/** A recovery key that is open, for one signature. */
export type RecoveryKey = { readonly key: KeyPair; /** of the key, as it is published */ readonly digest: string }

export type RecoveryInit = {
  /** of the node: the file must not lie in it */
  readonly directory: string
  readonly owner: RecoveryNote['owner']
  readonly passphrase: string
}

/**
 * Make a recovery key and write it, whole and on the disk before it returns.
 * @param path of a file that is not there yet
 * @throws ALREADY_HERE, INVALID_INPUT where it lies in the data folder or its folder is not there; PASSPHRASE, DISK_FULL
 */
export async function createRecoveryFile(path: string, init: RecoveryInit): Promise<RecoveryKey> {
  await checkPlace(path, init.directory)
  const key = createKeyPair()
  const digest = recoveryDigest(key.did)
  const sealed = await sealSeed(exportSeed(key), init.passphrase)
  const file: RecoveryFile = { v: 1, kind: KIND, owner: init.owner, digest, sealed }
  await writeNew(path, `${JSON.stringify(file, null, 2)}\n`)
  return { key, digest }
}

/** @throws NOT_FOUND, MALFORMED where it is no such file */
export async function readRecoveryFile(path: string): Promise<RecoveryNote> {
  const { owner, digest } = await fileAt(path)
  return { owner, digest }
}

/** @throws NOT_FOUND, MALFORMED, PASSPHRASE where the passphrase is wrong or a byte was changed */
export async function openRecoveryFile(path: string, passphrase: string): Promise<RecoveryKey> {
  const { sealed, digest } = await fileAt(path)
  const key = createKeyPair(await openSeed(sealed, passphrase))
  if (recoveryDigest(key.did) !== digest) fail('MALFORMED', { file: path, reason: 'not_a_recovery_key' })
  return { key, digest }
}

/** Is there anything of that name? */
export async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

async function checkPlace(path: string, directory: string): Promise<void> {
  const folder = await realpath(dirname(path)).catch((error: unknown) =>
    fail('INVALID_INPUT', { reason: 'no_such_folder', directory: dirname(path) }, error),
  )
  const data = await realpath(directory).catch(() => directory)
  if (join(folder, sep).startsWith(join(data, sep))) fail('INVALID_INPUT', { reason: 'in_data_folder', file: path })
}

async function writeNew(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600).catch((error: unknown) => {
    if ((error as { code?: string }).code === 'EEXIST') fail('ALREADY_HERE', { reason: 'file', file: path }, error)
    throw toNodeError(error)
  })
  try {
    await file.writeFile(text)
    await file.sync()
  } catch (error) {
    // this one made it, and there is nothing in it that counts
    await rm(path, { force: true })
    throw toNodeError(error)
  } finally {
    await file.close()
  }
  await syncFolder(dirname(path))
}

async function fileAt(path: string): Promise<RecoveryFile> {
  const bytes = await readFile(path).catch((error: unknown) => fail('NOT_FOUND', { file: path }, error))
  try {
    const value = parseBounded(fromUtf8(bytes) ?? '', MAX_BYTES) as Partial<RecoveryFile> | null
    const { owner, digest } = value ?? {}
    const isOne =
      value?.kind === KIND &&
      typeof digest === 'string' &&
      typeof owner?.name === 'string' &&
      typeof owner.did === 'string'
    if (isOne) return value as RecoveryFile
  } catch (error) {
    fail('MALFORMED', { file: path, reason: 'not_a_recovery_key' }, error)
  }
  return fail('MALFORMED', { file: path, reason: 'not_a_recovery_key' })
}
