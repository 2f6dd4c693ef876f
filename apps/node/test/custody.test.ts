/** Whether the owner's key, or what opens it, is in the process of the node: looked for where the system shows it. */
import { mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { exportSeed } from '@csb/core'
import { openOwner } from '@csb/node'
import { csb, csbStart, type Running } from './command.ts'

const PASSPHRASE = 'a passphrase that stands out'
const NEXT = 'another one, as remarkable'
const env = { CSB_PASSPHRASE: PASSPHRASE, CSB_NEW_PASSPHRASE: NEXT }

let folder: string
let nas: Running
const data = () => join(folder, 'nas')

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'csb-custody-'))
  nas = await csbStart(['--init', '--name', 'nas', '--port', '0', '--data', data()], { env })
})

afterAll(async () => {
  await nas.stop()
  await rm(folder, { recursive: true, force: true })
})

/** Elsewhere nobody is shown what is in a process. */
const isHidden = process.platform !== 'linux'

/** Everything that the process may write to, as bytes. */
async function memoryOf(pid: number): Promise<Buffer> {
  const maps = await readFile(`/proc/${pid}/maps`, 'utf8')
  const file = await open(`/proc/${pid}/mem`, 'r')
  const parts: Buffer[] = []
  for (const line of maps.split('\n')) {
    const [, from = '', to = '', flags = ''] = /^([0-9a-f]+)-([0-9a-f]+) (\S+)/.exec(line) ?? []
    if (!flags.startsWith('rw')) continue
    const [begin, end] = [Number.parseInt(from, 16), Number.parseInt(to, 16)]
    const part = Buffer.alloc(Math.min(end - begin, 256 * 1024 * 1024))
    // a part may be gone by now, or be reserved only
    const { bytesRead } = await file.read(part, 0, part.length, begin).catch(() => ({ bytesRead: 0 }))
    parts.push(part.subarray(0, bytesRead))
  }
  await file.close()
  return Buffer.concat(parts)
}

/** Ways in which a seed or a word may lie there. */
const spellings = (bytes: Uint8Array): readonly Buffer[] => {
  const raw = Buffer.from(bytes)
  return [
    raw,
    Buffer.from(raw.toString('base64url')),
    Buffer.from(raw.toString('hex')),
    Buffer.from(raw.toString('utf16le')),
  ]
}

test.skipIf(isHidden)(
  'L1.7 attack 33: the process of the node has neither the key of its owner nor the passphrase, not even of its making',
  async () => {
    const pid = nas.ready['pid'] as number
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1')
    expect(environment).toContain('PATH=')
    expect(environment).not.toContain('PASSPHRASE')
    const owner = await openOwner(data(), PASSPHRASE)
    // it works with what the owner signed, and signs by itself
    const run = (args: readonly string[]) => csb([...args, '--data', data()], { env })
    for (const args of [
      ['delegate', '--audience', '*', '--level', 'request'],
      ['lease', '--for', 'reader'],
      ['note', 'add', 'tea'],
    ])
      expect((await run(args)).err).toBe('')
    const memory = await memoryOf(pid)
    const has = (bytes: Uint8Array) => spellings(bytes).some((spelled) => memory.includes(spelled))
    const node = JSON.parse(await readFile(join(data(), 'node.key'), 'utf8')) as { seed: string }
    // what it does have is found this way
    expect(has(Buffer.from(node.seed, 'base64url'))).toBe(true)
    expect(memory.includes(owner.did)).toBe(true)
    expect(has(exportSeed(owner))).toBe(false)
    expect(memory.includes(PASSPHRASE)).toBe(false)
    expect(memory.includes(NEXT)).toBe(false)
  },
)

test.skipIf(isHidden)('a change of the key leaves neither of the two keys in the process of the node', async () => {
  const before = await openOwner(data(), PASSPHRASE)
  expect((await csb(['key', 'rotate', '--data', data()], { env })).err).toBe('')
  const next = await openOwner(data(), NEXT)
  expect(next.did).not.toBe(before.did)
  const memory = await memoryOf(nas.ready['pid'] as number)
  expect(memory.includes(next.did)).toBe(true)
  for (const key of [before, next]) expect(spellings(exportSeed(key)).some((one) => memory.includes(one))).toBe(false)
})
