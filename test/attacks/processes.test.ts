/** Attacks 6, 7, 15, 21 and 35, as they would happen: real nodes, real networks, real kills, a real disk. */
import { execFile } from 'node:child_process'
import { mkdir, readFile, readdir, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EXTENSIONS, createKeyPair, newId, systemClock, until, type Grant } from '@csb/core'
import { attachAuthority, draftGrant, payloadDigest, signAuthority, signGrant, type GrantInit } from '@csb/authority'
import { delegateTo, readText, revokeGrant } from '@csb/node'
import { createCluster, type Cluster, type Member } from '../../apps/harness/src/cluster.ts'

const MAIN = join(import.meta.dirname, '../../apps/node/src/main.ts')
const WAIT_MS = 30_000
const HOUR = 3_600_000

type Task = {
  readonly id: string
  readonly status: { readonly state: string; readonly message?: { readonly parts: { readonly text?: string }[] } }
  readonly metadata?: Record<string, Record<string, unknown>>
}
type Entry = {
  readonly header: { readonly operation: string; readonly outcome: string; readonly ts: number; readonly run: string }
  readonly payload: { readonly effect: Record<string, unknown> } | null
}

/** Writes down that it runs and what for; at the word `hold` it goes on for as long as its node is there. */
const AGENT = `
const { appendFileSync } = require('node:fs')
let all = ''
process.stdin.on('data', (piece) => (all += piece)).on('end', () => {
  const said = JSON.parse(all).message.parts[0].text
  appendFileSync(process.argv[1], said + '\\n')
  const node = process.ppid
  if (said === 'hold') return void setInterval(() => process.ppid === node || process.exit(), 50)
  process.stdout.write(JSON.stringify({ result: { text: 'done' } }))
})`

let cluster: Cluster
beforeAll(async () => {
  cluster = await createCluster()
})
afterAll(() => cluster.close())

async function add(name: string, config: object, join_?: Member): Promise<Member> {
  const folder = join(cluster.directory, name)
  await mkdir(folder)
  await writeFile(join(folder, 'config.json'), JSON.stringify(config))
  return cluster.add({ name, ...(join_ === undefined ? {} : { join: join_ }) })
}

const trusting = (member: Member, did: string, name: string) =>
  member.client.call('POST', '/v1/trust', { did, name, ceiling: 'execute' })
const recordOf = async (member: Member) =>
  (await member.client.call<{ items: Entry[] }>('GET', '/v1/record?limit=100')).items
const wordsOf = ({ status }: Task) => status.message?.parts.map(({ text }) => text).join('') ?? ''
const markOf = ({ metadata }: Task) => metadata?.['urn:csb:ext:authority:v1']

async function attachAgent(member: Member): Promise<() => Promise<string[]>> {
  const file = join(member.directory, 'runs.txt')
  await writeFile(file, '')
  await member.client.call('POST', '/v1/agents', {
    id: 'clerk',
    name: 'Clerk',
    description: 'writes down that it runs',
    command: [process.execPath, '-e', AGENT, file],
    skills: [{ id: 'report', name: 'Report', description: 'reports' }],
    accept: 'anyone',
  })
  return async () => (await readFile(file, 'utf8')).split('\n').filter((line) => line !== '')
}

