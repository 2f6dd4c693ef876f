/** csb files, command by command, and that REST has the same. */
import { randomBytes } from 'node:crypto'
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EXIT } from '@csb/core'
import { connect, type Client } from '@csb/node'
import { csb, csbStart, environment, type Running } from './command.ts'

const run = promisify(execFile)
const parent = await mkdtemp(join(tmpdir(), 'csb-files-'))
const folder = join(parent, 'alder')
let running: Running
let client: Client

beforeAll(async () => {
  await csb(['init', '--data', folder, '--name', 'alder', '--owner', 'Ines', '--unsealed'])
  running = await csbStart(['--data', folder, '--port', '0'])
  client = await connect(folder)
})
afterAll(async () => {
  await running.stop()
  await rm(parent, { recursive: true, force: true })
})

const files = async (args: readonly string[], input?: string | Uint8Array): Promise<string> => {
  const setting = input === undefined ? {} : { input }
  const { code, out, err } = await csb(['files', ...args, '--data', folder], setting)
  expect(err).not.toMatch(/\[[A-Z_]+\]/)
  expect(code).toBe(EXIT.ok)
  return out
}
const rest = <T>(method: 'GET', path: string): Promise<T> => client.call<T>(method, path)

/** What takes the moving line away. */
const MOVED = '\r\u001B[K'
/** A command whose messages go to a terminal. */
const terminal = {
  CI: undefined,
  NO_COLOR: undefined,
  TERM: 'xterm',
  NODE_OPTIONS: '--import=data:text/javascript,process.stderr.isTTY=true;process.stderr.columns=80',
}

