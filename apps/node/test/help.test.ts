import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { EXIT } from '@csb/core'
import { csb } from './command.ts'

const GROUPS = ['key', 'note', 'files', 'agent', 'gate', 'label', 'record']
const widest = (text: string) => Math.max(...text.split('\n').map((line) => line.length))
const rowsOf = (text: string) => text.match(/^ {2}[a-z]+(?= )/gm)?.map((row) => row.trim()) ?? []

describe('csb --help', () => {
  test('fits a screen of 40 lines and 100 columns, and names exit codes and where to begin', async () => {
    const { code, out } = await csb(['--help'])
    expect(code).toBe(EXIT.ok)
    expect(out.trimEnd().split('\n').length).toBeLessThanOrEqual(40)
    expect(widest(out)).toBeLessThanOrEqual(100)
    expect(out).toContain('Exit codes: 0 done, 1 fault, 2 bad input, 3 refused, 4 not found, 5 busy or unreachable.')
    expect(out).toContain('csb start --init')
    expect(rowsOf(out)).not.toContain('help')
  })

  test('every command has help of its own, that fits as well and takes --json and --data', async () => {
    const names = rowsOf((await csb(['--help'])).out)
    expect(names).toEqual(expect.arrayContaining(GROUPS))
    const helps = await Promise.all(names.map((name) => csb([name, '--help'])))
    for (const [at, { code, out }] of helps.entries()) {
      expect({ name: names[at], code, fits: widest(out) <= 100 }).toEqual({
        name: names[at],
        code: EXIT.ok,
        fits: true,
      })
      expect(out).toMatch(/--data <dir>[^]+--json/)
    }
  })

  test('csb lease says what is meant by what is not said', async () => {
    const { out } = await csb(['lease', '--help'])
    const words = out.replaceAll(/\s+/g, ' ')
    for (const said of [
      '(default: send)',
      'needed to list, read',
      'needed to read, write',
      '(default: public)',
      '7d)',
      'rules the node',
    ])
      expect(words).toContain(said)
    expect(words).not.toContain('604800000')
  })

  test('says its version', async () => {
    expect((await csb(['--version'])).out).toMatch(/^\d+\.\d+\.\d+\n$/)
  })
})

describe('a slip of usage', () => {
  test.each([
    { args: [], says: 'Usage: csb' },
    { args: ['bogus'], says: "csb: unknown command 'bogus'\nHow it is used: csb --help\n" },
    { args: ['statuss'], says: "csb: unknown command 'statuss'\n(Did you mean status?)" },
    { args: ['note', 'add'], says: "csb: missing required argument 'text'\nHow it is used: csb note add --help\n" },
    { args: ['note'], says: 'Usage: csb note' },
    { args: ['status', '--loud'], says: "csb: unknown option '--loud'" },
    { args: ['lease'], says: "csb: required option '--for <name>' not specified" },
    { args: ['start', '--port', 'abc'], says: 'A port is a number from 0 to 65533' },
    { args: ['start', '--port', '65534'], says: 'A port is a number from 0 to 65533' },
    { args: ['note', 'list', '--limit', '-3'], says: 'It is a whole number.' },
    { args: ['note', 'add', 'x', '--type', 'poem'], says: 'Allowed choices are event, decision' },
    { args: ['note', 'show', '../agents'], says: 'The id of a note is mem_' },
    { args: ['sync', 'birch'], says: 'A did is did:key:z6Mk' },
    { args: ['handoff', 'birch', 'clerk', 'work'], says: 'A did is did:key:z6Mk' },
    { args: ['send', 'clerk', 'hello', '--to', 'did:key:zOther'], says: 'A did is did:key:z6Mk' },
    { args: ['delegate', '--audience', 'x'], says: 'A did is did:key:z6Mk' },
    { args: ['delegate', '--audience', '*', '--level', 'shout'], says: 'Allowed choices are inform, request' },
    { args: ['lease', '--for', 'x', '--ttl', 'soon'], says: 'A duration is 10s, 5m, 2h or 7d.' },
    { args: ['note', 'add', 'x', '--label', 'secret'], says: 'A label is public, trusted, private or sealed' },
    { args: ['send', 'a', 'b', '--stream', '--level', 'inform'], says: "cannot be used with option '--level <level>'" },
  ])('csb $args is told on stderr and exits with 2', async ({ args, says }) => {
    const { code, out, err } = await csb(args)
    expect({ code, out }).toEqual({ code: EXIT.input, out: '' })
    expect(err).toContain(says)
    expect(err).not.toMatch(/^\s+at /m)
  })

  test.each([[['--json']], [['bogus', '--json']], [['--json', 'note', 'add']], [['start', '--json', '--port', 'x']]])(
    'csb %j answers with an error of the table',
    async (args) => {
      const { code, out, err } = await csb(args)
      expect({ code, err }).toEqual({ code: EXIT.input, err: '' })
      expect(JSON.parse(out)).toMatchObject({
        error: { code: 'INVALID_INPUT', details: { problem: expect.any(String) as string } },
      })
    },
  )
})

test('a reader that has seen enough ends nothing with a stack', () => {
  const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))
  const line = `"${process.execPath}" --conditions=csb-source "${main}" --help | true`
  expect(spawnSync('sh', ['-c', line], { encoding: 'utf8' }).stderr).toBe('')
})