describe('a message that may be done once', () => {
  const [origin, holder] = [createKeyPair(), createKeyPair()]
  let node: Member
  let runs: () => Promise<string[]>

  beforeAll(async () => {
    node = await add('once', { agents: { runs: 1 } })
    await trusting(node, origin.did, 'Ines')
    runs = await attachAgent(node)
  })

  const grantFor = (extra: Partial<GrantInit> = {}): Grant =>
    signGrant(
      draftGrant({
        type: 'scoped',
        from: { name: 'whoever', did: origin.did },
        to: { name: 'holder', did: holder.did },
        audience: [node.did],
        scope: ['reports'],
        level: 'request',
        now: systemClock.now(),
        ttlMs: HOUR,
        statusKey: holder.did,
        ...extra,
      }),
      origin,
    )

  /** Params with authority in them, signed for exactly these. */
  function signed(text: string, grant: Grant, configuration: object = {}) {
    const message = { messageId: newId('message', systemClock.now()), role: 'ROLE_USER', parts: [{ text }] }
    const body = { jsonrpc: '2.0' as const, id: 'r', method: 'SendMessage', params: { message, configuration } }
    const authority = signAuthority(
      {
        chain: [grant],
        payload: payloadDigest(body),
        level: 'request',
        scope: ['reports'],
        audience: node.did,
        now: systemClock.now(),
        ttlMs: 300_000,
      },
      holder,
    )
    return { params: attachAuthority(body, authority).params ?? {}, authority }
  }

  const send = async (params: object): Promise<Task> =>
    (await node.client.call<{ task: Task }>('POST', '/v1/agents/clerk/send', { params })).task
  /** The same message again is the same task, as it stands now. */
  const stateOf = async (params: object) => (await send(params)).status.state

  test('attack 6: replayed after kill -9 it is the same task, and its authority serves no other', async () => {
    const { params, authority } = signed('once', grantFor())
    const first = await send(params)
    expect(markOf(first)).toMatchObject({ accepted: true })
    await node.kill()
    await node.start()
    expect((await send(params)).id).toBe(first.id)
    const message = { messageId: newId('message', systemClock.now()), role: 'ROLE_USER', parts: [{ text: 'other' }] }
    const turned = await send({ message: { ...message, metadata: { [EXTENSIONS.authority]: authority } } })
    expect(markOf(turned)).toMatchObject({ accepted: false, reason: 'replayed' })
    expect((await runs()).filter((line) => line === 'once')).toHaveLength(1)
  })

  test('attack 7: a single grant is used up once by two at the same moment', async () => {
    const grant = grantFor({ type: 'single', task: 'task_1' })
    const twins = await Promise.all([send(signed('twin a', grant).params), send(signed('twin b', grant).params)])
    const marks = twins.map(markOf)
    expect(marks.filter((mark) => mark?.['accepted'] === true)).toHaveLength(1)
    expect(marks.find((mark) => mark?.['accepted'] === false)).toMatchObject({ reason: 'already_used' })
  })

  test('attack 7: killed after the grant was used and before its work began, it is not done later, and the record says so', async () => {
    const grant = grantFor({ type: 'single', task: 'task_2' })
    const later = { returnImmediately: true }
    // the only turn is taken, so the next one waits with its grant used up
    const holding = signed('hold', grantFor(), later).params
    await send(holding)
    await until(async () => (await runs()).includes('hold') || undefined, WAIT_MS, 'the agent holds the turn')
    const waiting = signed('paid', grant, later).params
    const paid = await send(waiting)
    expect(markOf(paid)).toMatchObject({ accepted: true })
    expect(await stateOf(waiting)).toBe('TASK_STATE_SUBMITTED')
    await node.kill()
    await node.start()
    expect([await stateOf(holding), await stateOf(waiting)]).toEqual(['TASK_STATE_FAILED', 'TASK_STATE_FAILED'])
    expect(markOf(await send(signed('paid again', grant).params))).toMatchObject({
      accepted: false,
      reason: 'already_used',
    })
    expect(await runs()).not.toContain('paid')
    const told = (await recordOf(node)).filter(({ payload }) => payload?.effect['task'] === paid.id)
    expect(told.find(({ header }) => header.outcome === 'failed')?.payload?.effect).toMatchObject({ interrupted: true })
    expect(told.map(({ payload }) => payload?.effect['authority'])).toContainEqual(
      expect.objectContaining({ accepted: true, level: 'request' }),
    )
  })

  test('attack 7: for one node it is worth nothing at another', async () => {
    const grant = grantFor({ type: 'single', task: 'task_3', audience: [holder.did] })
    expect(markOf(await send(signed('elsewhere', grant).params))).toMatchObject({ reason: 'wrong_audience' })
  })

  test('attack 21: a body that says a thing twice is refused at the door', async () => {
    const grant = JSON.stringify(grantFor({ level: 'inform' }))
    const url = new URL(JSON.parse(await readFile(join(node.directory, 'running.json'), 'utf8')).url as string)
    const token = (await readText(node.directory, 'token'))?.trim() ?? ''
    const post = async (path: string, body: string) => {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
      const answer = await fetch(new URL(path, url), { method: 'POST', headers, body })
      return { status: answer.status, code: ((await answer.json()) as { code?: string }).code }
    }
    expect((await post('/v1/grants', `{"grant":${grant}}`)).status).toBe(201)
    for (const body of [
      `{"grant":${grant.replace('"level":"inform"', '"level":"inform","level":"execute"')}}`,
      `{"grant":${grant},"grant":${grant}}`,
      `{"grant":${grant.replace('"v":1', '"__proto__":{},"v":1')}}`,
      `{"grant":${'['.repeat(50_000)}`,
    ])
      expect(await post('/v1/grants', body)).toEqual({ status: 400, code: 'MALFORMED' })
  })
})