describe('csb files', () => {
  test('put, ls, cat, log, rm: what the one wrote the others read, and REST the same', async () => {
    await files(['put', 'runs/one', 'docs/a.md', '--message', 'first'], 'one\ntwo\n')
    const binary = Uint8Array.of(0, 255, 254, 10, 128)
    await files(['put', 'runs/one', 'picture.bin'], binary)
    expect(await files(['ls', 'runs/one'])).toBe('docs/\ndocs/a.md\npicture.bin\n')
    expect(await files(['cat', 'runs/one', 'docs/a.md'])).toBe('one\ntwo\n')
    const read = await rest<{ base64: string }>('GET', '/v1/files/file?branch=runs/one&path=picture.bin')
    expect(Uint8Array.from(Buffer.from(read.base64, 'base64'))).toEqual(binary)
    expect(await files(['log', 'runs/one', '--limit', '2'])).toMatch(/Ines: write picture\.bin\n.*Ines: first\n/)
    await files(['rm', 'runs/one', 'picture.bin'])
    const tree = await rest<{ items: { path: string }[] }>('GET', '/v1/files/tree?branch=runs/one')
    expect(tree.items.map(({ path }) => path)).toEqual(['docs', 'docs/a.md'])
  })

  test('ls shows a submodule as such, with the commit that it stands at', async () => {
    const work = join(parent, 'work')
    await mkdir(work)
    const git = (...words: string[]) =>
      run('git', ['-c', 'user.name=x', '-c', 'user.email=x@y', ...words], { cwd: work })
    const { home } = await rest<{ home: string }>('GET', '/v1/status')
    const token = (await readFile(join(folder, 'owner.token'), 'utf8')).trim()
    await git('init', '-q', '--object-format=sha256')
    await git('update-index', '--add', '--cacheinfo', `160000,${'ab'.repeat(32)},lib`)
    await git('commit', '-q', '-m', 'with a submodule')
    const url = client.url.replace('http://', `http://me:${token}@`)
    await git('push', '-q', `${url}/git/${home}.git`, 'HEAD:refs/heads/runs/modules')
    expect(await files(['ls', 'runs/modules'])).toBe('lib  (submodule at abababababab)\n')
    const { code } = await csb(['files', 'cat', 'runs/modules', 'lib', '--data', folder])
    expect(code).toBe(EXIT.missing)
  })

  test('credential gives git the token for this node and no other place, and git keeps it nowhere', async () => {
    const { home } = await rest<{ home: string }>('GET', '/v1/status')
    const token = (await readFile(join(folder, 'owner.token'), 'utf8')).trim()
    const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))
    const helper = `!"${process.execPath}" --conditions=csb-source "${main}" files credential --data "${folder}"`
    const clone = join(parent, 'clone')
    const setting = { env: environment({ GIT_TERMINAL_PROMPT: '0', GIT_CONFIG_GLOBAL: '/dev/null', HOME: parent }) }
    const url = `${client.url}/git/${home}.git`
    await run('git', ['clone', '-q', '-c', `credential.helper=${helper}`, url, clone], setting)
    const config = await readFile(join(clone, '.git/config'), 'utf8')
    expect(config).toContain('files credential')
    expect(config).not.toContain(token)
    const author = ['-c', 'user.name=x', '-c', 'user.email=x@y']
    await run('git', [...author, 'commit', '-q', '--allow-empty', '-m', 'by helper'], { ...setting, cwd: clone })
    await run('git', ['push', '-q', 'origin', 'HEAD:refs/heads/runs/helper'], { ...setting, cwd: clone })
    expect(await files(['refs'])).toContain('runs/helper')
    const place = client.url.replace('http://', '')
    expect(await files(['credential', 'get'], `protocol=http\nhost=${place}\n\n`)).toBe(
      `username=csb\npassword=${token}\n`,
    )
    for (const [operation, host] of [
      ['get', 'example.org'],
      ['get', place.replace(/[0-9]+$/, '1')],
      ['get', ''],
      ['get', `${place}/.evil.example`],
      ['get', `${place}?.evil.example`],
      ['get', `evil@${place}`],
      ['get', ` ${place}`],
      ['get', `${place}\nhost=evil.example`],
      ['store', place],
      ['erase', place],
      ['something', place],
    ] as const)
      expect(await files([`credential`, operation], `protocol=http\nhost=${host}\n`)).toBe('')
    const other = await csb(['files', 'credential', 'get'], {
      input: 'protocol=http\nhost=127.0.0.1:9\n',
      env: { CSB_TOKEN: 'lent', CSB_URL: 'http://127.0.0.1:9' },
    })
    expect(other.out).toBe('username=csb\npassword=lent\n')
  })

  test('a lease that sees a part is shown its ids, and dashes where it is told none', async () => {
    await files(['put', 'runs/part', 'docs/a.md'], 'a\n')
    await files(['put', 'runs/part', 'beside.md'], 'b\n')
    const lease = ['lease', '--for', 'x', '--actions', 'list,read,write', '--paths', '/docs', '--branches', '*']
    const made = await csb([...lease, '--level', 'private', '--json', '--data', folder])
    const { token } = JSON.parse(made.out) as { token: string }
    const env = { CSB_RUN: 'run_1', CSB_TOKEN: token, CSB_URL: client.url }
    const asked = async (args: readonly string[], input = '') => {
      const { code, out, err } = await csb(['files', ...args, '--data', folder], { env, input })
      expect(err).toBe('')
      expect(code).toBe(EXIT.ok)
      return out
    }
    const refs = await asked(['refs'])
    expect(refs).toMatch(/^-{12} {2}memory$/m)
    const [, own = ''] = /^([0-9a-f]{12}) {2}runs\/part$/m.exec(refs) ?? []
    const [, real = ''] = /^([0-9a-f]{12}) {2}runs\/part$/m.exec(await files(['refs'])) ?? []
    expect(own).not.toBe('')
    expect(own).not.toBe(real)
    expect(await asked(['put', 'runs/part', 'docs/b.md'], 'b\n')).toMatch(/^Committed [0-9a-f]{12} on runs\/part\.$/m)
    expect(await asked(['branch', 'runs/part-two', 'runs/part'])).toMatch(/[0-9a-f]{12}/)
  })

  test('branch, diff, merge, snapshot, recycle, restore', async () => {
    await files(['put', 'runs/base', 'a.md'], 'a\n')
    await files(['branch', 'runs/two', 'runs/base'])
    await files(['put', 'runs/two', 'b.md'], 'b\n')
    await files(['rm', 'runs/two', 'a.md'])
    expect(await files(['diff', 'runs/base', 'runs/two'])).toMatch(/delete\s+a\.md[^]*add\s+b\.md/)
    expect(await files(['merge', 'runs/two', 'runs/base', '--preview'])).toContain('b.md')
    await files(['snapshot', 'before', 'runs/base'])
    await files(['merge', 'runs/two', 'runs/base'])
    expect(await files(['cat', 'snapshots/before', 'a.md'])).toBe('a\n')
    expect(await files(['recycle'])).toMatch(/a\.md/)
    await files(['restore', 'a.md', 'runs/base'])
    expect(await files(['cat', 'runs/base', 'a.md'])).toBe('a\n')
    await files(['branch', 'runs/two', '--remove'])
    await files(['branch', 'runs/two', '--restore', '--as', 'runs/again'])
    expect(await files(['refs'])).toContain('runs/again')
    const { refs } = await rest<{ refs: { branch: string }[] }>('GET', '/v1/files/refs')
    expect(refs.map(({ branch }) => branch)).toEqual(expect.arrayContaining(['runs/again', 'snapshots/before']))
  })

  test('export shows how far it is, import takes it elsewhere; fsck and gc find all in order', async () => {
    const archive = join(parent, 'home.csbar')
    expect(await files(['export', archive])).toContain(archive)
    expect((await readFile(archive)).byteLength).toBeGreaterThan(0)
    expect(await files(['fsck'])).toMatch(/objects checked/)
    expect(await files(['gc'])).not.toBe('')
    const birch = join(parent, 'birch')
    await csb(['init', '--data', birch, '--unsealed'])
    const other = await csbStart(['--data', birch, '--port', '0'])
    const { code, err } = await csb(['files', 'import', archive, '--data', birch], { env: terminal })
    expect(code).toBe(EXIT.ok)
    const bars = err.split(MOVED)
    expect([bars.shift(), bars.pop()]).toEqual(['', ''])
    for (const bar of bars) expect(bar).toMatch(/^Importing \[#*\.*\] [0-9.]+ of [0-9.]+ MiB$/)
    expect(bars.at(-1)).toContain('#'.repeat(20))
    await other.stop()
  })

  test('export and import say at a terminal how far they are, in one line that goes; elsewhere nothing', async () => {
    const large = randomBytes(3_000_000).toString('base64')
    await client.call('PUT', '/v1/files/file', { branch: 'runs/large', path: 'large.txt', text: large })
    const archive = (name: string) => join(parent, `${name}.csbar`)
    const at = (env: NodeJS.ProcessEnv, ...args: string[]) => csb(['files', ...args, '--data', folder], { env })
    const [shown, piped, json] = await Promise.all([
      at(terminal, 'export', archive('shown')),
      at({}, 'export', archive('piped')),
      at(terminal, 'export', archive('json'), '--json'),
    ])
    const mebibytes = ((await stat(archive('shown'))).size / 1_048_576).toFixed(1)
    const frames = shown.err.split(MOVED)
    // the line is gone before the answer is told
    expect([frames.shift(), frames.pop()]).toEqual(['', ''])
    const told = frames.map((frame) => /^Exporting \[(#*)(\.*)\] ([0-9.]+) of ([0-9.]+) MiB$/.exec(frame))
    for (const [, done = '', left = '', , total] of told.map((match) => match ?? []))
      expect([done.length + left.length, total]).toEqual([20, mebibytes])
    const bars = told.map((match) => match?.[1]?.length ?? -1)
    expect(bars.length).toBeGreaterThan(2)
    expect(bars).toEqual(bars.toSorted((a, b) => a - b))
    expect(told.at(-1)?.slice(1)).toEqual(['#'.repeat(20), '', mebibytes, mebibytes])
    expect(shown.out).toBe(piped.out.replace('piped', 'shown'))
    expect([piped.err, json.err]).toEqual(['', ''])
    expect(JSON.parse(json.out)).toMatchObject({ file: archive('json') })
    // what goes wrong is told after the line, and nothing moves after it
    const again = await at(terminal, 'import', archive('shown'))
    expect(again.code).toBe(EXIT.input)
    const said = again.err.split(MOVED)
    expect(said.at(-2)).toMatch(/^Importing/)
    expect(said.at(-1)).toMatch(/^csb: That home is here already: home_/)
    const tree = await at({}, 'import', folder)
    expect([tree.code, tree.err]).toEqual([EXIT.input, expect.stringContaining('That is a folder.')])
  })
})
