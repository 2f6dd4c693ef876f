/** The gate at a running node, through the real command and the HTTP door. */
import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createNodes, type LocalNode } from '../conformance/nodes.ts'

type Shown = { card: { id: string; diff: string }; digest: string; state: string; changes: { path: string }[] }
type Failed = { stdout: string; stderr: string; code: number }

const MAIN = join(import.meta.dirname, '../../apps/node/src/main.ts')
const nodes = createNodes()
const folders: string[] = []
let node: LocalNode

beforeAll(async () => {
  node = await nodes.spawn({ name: 'gate' })
})

afterAll(async () => {
  await nodes.close()
  for (const folder of folders) await rm(folder, { recursive: true, force: true })
})

/** A note whose label somebody wants lowered, and the card of it. */
async function waiting(content: string): Promise<Shown & { id: string }> {
  const note = await node.door.remember(content)
  const refused = await failed('label', 'note', note.id, 'public')
  expect(refused.code).toBe(3)
  const { error } = JSON.parse(refused.stdout) as { error: { code: string; details: { card: string } } }
  expect(error.code).toBe('GATE_REQUIRED')
  const shown = JSON.parse(await node.command('gate', 'show', error.details.card)) as Shown
  return { ...shown, id: note.id }
}

const failed = (...args: string[]): Promise<Failed> =>
  node.command(...args).then(
    () => expect.unreachable('it was done'),
    (error: unknown) => error as Failed,
  )

test('L1.7 a person approves with the command, and the label is lowered', async () => {
  const { card, digest, id } = await waiting('一 first')
  expect((await node.door.note(id)).body.label).toBe('private:owner')
  const done = JSON.parse(await node.command('gate', 'approve', card.id, '--yes', '--digest', digest)) as {
    outcome: string
    commit: string
  }
  expect(done.outcome).toBe('approved')
  expect((await node.door.note(id)).body.label).toBe('public:owner')
  const explained = (await node.door.explain(done.commit)) as unknown as { approval: { card: string; diff: string } }
  expect(explained.approval).toMatchObject({ card: card.id, diff: card.diff })
})

test('nothing is approved unasked: no terminal, no digest, another digest', async () => {
  const { card, digest, id } = await waiting('二 second')
  const other = `${digest.slice(0, -1)}${digest.endsWith('0') ? '1' : '0'}`
  for (const args of [[], ['--yes'], ['--digest', digest], ['--yes', '--digest', other]]) {
    const { code } = await failed('gate', 'approve', card.id, ...args)
    expect([2, 3]).toContain(code)
  }
  const plain = await promisify(execFile)(
    process.execPath,
    ['--conditions=csb-source', MAIN, 'gate', 'approve', card.id, '--data', node.directory],
    {},
  ).catch((error: unknown) => error as Failed)
  expect(plain).toMatchObject({ code: 2 })
  expect(plain.stderr).toContain(digest)
  expect(plain.stderr).toContain('There is no terminal to ask at')
  expect(plain.stderr).toContain(`csb gate approve ${card.id} --yes --digest DIGEST`)
  expect((await node.door.note(id)).body.label).toBe('private:owner')
})

test('attack 33: another owner, the key of the node, a bare yes over HTTP', async () => {
  const { card, digest, id } = await waiting('三 third')
  const stranger = await mkdtemp(join(tmpdir(), 'csb-stranger-'))
  folders.push(stranger)
  const run = (...args: string[]) =>
    promisify(execFile)(process.execPath, ['--conditions=csb-source', MAIN, ...args, '--json'], {})
  for (const name of ['identity.json', 'owner.token', 'running.json'])
    await cp(join(node.directory, name), join(stranger, name))
  const key = JSON.parse(await readFile(join(node.directory, 'node.key'), 'utf8')) as { did: string; seed: string }
  await writeFile(join(stranger, 'owner.json'), JSON.stringify({ v: 1, name: 'Ada', did: key.did, seed: key.seed }))
  const attempt = await run('gate', 'approve', card.id, '--yes', '--digest', digest, '--data', stranger).catch(
    (error: unknown) => error as Failed,
  )
  expect(attempt).toMatchObject({ code: 3 })
  expect(attempt.stdout).toContain('holder_mismatch')
  for (const body of [{ approved: true }, { gate: { decision: 'approve' } }, {}]) {
    const answer = await node.door.call('POST', `/v1/gate/${card.id}/approve`, body)
    expect(answer.status).toBeGreaterThanOrEqual(400)
  }
  expect((await node.door.note(id)).body.label).toBe('private:owner')
  const listed = JSON.parse(await node.command('gate', 'list')) as { items: Shown[] }
  expect(listed.items.map((item) => item.card.id)).toContain(card.id)
})

