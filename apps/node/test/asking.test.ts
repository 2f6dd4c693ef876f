/** What a command asks at a terminal, and an input that ends instead of an answer. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '@csb/core'
import { csb, csbStart, environment, type Running } from './command.ts'

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url))
const CTRL_C = '\u0003'
const CTRL_D = '\u0004'
const ENTER = '\r'
/** gives a process a terminal */
const hasTerminal = spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0

let folder: string
let node: Running
let card: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'csb-asking-'))
  node = await csbStart(['--init', '--unsealed', '--name', 'nas', '--port', '0', '--data', folder])
  await csb(['files', 'put', 'runs/a', 'a.txt', '--data', folder], { input: 'a' })
  await csb(['files', 'merge', 'runs/a', '--data', folder])
  const { out } = await csb(['gate', 'list', '--json', '--data', folder])
  const [item] = (JSON.parse(out) as { items: { card: { id: string } }[] }).items
  card = item?.card.id ?? ''
})

afterAll(async () => {
  await node.stop()
  await rm(folder, { recursive: true, force: true })
})

/** Run it at a terminal, and type once it asks. */
async function atTerminal(args: readonly string[], question: string, typed: string) {
  const run = [process.execPath, '--conditions=csb-source', MAIN, ...args, '--data', folder].join(' ')
  const command = `stty cols 100 rows 40; exec ${run}`
  const child = spawn('script', ['-qec', command, '/dev/null'], { env: environment({ TERM: 'xterm' }) })
  const exited = once(child, 'exit') as Promise<[number]>
  let out = ''
  child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()))
  await until(() => out.includes(question), 30_000, 'it asks')
  child.stdin.write(typed)
  const [code] = await exited
  return { code, out }
}

test.skipIf(!hasTerminal).each([
  ['Ctrl-D', CTRL_D],
  ['Ctrl-C', CTRL_C],
  ['another word', `no${ENTER}`],
])('L1.7 %s at the question of the gate decides nothing, and says so', async (_, typed) => {
  const { code, out } = await atTerminal(['gate', 'approve', card], 'To approve type', typed)
  expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining('Nothing was decided.') })
  expect(out).toContain(`csb gate show ${card}`)
  expect(out).not.toContain('await')
})

test.skipIf(!hasTerminal)('L1.7 the word that was asked for decides, at the same question', async () => {
  const { code, out } = await atTerminal(['gate', 'reject', card], 'To reject type', `reject${ENTER}`)
  expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining(`Rejected ${card}.`) })
})
