/** A store in a temporary folder, and other processes that use one, for the tests of this package. */
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { openStore, type RangeOptions, type Store, type View } from '@csb/store'

/** A folder that is gone after the test. */
export async function testFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'csb-store-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** A store that is closed after the test. */
export async function testStore(folder?: string): Promise<Store> {
  const store = await openStore(join(folder ?? (await testFolder()), 'db'))
  onTestFinished(() => store.close())
  return store
}

export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)
export const textOf = (bytes: Uint8Array | undefined): string | undefined =>
  bytes === undefined ? undefined : new TextDecoder().decode(bytes)

export async function pairsOf(view: View, options: RangeOptions): Promise<[string, string | undefined][]> {
  const pairs: [string, string | undefined][] = []
  for await (const [key, value] of view.range(options)) pairs.push([key, textOf(value)])
  return pairs
}

/** A process and the whole lines it has printed so far. */
export type Writer = { readonly child: ChildProcess; readonly lines: readonly string[]; readonly ended: Promise<void> }

/** Start `writer.ts` on a data folder in a process of its own; it is killed after the test. */
export function startWriter(directory: string, mode: 'write' | 'hold'): Writer {
  const program = fileURLToPath(new URL('./writer.ts', import.meta.url))
  const child = spawn(process.execPath, ['--conditions=csb-source', program, directory, mode], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  // when all that it said has been read as well
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines: string[] = []
  let rest = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n')
    rest = parts.pop() ?? ''
    lines.push(...parts)
  })
  return { child, lines, ended }
}
