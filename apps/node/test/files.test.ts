/** csb files, command by command, and that REST has the same. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EXIT } from '@csb/core'
import { connect, type Client } from '@csb/node'
import { csb, csbStart, type Running } from './command.ts'

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
    const { code } = await csb(['files', 'import', archive, '--data', birch])
    expect(code).toBe(EXIT.ok)
    await other.stop()
  })
})
