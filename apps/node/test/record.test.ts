/** The record through the command: proofs and exports that hold without a node, and explain from a bare clone. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EXIT } from '@csb/core'
import { csb, csbStart, type Running } from './command.ts'

const run = promisify(execFile)
let parent: string
let running: Running
let did: string

const node = (...words: string[]) => csb([...words, '--data', join(parent, 'node')])
const json = async (...words: string[]): Promise<unknown> => JSON.parse((await node(...words, '--json')).out)

beforeAll(async () => {
  parent = await mkdtemp(join(tmpdir(), 'csb-record-'))
  await node('init', '--unsealed')
  running = await csbStart(['--data', join(parent, 'node'), '--port', '0'])
  did = String(running.ready['did'])
  for (const word of ['one', 'two', 'three']) await node('note', 'add', word)
})
afterAll(async () => {
  await running.stop()
  await rm(parent, { recursive: true, force: true })
})

test('L1.6 a proof that was written to a file is verified without any node, and of this log only', async () => {
  const file = join(parent, 'entry.tlog-proof')
  expect((await node('record', 'prove', '2', '--out', file)).code).toBe(EXIT.ok)
  const elsewhere = ['record', 'verify', '--data', join(parent, 'nowhere')]
  const good = await csb([...elsewhere, '--proof', file, '--log', did])
  expect(good).toMatchObject({ code: EXIT.ok })
  expect(good.out).toMatch(new RegExp(`entry +2 of \\d+: memory.create, done[^]*${did}[^]*unwitnessed`))
  expect((await csb([...elsewhere, '--proof', file, '--log', 'did:key:zOther'])).code).toBe(EXIT.refused)
  const text = await readFile(file, 'utf8')
  await writeFile(file, text.replace('index 2', 'index 1'))
  expect((await csb([...elsewhere, '--proof', file])).code).not.toBe(EXIT.ok)
  expect((await csb([...elsewhere, '--proof', join(parent, 'none')])).code).toBe(EXIT.missing)
})

test('L1.6 an export has every entry in order, and the checkpoint last', async () => {
  const { record } = (await json('status')) as { record: { size: number } }
  const lines = (await node('record', 'export')).out.trimEnd().split('\n')
  const items = lines.map((line) => JSON.parse(line) as { header?: { seq: number }; checkpoint?: string | null })
  const seqs = items.slice(0, -1).map(({ header }) => header?.seq)
  expect(seqs.length).toBeLessThanOrEqual(record.size)
  expect(seqs).toEqual(seqs.map((_, at) => at))
  expect(items.at(-1)).toHaveProperty('checkpoint')
  const file = join(parent, 'record.jsonl')
  const told = (await json('record', 'export', '--out', file)) as { file: string; entries: number }
  const written = (await readFile(file, 'utf8')).trimEnd().split('\n')
  expect(told).toEqual({ file, entries: written.length - 1 })
  // the node makes a checkpoint whenever that is due, and an export goes as far as the newest one
  expect(written.slice(0, seqs.length)).toEqual(lines.slice(0, -1))
})

test('L1.5 in a clone explain takes what git takes, and an unknown commit is explained by the run in its trailer', async () => {
  const [entry] = ((await json('record', 'tail', '--limit', '1')) as { items: { payload: { commit: string } }[] }).items
  const commit = entry?.payload.commit ?? ''
  const known = (await json('explain', commit)) as { run: string; seq: number }
  const clone = join(parent, 'clone')
  await mkdir(clone)
  const git = (...words: string[]) =>
    run('git', ['-c', 'user.name=x', '-c', 'user.email=x@y', ...words], { cwd: clone })
  await git('init', '-q')
  const message = `the same work in another history\n\nCsb-Run: ${known.run}\n`
  await git('commit', '-q', '--allow-empty', '-m', message)
  const ran = await csb(['explain', 'HEAD', '--data', join(parent, 'node')], { cwd: clone })
  expect(ran).toMatchObject({ code: EXIT.ok, err: expect.stringContaining('knows the run') })
  expect(ran.out).toContain(known.run)
  expect(ran.out).toContain(`entry ${known.seq} of`)
  // as git log shows it
  const oid = (await git('rev-parse', 'HEAD')).stdout.trim()
  const byId = await csb(['explain', oid, '--data', join(parent, 'node')], { cwd: clone })
  expect(byId).toMatchObject({ code: EXIT.ok, out: ran.out })
  await git('commit', '-q', '--allow-empty', '-m', 'no trailer')
  expect((await csb(['explain', 'HEAD', '--data', join(parent, 'node')], { cwd: clone })).code).toBe(EXIT.missing)
})

test('L1.5 explain takes the id of a run, and says so where a commit is not known', async () => {
  const { commit } = (await json('note', 'add', 'made in a run')) as { commit: string }
  const { run: id, ...known } = (await json('explain', commit)) as { run: string; seq: number }
  expect(await json('explain', id)).toMatchObject({ commit, run: id, seq: known.seq })
  const byRun = await node('explain', id)
  expect(byRun).toMatchObject({ code: EXIT.ok, err: '' })
  expect(byRun.out).toMatch(new RegExp(`^commit +${commit}$`, 'm'))
  for (const unknown of ['0123abcd'.repeat(8), 'run_1800000000000_aaaaaaaaaa'])
    expect(await node('explain', unknown)).toMatchObject({
      code: EXIT.missing,
      err: expect.stringContaining('csb explain RUN'),
    })
})

test('L1.5 explain says what was read and under which label, in words and as JSON', async () => {
  const { id } = (await json('note', 'add', 'read before it is put away')) as { id: string }
  const { commit } = (await json('note', 'rm', id)) as { commit: string }
  const told = (await json('explain', commit)) as { readCount: number; reads: { path: string; label: object }[] }
  expect(told).toMatchObject({
    readCount: 1,
    reads: [{ path: expect.stringContaining(id), label: { level: 'private', integrity: 'owner' } }],
  })
  const words = await node('explain', commit)
  expect(words.out).toMatch(new RegExp(`^read +notes/\\S*${id}.md  private:owner$`, 'm'))
})

test('L1.6 status says whether anybody vouches, and resume does nothing where nothing is held', async () => {
  expect((await node('status')).out).toContain('unwitnessed')
  expect((await node('record', 'witnessed')).out).toContain('vouches for no record')
  expect((await node('record', 'resume')).code).toBe(EXIT.input)
  expect((await node('record', 'resume', '--after-restore')).code).toBe(EXIT.unreachable)
})
