/**
 * The owner's key on disk: sealed with a passphrase, or left open only where a person said so. The node's
 * process never reads it; the command opens it for one signature.
 */
import { createKeyPair, exportSeed, fail, fromBase64Url, toBase64Url, type KeyPair } from '@csb/core'
import { openSeed, sealSeed, type SealedSeed } from '@csb/authority'
import { readJson, writeJson } from './data-folder.ts'

type OwnerFile = { readonly v: 1; readonly name: string; readonly did: string } & (
  | { readonly sealed: SealedSeed }
  | { readonly seed: string }
)

export type Owner = { readonly name: string; readonly did: string; readonly isSealed: boolean }

/** How the key is kept: behind a passphrase, or openly because somebody asked for it. */
export type Custody = { readonly passphrase: string } | 'unsealed'

/** Make a new owner and keep its key in `directory`. */
export async function createOwner(directory: string, name: string, custody: Custody): Promise<KeyPair> {
  const key = createKeyPair()
  await keepOwner(directory, name, key, custody)
  return key
}

export async function keepOwner(directory: string, name: string, key: KeyPair, custody: Custody): Promise<void> {
  const seed = exportSeed(key)
  const kept =
    custody === 'unsealed' ? { seed: toBase64Url(seed) } : { sealed: await sealSeed(seed, custody.passphrase) }
  await writeJson(directory, 'owner', { v: 1, name, did: key.did, ...kept })
}

/** Put a key that lies open behind a passphrase. @throws PASSPHRASE where it is sealed already */
export async function sealOwner(directory: string, passphrase: string): Promise<void> {
  const { name, isSealed } = await readOwner(directory)
  if (isSealed) fail('PASSPHRASE', { reason: 'it is sealed already' })
  await keepOwner(directory, name, await openOwner(directory, undefined), { passphrase })
}

/** Who owns the key in `directory`, without opening it. @throws NOT_INITIALISED */
export async function readOwner(directory: string): Promise<Owner> {
  const file = await readFile(directory)
  return { name: file.name, did: file.did, isSealed: 'sealed' in file }
}

/**
 * The owner's key, for one signature.
 * @throws PASSPHRASE where it is sealed and the passphrase is missing or wrong
 */
export async function openOwner(directory: string, passphrase: string | undefined): Promise<KeyPair> {
  const file = await readFile(directory)
  if ('seed' in file)
    return checked(createKeyPair(fromBase64Url(file.seed) ?? fail('CONFIG_INVALID', { file: 'owner.json' })), file)
  if (passphrase === undefined) fail('PASSPHRASE', { owner: file.name })
  return checked(createKeyPair(await openSeed(file.sealed, passphrase)), file)
}

async function readFile(directory: string): Promise<OwnerFile> {
  const value = (await readJson(directory, 'owner')) as Partial<OwnerFile> | null
  if (typeof value?.name !== 'string' || typeof value.did !== 'string') fail('CONFIG_INVALID', { file: 'owner.json' })
  return value as OwnerFile
}

function checked(key: KeyPair, file: OwnerFile): KeyPair {
  if (key.did !== file.did) fail('CONFIG_INVALID', { file: 'owner.json', field: 'did' })
  return key
}
