/**
 * The owner's key on disk: sealed with a passphrase, or left open only where a person said so. The node's
 * process never reads it; the command opens it for one signature.
 */
import {
  createKeyPair,
  exportSeed,
  fail,
  fromBase64Url,
  systemClock,
  toBase64Url,
  type KeyPair,
  type KeyStatement,
} from '@csb/core'
import { inOrder, openSeed, sealSeed, type SealedSeed } from '@csb/authority'
import { isAlive } from './client.ts'
import { FILES, readJson, readText, removeFile, writeJson } from './data-folder.ts'

/** No command takes longer; a number of a process may be another one's by then. */
const BUSY_MS = 10 * 60_000

type OwnerFile = {
  readonly v: 1
  readonly name: string
  readonly did: string
  /** what was said of this key and those before it, in the order in which it is believed */
  readonly statements?: readonly KeyStatement[]
} & ({ readonly sealed: SealedSeed } | { readonly seed: string })

export type Owner = {
  readonly name: string
  readonly did: string
  readonly isSealed: boolean
  /** what was said of this key and those before it, in the order in which it is believed */
  readonly statements: readonly KeyStatement[]
}

/** A key as it is kept: the owner's name and what was said of it and the keys before it. */
export type Kept = Pick<Owner, 'name' | 'statements'> & { readonly key: KeyPair }

/** How the key is kept: behind a passphrase, or openly because somebody asked for it. */
export type Custody = { readonly passphrase: string } | 'unsealed'

/** Make a new owner and keep its key in `directory`. */
export async function createOwner(directory: string, name: string, custody: Custody): Promise<KeyPair> {
  const key = createKeyPair()
  await keepOwner(directory, { name, key, statements: [] }, custody)
  return key
}

export async function keepOwner(directory: string, kept: Kept, custody: Custody): Promise<void> {
  await writeJson(directory, 'owner', await fileOf(kept, custody))
}

/**
 * Keep a key that may become the owner's beside the one that is. One that was kept before stays: whether it has become
 * the owner's only the node knows.
 * @throws BUSY where a command that is still running keeps one
 */
export async function keepNext(directory: string, kept: Kept, custody: Custody): Promise<void> {
  const now = systemClock.now()
  const before = await nextOf(directory)
  const busy = before.find(({ pid, at }) => pid !== process.pid && at + BUSY_MS > now && isAlive(pid))
  if (busy !== undefined) fail('BUSY', { reason: 'another command changes the key', pid: busy.pid })
  const next: Next = { pid: process.pid, at: now, file: await fileOf(kept, custody) }
  await writeJson(directory, 'ownerNext', [...before, next])
}

/** Dids of the keys that may have become the owner's. */
export async function listNext(directory: string): Promise<readonly string[]> {
  return (await nextOf(directory)).map(({ file }) => file.did)
}

/** One of them was refused: nobody follows it. */
export async function forgetNext(directory: string, did: string): Promise<void> {
  const left = (await nextOf(directory)).filter(({ file }) => file.did !== did)
  if (left.length === 0) await removeFile(directory, 'ownerNext')
  else await writeJson(directory, 'ownerNext', left)
}

/** One of them has become the owner's: it takes the place of the old one. Done again it changes nothing. */
export async function followWith(directory: string, did: string): Promise<void> {
  const next = (await nextOf(directory)).find(({ file }) => file.did === did)
  if (next !== undefined) await writeJson(directory, 'owner', next.file)
}

/** Something was said of this key or an earlier one: it goes with the key from now on. */
export async function noteStatement(directory: string, statement: KeyStatement): Promise<void> {
  const file = await readFile(directory)
  await writeJson(directory, 'owner', { ...file, statements: inOrder([...(file.statements ?? []), statement]) })
}

/** Put a key that lies open behind a passphrase. @throws PASSPHRASE where it is sealed already */
export async function sealOwner(directory: string, passphrase: string): Promise<void> {
  const { name, isSealed, statements } = await readOwner(directory)
  if (isSealed) fail('PASSPHRASE', { reason: 'it is sealed already' })
  await keepOwner(directory, { name, key: await openOwner(directory, undefined), statements }, { passphrase })
}

/** Who owns the key in `directory`, without opening it. @throws NOT_INITIALISED */
export async function readOwner(directory: string): Promise<Owner> {
  const file = await readFile(directory)
  return { name: file.name, did: file.did, isSealed: 'sealed' in file, statements: file.statements ?? [] }
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

type Next = {
  /** process that keeps it, and since when, ms since epoch */
  readonly pid: number
  readonly at: number
  readonly file: OwnerFile
}

async function nextOf(directory: string): Promise<readonly Next[]> {
  if ((await readText(directory, 'ownerNext')) === undefined) return []
  const value = await readJson(directory, 'ownerNext')
  return Array.isArray(value) ? (value as readonly Next[]) : fail('CONFIG_INVALID', { file: FILES.ownerNext })
}

async function fileOf({ name, key, statements }: Kept, custody: Custody): Promise<OwnerFile> {
  const seed = exportSeed(key)
  const kept =
    custody === 'unsealed' ? { seed: toBase64Url(seed) } : { sealed: await sealSeed(seed, custody.passphrase) }
  return { v: 1, name, did: key.did, ...(statements.length === 0 ? {} : { statements }), ...kept }
}

async function readFile(directory: string): Promise<OwnerFile> {
  const value = (await readJson(directory, 'owner')) as Partial<OwnerFile> | null
  if (typeof value?.name !== 'string' || typeof value.did !== 'string') fail('CONFIG_INVALID', { file: FILES.owner })
  return value as OwnerFile
}

function checked(key: KeyPair, file: OwnerFile): KeyPair {
  if (key.did !== file.did) fail('CONFIG_INVALID', { file: 'owner.json', field: 'did' })
  return key
}
