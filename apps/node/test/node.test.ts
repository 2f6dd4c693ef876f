import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { EXIT, fromBase64Url } from '@csb/core'
import { createPorts } from '../../harness/src/ports.ts'
import { csb, csbStart, type Running } from './command.ts'

const parent = await mkdtemp(join(tmpdir(), 'csb-command-'))
const folder = join(parent, 'alder')
const other = join(parent, 'birch')
const sealed = join(parent, 'sealed')
const ports = createPorts(process.pid)
let running: Running

beforeAll(async () => {
  await csb(['init', '--data', folder, '--name', 'alder', '--owner', 'Ines', '--unsealed'])
  await csb(['init', '--data', other, '--unsealed'])
  running = await csbStart(['--data', folder, '--port', '0'])
})
afterAll(async () => {
  await running.stop()
  await rm(parent, { recursive: true, force: true })
})

const runningIn = async (directory: string): Promise<unknown> =>
  JSON.parse(await readFile(join(directory, 'running.json'), 'utf8')) as unknown

async function takenPort(): Promise<number> {
  const port = await ports.take()
  const server = createServer().listen(port, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
  })
  return port
}

describe('csb init', () => {
  test('says where everything is, and that the key lies open', async () => {
    const directory = join(parent, 'cedar')
    const { code, out, err } = await csb(['init', '--data', directory, '--unsealed'])
    expect(code).toBe(EXIT.ok)
    expect(out).toMatch(
      new RegExp(`^Made cedar in ${directory}\\n  node   did:key:z\\w+\\n  owner  cedar's owner did:key:z`),
    )
    expect(err).toContain(`Seal it with: csb key seal --data ${directory}`)
  })

  test('twice is refused, and says how to go on', async () => {
    const { code, err } = await csb(['init', '--data', folder, '--unsealed'])
    expect(code).toBe(EXIT.input)
    expect(err).toContain('[ALREADY_INITIALISED]')
    expect(err).toContain(`csb start --data ${folder}`)
  })

  test('without a passphrase and without a terminal names both ways out', async () => {
    const { code, err } = await csb(['init', '--data', join(parent, 'dogwood')])
    expect(code).toBe(EXIT.refused)
    expect(err).toContain('Set CSB_PASSPHRASE, run it in a terminal that can ask, or say --unsealed.')
  })

  test('a passphrase from the environment seals the key; a short one is refused', async () => {
    const env = { CSB_PASSPHRASE: 'correct horse' }
    expect((await csb(['init', '--data', sealed], { env: { CSB_PASSPHRASE: 'short' } })).code).toBe(EXIT.refused)
    const { code, err } = await csb(['init', '--data', sealed], { env })
    expect({ code, err }).toEqual({ code: EXIT.ok, err: '' })
    const again = await csb(['key', 'seal', '--data', sealed, '--json'], { env })
    expect(JSON.parse(again.out)).toMatchObject({
      error: { code: 'PASSPHRASE', details: { reason: 'sealed_already' } },
    })
  })

  test('a wrong passphrase is told as such', async () => {
    const node = await csbStart(['--data', sealed, '--port', '0'])
    const lease = ['lease', '--for', 'me', '--data', sealed]
    const wrong = await csb(lease, { env: { CSB_PASSPHRASE: 'battery staple' } })
    expect(wrong.code).toBe(EXIT.refused)
    expect(wrong.err).toContain('csb: The passphrase is wrong. [PASSPHRASE]')
    const right = await csb([...lease, '--json'], { env: { CSB_PASSPHRASE: 'correct horse' } })
    const { token } = JSON.parse(right.out) as { token: string }
    expect(fromBase64Url(token.replace('csb_', ''))).toHaveLength(32)
    expect(await node.stop()).toBe(EXIT.ok)
  })
})

