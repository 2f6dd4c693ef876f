/** What a command asks at a terminal, and an input that ends instead of an answer. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '@csb/core'
import { t } from '../src/texts.ts'
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

/** Run it at a terminal, and type once it asks: a question and an answer, and so on. */
async function atTerminal(args: readonly string[], ...asked: readonly string[]) {
  const run = [process.execPath, '--conditions=csb-source', MAIN, ...args, '--data', folder].join(' ')
  const command = `stty cols 100 rows 40; exec ${run}`
  const child = spawn('script', ['-qec', command, '/dev/null'], { env: environment({ TERM: 'xterm' }) })
  const exited = once(child, 'exit') as Promise<[number]>
  let out = ''
  child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()))
  for (let at = 0; at < asked.length; at += 2) {
    const [question = '', typed = ''] = asked.slice(at)
    await until(() => out.includes(question), 30_000, `it asks: ${question}`)
    child.stdin.write(typed)
  }
  const [code] = await exited
  return { code, out }
}

/** The question of the gate as far as it is the same for every card. */
const asks = (decision: 'approve' | 'reject' | 'needs-changes'): string =>
  t(`gate.question.${decision}`, { word: '#' }).split('#', 1)[0] ?? ''

test.skipIf(!hasTerminal).each([
  ['Ctrl-D', CTRL_D],
  ['Ctrl-C', CTRL_C],
  ['another word', `no${ENTER}`],
])('L1.7 %s at the question of the gate decides nothing, and says so', async (_, typed) => {
  const { code, out } = await atTerminal(['gate', 'approve', card], asks('approve'), typed)
  expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining(t('gate.left', { card })) })
  expect(out).toContain(`csb gate show ${card}`)
  expect(out).not.toContain('await')
})

test.skipIf(!hasTerminal)('L1.7 the word that was asked for decides, at the same question', async () => {
  const { code, out } = await atTerminal(['gate', 'reject', card], asks('reject'), `reject${ENTER}`)
  expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining(t('gate.done.rejected', { card })) })
})

/** A card that asks to merge one file of that name and that many lines. */
async function proposed(name: string, lines: number): Promise<string> {
  const branch = `runs/${name}-${lines}`
  const input = Array.from({ length: lines }, (_, at) => `line ${at}\n`).join('')
  await csb(['files', 'put', branch, name, '--data', folder], { input })
  const { out } = await csb(['files', 'merge', branch, '--json', '--data', folder])
  return (JSON.parse(out) as { error: { details: { card: string } } }).error.details.card
}

test.skipIf(!hasTerminal)('L1.7 what is given back to be changed is not asked for again, and says why', async () => {
  const id = await proposed('b.txt', 1)
  const words = ['--words', 'shorter']
  const { code, out } = await atTerminal(['gate', 'return', id, ...words], asks('needs-changes'), `return${ENTER}`)
  expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining(t('gate.done.returned', { card: id })) })
  const again = await csb(['files', 'merge', 'runs/b.txt-1', '--json', '--data', folder])
  expect(again.code).toBe(3)
  expect(JSON.parse(again.out)).toMatchObject({
    error: { code: 'DENIED', details: { reason: 'needs_changes', words: 'shorter' } },
  })
})

test.skipIf(!hasTerminal)(
  'L1.7 a red card with lines that are not shown takes a word on them before its target',
  async () => {
    const id = await proposed('package.json', 450)
    const unseen = t('gate.unseen', { count: 51 })
    const left = await atTerminal(['gate', 'approve', id], unseen, `main${ENTER}`)
    expect({ code: left.code, out: left.out }).toEqual({
      code: 0,
      out: expect.stringContaining(t('gate.left', { card: id })),
    })
    const done = await atTerminal(['gate', 'approve', id], unseen, `51${ENTER}`, asks('approve'), `main${ENTER}`)
    expect({ code: done.code, out: done.out }).toEqual({
      code: 0,
      out: expect.stringContaining(t('gate.done.approved', { card: id, commit: '#' }).split('#', 1)[0] ?? ''),
    })
  },
)

test.skipIf(!hasTerminal)('approvals that came at once after their cards are told before the next one', async () => {
  for (const name of ['c.txt', 'd.txt', 'e.txt']) {
    const id = await proposed(name, 1)
    const { out } = await csb(['gate', 'show', id, '--json', '--data', folder])
    const { digest } = JSON.parse(out) as { digest: string }
    await csb(['gate', 'approve', id, '--yes', '--digest', digest, '--data', folder])
  }
  const id = await proposed('f.txt', 1)
  const { out } = await atTerminal(['gate', 'approve', id], asks('approve'), `no${ENTER}`)
  expect(out).toContain('The last 3 approvals were given less than 2 seconds after')
})