test('a rejection ends the card', async () => {
  const { card, digest, id } = await waiting('四 fourth')
  const done = JSON.parse(await node.command('gate', 'reject', card.id, '--yes', '--digest', digest)) as object
  expect(done).toEqual({ card: card.id, outcome: 'rejected' })
  expect((await failed('gate', 'approve', card.id, '--yes', '--digest', digest)).stdout).toContain('already_used')
  expect((await node.door.note(id)).body.label).toBe('private:owner')
})

describe('csb forget', () => {
  const noteStatus = async (id: string) => (await node.door.note(id)).status
  const cards = async () => (JSON.parse(await node.command('gate', 'list')) as { items: Shown[] }).items

  test('L1.7 asks and approves in one go, several notes on one card, and says what it did', async () => {
    const ids = [(await node.door.remember('五 one')).id, (await node.door.remember('五 two')).id]
    const done = JSON.parse(await node.command('forget', ...ids, '--reason', 'asked to', '--yes')) as {
      card: string
      forgotten: string[]
      report: { id: string; records: number; remains: string[]; not_covered: { kind: string }[] }[]
    }
    expect(done.forgotten.toSorted()).toEqual(ids.toSorted())
    expect(done.report.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
    for (const { records, remains, not_covered: kept } of done.report) {
      expect(records).toBeGreaterThan(0)
      expect(remains).toEqual([])
      expect(kept.map(({ kind }) => kind)).toContain('backups')
    }
    for (const id of ids) expect(await noteStatus(id)).toBe(404)
    const shown = JSON.parse(await node.command('gate', 'show', done.card)) as Shown
    expect(shown.state).toBe('approved')
    expect((await node.door.verifyRecord()).status).toBe(200)
    expect((await failed('forget', ids[0] ?? '', '--yes')).code).toBe(4)
  })

  test('L1.7 forgets nothing unasked: no terminal, --json alone, the digest of another card, a node without the key', async () => {
    const { id } = await node.door.remember('六 six')
    expect((await failed('forget', id)).code).toBe(2)
    const plain = await promisify(execFile)(
      process.execPath,
      ['--conditions=csb-source', MAIN, 'forget', id, '--data', node.directory],
      {},
    ).catch((error: unknown) => error as Failed)
    expect(plain).toMatchObject({ code: 2 })
    expect(plain.stderr).toContain('can not be undone')
    expect(plain.stderr).toContain('| 六 six')
    expect(plain.stderr).toContain('There is no terminal to ask at')
    const other = `sha256:${'0'.repeat(64)}`
    expect((await failed('forget', id, '--yes', '--digest', other)).code).toBe(3)
    const asked = await node.door.askToForget(id)
    expect(asked).toMatchObject({ status: 403, body: { code: 'GATE_REQUIRED' } })
    const bare = await node.door.call('POST', `/v1/gate/${asked.body.details?.card}/approve`, { approved: true })
    expect(bare.status).toBe(422)
    expect(await noteStatus(id)).toBe(200)
    // asked for again and again: one card
    expect((await cards()).filter(({ card }) => card.id === asked.body.details?.card)).toHaveLength(1)
  })
})