test('attack 15: revoked, it is dead within a second at every connected peer, and the next message says so', async () => {
  const nas = await add('nas', {})
  const [speaker, listener] = [await add('speaker', {}), await add('listener', {})]
  for (const member of [speaker, listener]) await trusting(member, nas.owner.did, 'Ines')
  await attachAgent(listener)
  const toldAt = async (member: Member, operation: string, hash: string) =>
    (await recordOf(member)).find(
      ({ header, payload }) => header.operation === operation && payload?.effect['revoked'] === hash,
    )?.header.ts

  /** Delegate, speak, revoke, speak. @returns ms after which each peer had heard */
  async function revoked(): Promise<readonly number[]> {
    const desk = { ...(await nas.desk()), now: systemClock.now() }
    const { grant, hash } = await delegateTo(desk, {
      to: { name: 'speaker', did: speaker.did },
      audience: [listener.did],
      scope: ['reports'],
      level: 'execute',
      ttlMs: HOUR,
    })
    await nas.client.call('POST', '/v1/grants/send', { did: speaker.did, chain: [grant] })
    const speak = async () => {
      const message = { messageId: newId('message', systemClock.now()), role: 'ROLE_USER', parts: [{ text: 'hello' }] }
      const sent = { did: listener.did, params: { message }, delegation: hash, level: 'execute' }
      return wordsOf((await speaker.client.call<{ task: Task }>('POST', '/v1/agents/clerk/send', sent)).task)
    }
    expect(await speak()).toBe('with authority from Ines')
    const { reached, unreached } = await revokeGrant({ ...desk, now: systemClock.now() }, hash, [])
    expect({ reached: reached.map(({ did }) => did), unreached }).toEqual({ reached: [speaker.did], unreached: [] })
    const begun = (await toldAt(nas, 'authority.revoke', hash)) ?? 0
    // the nas has never met the listener: who spoke to it passes it on
    const took: number[] = []
    for (const member of [speaker, listener]) {
      const heard = () => toldAt(member, 'authority.receive', hash)
      took.push((await until(heard, WAIT_MS, `${member.name} has heard`)) - begun)
    }
    expect(await speak()).toBe('processed without authority: revoked')
    return took
  }

  // others work on this machine as well: the best of some goes is what it takes
  const goes = [await revoked(), await revoked(), await revoked()]
  for (const [at, { name }] of [speaker, listener].entries())
    expect(Math.min(...goes.map((took) => took[at] ?? Infinity)), name).toBeLessThanOrEqual(1000)
})

describe('attack 35: the end of the log is cut off', () => {
  type State = {
    size: number
    settled: { size: number } | null
    held: { reason: string; witness: string } | null
  }
  const stateOf = (member: Member) => member.client.call<State>('GET', '/v1/record/checkpoint')
  const write = (member: Member, content: string) =>
    member.client.call('POST', '/v1/memory', { content, type: 'discovery', level: 'hot' })

  /** What a crash, or somebody with the disk in hand, does to the write-ahead file: its last part is gone. */
  async function cutEnd(member: Member): Promise<void> {
    const folder = join(member.directory, 'db')
    const logs = (await readdir(folder)).filter((name) => /^\d+\.log$/.test(name)).sort()
    const file = join(folder, logs.at(-1) ?? '')
    const { size } = await stat(file)
    expect(size).toBeGreaterThan(10_000)
    await truncate(file, Math.floor(size * 0.7))
  }

  async function verified(member: Member): Promise<string> {
    const args = ['--conditions=csb-source', MAIN, 'record', 'verify', '--data', member.directory]
    return (await promisify(execFile)(process.execPath, args)).stdout
  }

  test('attack 35: with a witness the node refuses to write and says who knows more', async () => {
    const config = { witness: { interval_ms: 300 } }
    const one = await add('one', config)
    const two = await add('two', config, one)
    await trusting(one, two.did, 'two')
    await trusting(two, one.did, 'one')
    for (let n = 0; n < 20; n++) await write(one, `note ${n}`)
    const { size } = await stateOf(one)
    await until(async () => ((await stateOf(one)).settled?.size ?? 0) >= size, WAIT_MS, 'it is settled', 100)
    await one.kill()
    await cutEnd(one)
    await one.start()
    const held = await until(async () => (await stateOf(one)).held ?? undefined, WAIT_MS, 'it is held', 100)
    expect(held).toMatchObject({ reason: 'shorter', witness: two.did })
    expect((await stateOf(one)).size).toBeLessThan(size)
    await expect(write(one, 'more')).rejects.toMatchObject({ code: 'RECORD_HELD', details: { reason: 'shorter' } })
    expect(await one.log()).toContain('the record is held: a witness knows more of it')
    await Promise.all([one.stop(), two.stop()])
  })

  test('attack 35: without one the cut can not be seen, and the node says that nobody vouches for it', async () => {
    const alone = await add('alone', {})
    for (let n = 0; n < 20; n++) await write(alone, `note ${n}`)
    const { size } = await stateOf(alone)
    await alone.kill()
    await cutEnd(alone)
    await alone.start()
    const after = await stateOf(alone)
    expect(after.size).toBeLessThan(size)
    expect(after).toMatchObject({ settled: null, held: null })
    expect(await verified(alone)).toContain('unwitnessed')
  })
})
