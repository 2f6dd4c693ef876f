/** A real LevelDB in a new folder, closed and removed when the test file ends; and agents that are one line of Node. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import type { AgentsAttach } from '@csb/core'
import { openStore, type Store } from '@csb/store'

const closing: (() => Promise<void>)[] = []

afterAll(async () => {
  for (const close of closing) await close()
})

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'csb-agents-'))
  closing.push(() => rm(folder, { recursive: true, force: true }))
  return folder
}

export async function temporaryStore(): Promise<Store> {
  const folder = await temporaryFolder()
  const store = await openStore(join(folder, 'db'))
  closing.unshift(() => store.close())
  return store
}

export const attachment: AgentsAttach = {
  id: 'echo',
  name: 'Echo',
  description: 'says it again',
  command: ['/bin/true'],
  skills: [{ id: 'echo.say', name: 'Say', description: 'says it again' }],
}

/** An agent whose program is `source`, run by the Node that runs the test. */
export const nodeAgent = (source: string): { command: string[] } => ({
  command: [process.execPath, '--input-type=module', '-e', source],
})
