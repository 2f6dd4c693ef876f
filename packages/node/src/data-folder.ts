/**
 * The data folder of a node: which file is where, written so that a crash leaves the old one or the new one.
 * Secrets are mode 0600, the folder 0700.
 */
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fail, fromUtf8, isNodeError, parseBounded, toNodeError } from '@csb/core'

export const FILES = {
  identity: 'identity.json',
  config: 'config.json',
  nodeKey: 'node.key',
  owner: 'owner.json',
  ownerNext: 'owner.next.json',
  token: 'owner.token',
  running: 'running.json',
  unfinished: 'init.unfinished',
  database: 'db',
} as const

const MODES: Partial<Record<keyof typeof FILES, number>> = {
  nodeKey: 0o600,
  owner: 0o600,
  ownerNext: 0o600,
  token: 0o600,
}
const MAX_BYTES = 1024 * 1024

export type FileName = keyof typeof FILES

export const pathOf = (directory: string, name: FileName): string => join(directory, FILES[name])

export async function makeFolder(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
}

/**
 * Write whole or not at all: a temporary file, synced, then renamed over the old one.
 * @throws DISK_FULL
 */
export async function writeText(directory: string, name: FileName, text: string): Promise<void> {
  const path = pathOf(directory, name)
  try {
    const file = await open(`${path}.new`, 'w', MODES[name] ?? 0o644)
    try {
      // one that a crash left behind keeps its mode when it is opened again
      await file.chmod(MODES[name] ?? 0o644)
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(`${path}.new`, path)
    await syncFolder(directory)
  } catch (error) {
    throw toNodeError(error)
  }
}

export const writeJson = (directory: string, name: FileName, value: unknown): Promise<void> =>
  writeText(directory, name, `${JSON.stringify(value, null, 2)}\n`)

export const removeFile = (directory: string, name: FileName): Promise<void> =>
  rm(pathOf(directory, name), { force: true })

/**
 * @returns undefined where there is no such file
 * @throws INVALID_INPUT where the folder is a file
 */
export async function readText(directory: string, name: FileName): Promise<string | undefined> {
  try {
    return fromUtf8(await readFile(pathOf(directory, name)))
  } catch (error) {
    const { code } = error as { code?: string }
    if (code === 'ENOENT') return undefined
    if (code === 'ENOTDIR') fail('INVALID_INPUT', { reason: 'not_a_folder', directory }, error)
    throw toNodeError(error)
  }
}

/** @throws NOT_INITIALISED where it is missing, CONFIG_INVALID where it is no JSON */
export async function readJson(directory: string, name: FileName): Promise<unknown> {
  const text = (await readText(directory, name)) ?? fail('NOT_INITIALISED', { directory, file: FILES[name] })
  try {
    return parseBounded(text, MAX_BYTES)
  } catch (error) {
    if (isNodeError(error)) fail('CONFIG_INVALID', { file: FILES[name], ...error.details }, error)
    throw error
  }
}

/** A rename is on the disk when its folder is. Systems that can not open a folder do that by themselves. */
export async function syncFolder(directory: string): Promise<void> {
  if (process.platform === 'win32') return
  const folder = await open(directory, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