describe('csb start', () => {
  test('--init makes the node, says where it is and what next, and ends cleanly at a signal', async () => {
    const directory = join(parent, 'elm')
    const node = await csbStart(['--init', '--unsealed', '--data', directory, '--port', '0'])
    expect(node.ready).toMatchObject({ ready: true, name: 'elm', url: expect.stringMatching(/^http:/) as string })
    expect(await node.stop('SIGINT')).toBe(EXIT.ok)
    await expect(runningIn(directory)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('a taken port is named at once, with one that is free, and is no reason to hold the folder', async () => {
    const port = await takenPort()
    const { code, err } = await csb(['start', '--data', other, '--port', String(port)])
    expect(code).toBe(EXIT.unreachable)
    expect(err).toContain('[PORT_IN_USE]')
    const next = new RegExp(`csb start --data ${other} --port (\\d+)`).exec(err)?.[1] ?? ''
    const node = await csbStart(['--data', other, '--port', next])
    expect(node.ready).toMatchObject({ url: `http://127.0.0.1:${next}` })
    await node.stop()
  })

  test('a taken port for peers is told the same way', async () => {
    const listen = `/ip4/127.0.0.1/tcp/${await takenPort()}`
    const { code, err } = await csb(['start', '--data', other, '--port', '0', '--listen', listen])
    expect(code).toBe(EXIT.unreachable)
    expect(err).toMatch(/\[PORT_IN_USE\]\n[^]*door: peers/)
  })

  test('a second one in the folder of a running node names the holder and leaves it as it is', async () => {
    const before = await runningIn(folder)
    const { code, err } = await csb(['start', '--data', folder, '--port', '0'])
    expect(code).toBe(EXIT.unreachable)
    expect(err).toContain(`Process ${running.pid} holds it.`)
    expect(await runningIn(folder)).toEqual(before)
    expect((await csb(['status', '--data', folder])).code).toBe(EXIT.ok)
  })

  test('a folder of a newer version is left alone', async () => {
    const directory = join(parent, 'fir')
    await csb(['init', '--data', directory, '--unsealed'])
    const path = join(directory, 'identity.json')
    const identity = JSON.parse(await readFile(path, 'utf8')) as object
    await writeFile(path, JSON.stringify({ ...identity, v: 2 }))
    const { code, err } = await csb(['start', '--data', directory])
    expect(code).toBe(EXIT.input)
    expect(err).toContain('[DATA_TOO_NEW]')
    expect(err).toContain('Install the newer version')
  })

  test('a broken config.json is named by its field', async () => {
    const directory = join(parent, 'ginkgo')
    await csb(['init', '--data', directory, '--unsealed'])
    await writeFile(join(directory, 'config.json'), '{"http":{"port":"many"}}')
    const { code, out } = await csb(['start', '--data', directory, '--json'])
    expect(code).toBe(EXIT.input)
    expect(JSON.parse(out)).toMatchObject({ error: { code: 'CONFIG_INVALID', details: { field: 'http.port' } } })
  })
})

describe('a command', () => {
  test('without a node says how to make one, and without a running one how to start it', async () => {
    const nowhere = await csb(['status', '--data', join(parent, 'nowhere')])
    expect(nowhere.code).toBe(EXIT.missing)
    expect(nowhere.err).toContain(`csb init --data ${join(parent, 'nowhere')}`)
    const stopped = await csb(['status', '--data', other])
    expect(stopped.code).toBe(EXIT.unreachable)
    expect(stopped.err).toContain(`csb start --data ${other}`)
  })

  test('takes --json and --data before its name or behind it', async () => {
    const behind = await csb(['status', '--json', '--data', folder])
    const before = await csb(['--json', '--data', folder, 'status'])
    // the node makes a checkpoint of its record whenever that is due
    const { record: _, ...shown } = JSON.parse(behind.out) as Record<string, unknown>
    expect(JSON.parse(before.out)).toMatchObject(shown)
    expect(shown).toMatchObject({ name: 'alder', owner: { name: 'Ines' } })
  })

  test('shows text of others without obeying it', async () => {
    const evil = 'red \u001B[31m and \u202Eright to left\u202C, \u0007bell'
    const { id } = JSON.parse((await csb(['note', 'add', evil, '--json', '--data', folder])).out) as { id: string }
    const shown = await csb(['note', 'show', id, '--data', folder])
    expect(shown.out).toContain('red \\u{1b}[31m and \\u{202e}right to left\\u{202c}, \\u{7}bell')
    const listed = await csb(['note', 'list', '--data', folder])
    for (const char of ['\u0007', '\u001B', '\u202E']) expect(`${shown.out}${listed.out}`).not.toContain(char)
  })

  test('that lists notes says that there are more, and how to go on', async () => {
    for (const text of ['one', 'two', 'three']) await csb(['note', 'add', text, '--data', folder])
    const list = async (...more: string[]) => (await csb(['note', 'list', ...more, '--data', folder])).out
    const all = (await list('--limit', '200')).trimEnd().split('\n')
    expect(all.at(-1)).toMatch(/^mem_/)
    const first = await list('--limit', '2')
    const [, cursor = ''] = /^There are more: .* --cursor (mem_\S+?),/m.exec(first) ?? []
    expect(all[1]).toContain(cursor)
    expect(await list('--limit', '200', '--cursor', cursor)).toBe(`${all.slice(2).join('\n')}\n`)
  })

  test('can not be led out of its place by what is typed', async () => {
    const { code, err } = await csb(['note', 'show', '../agents', '--data', folder])
    expect(code).toBe(EXIT.input)
    expect(err).toContain('The id of a note is mem_')
  })

  test('with a file for a folder says so', async () => {
    const file = join(parent, 'a-file')
    await writeFile(file, '')
    for (const words of [['status'], ['init', '--unsealed'], ['start']]) {
      const { code, err } = await csb([...words, '--data', file])
      expect(code).toBe(EXIT.input)
      expect(err).toContain('What --data names is a file.')
    }
  })

  test('that adds a note says nothing but its id, and of one too long how it gets in', async () => {
    const added = await csb(['note', 'add', '# Short', '--data', folder])
    expect(added.out).toMatch(/^Remembered as mem_\w+\.\n$/)
    const long = 'A sentence of some words. '.repeat(100)
    const { code, err } = await csb(['note', 'add', long, '--data', folder])
    expect(code).toBe(EXIT.input)
    expect(err).toContain('A note holds 2048 characters, and this has 2600.')
    await writeFile(join(parent, 'long.md'), long)
    expect((await csb(['import', join(parent, 'long.md'), '--data', folder])).out).toMatch(/^2 notes taken in/)
  })

  test('that takes in notes names the file whose front matter is no front matter', async () => {
    const vault = join(parent, 'odd')
    await mkdir(vault)
    await writeFile(join(vault, 'odd.md'), '---\n__proto__: {a: 1}\n---\nOdd.\n')
    const { code, out } = await csb(['import', vault, '--data', folder])
    expect({ code, out }).toMatchObject({ code: EXIT.ok, out: expect.stringMatching(/odd\.md: front matter kept/) })
  })

  test.each([
    ['--branches', 'main,runs/m*', 'branches', 'runs/* is all below runs/'],
    ['--paths', 'docs', 'paths', 'A path begins with /'],
    ['--deny', 'docs', 'deny_paths', 'A path begins with /'],
  ])(
    'that hands out a lease with %s %s names the field and what would be right',
    async (option, value, field, says) => {
      const rest = ['--paths', '/', '--branches', 'main'].flatMap((word, at, all) =>
        at % 2 === 0 && word !== option ? [word, all[at + 1] ?? ''] : [],
      )
      const { code, err } = await csb([
        'lease',
        '--for',
        'reader',
        '--actions',
        'read',
        ...rest,
        option,
        value,
        '--data',
        folder,
      ])
      expect(code).toBe(EXIT.refused)
      expect(err).toContain(field)
      expect(err).toContain(says)
    },
  )

  test('that hands out a lease which reaches nothing says what is missing', async () => {
    const lease = ['lease', '--for', 'reader', '--data', folder, '--actions', 'read,list']
    const nowhere = await csb(lease)
    expect(nowhere.code).toBe(EXIT.input)
    expect(nowhere.err).toContain('To read, list it needs --paths, --branches')
    expect((await csb([...lease, '--paths', '/'])).err).toContain('needs --branches:')
    const { out } = await csb([...lease, '--paths', '/', '--branches', 'memory'])
    expect(out).toMatch(/may +read, list\n +paths +\/\n +branches memory\n +sees +up to public\n +until/)
    expect(out).not.toMatch(/budget|children|tags|can |rules the node/)
  })

  test('says all that a lease holds, and who rules the node by it', async () => {
    const lease = [
      'lease',
      '--for',
      'builder',
      '--data',
      folder,
      '--actions',
      'read,exec',
      '--paths',
      '/',
      '--deny',
      '/x',
    ]
    const more = [
      '--branches',
      'runs/*',
      '--tag',
      'mill',
      '--floor',
      'private',
      '--budget',
      'calls=9',
      '--children',
      '2',
    ]
    const { out } = await csb([...lease, ...more, '--capability', 'B', '--gate', 'merge'])
    const held = [
      'not +/x',
      'tags +mill',
      'writes +as private',
      'budget +calls=9',
      'children +2',
      'can +B',
      'waits +merge',
    ]
    for (const line of held) expect(out).toMatch(new RegExp(`^ +${line}`, 'm'))
    expect(out).not.toContain('rules the node')
    // and so does the list of what was given
    expect((await csb(['grants', '--data', folder])).out).toContain(
      'may read exec (B) on runs/* in / but /x, up to public',
    )
    expect((await csb([...lease, ...more, '--capability', 'C'])).out).toContain('whoever has this token rules the node')
  })

  test('of a task that failed says how the command ended, without its token, and ends with 1', async () => {
    const broken = 'console.error(`no such ${process.env.CSB_TOKEN}`); process.exitCode = 3'
    await csb(['agent', 'attach', 'broken', '--data', folder, '--', process.execPath, '-e', broken])
    const { code, out } = await csb(['send', 'broken', 'hello', '--data', folder])
    expect(out).toContain('TASK_STATE_FAILED')
    expect(out).toMatch(/\n {2}exit {2}3\n[^]*\n {2}\| no such \[token\]\n/)
    expect(code).toBe(EXIT.fault)
  })
})

describe('csb agent attach', () => {
  test('a script is named as from where the person stands, and gets its own options', async () => {
    const cwd = join(parent, 'work')
    await mkdir(cwd)
    const say = "process.stdout.write(JSON.stringify({ result: { text: process.argv.slice(2).join(' ') } }))"
    await writeFile(join(cwd, 'echo.mjs'), say)
    const attach = ['agent', 'attach', 'echo', '--skill', 'say,repeat', '--data', folder, '--json']
    const { out } = await csb([...attach, '--', process.execPath, './echo.mjs', '--loud', '-d', 'x', '--json'], { cwd })
    expect(JSON.parse(out)).toMatchObject({ cwd, skills: [{ id: 'say' }, { id: 'repeat' }] })
    const sent = await csb(['send', 'echo', 'hello', '--data', folder])
    expect(sent).toMatchObject({ code: EXIT.ok })
    expect(sent.out).toContain('--loud -d x --json')
    const streamed = await csb(['send', 'echo', 'hello', '--stream', '--data', folder])
    expect(streamed.out).toContain('TASK_STATE_COMPLETED')
  })
})
