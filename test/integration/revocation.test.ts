/** Revocation, replay and single use over real processes that are cut off, killed and started again. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createKeyPair, fromBase64Url, newId, random, systemClock, until, type Grant } from '@csb/core'
import { payloadDigest, signAuthority, type Rank } from '@csb/authority'
import { createClient, delegateTo, leaseFor, type Client } from '@csb/node'
import { createCluster, type Cluster, type Member } from '../../apps/harness/src/cluster.ts'
import { revocation } from '../../apps/harness/src/scenarios/revocation.ts'
import { isProved, play } from '../../apps/harness/src/stage.ts'

type Task = { readonly status: { readonly message?: { readonly parts: readonly { readonly text?: string }[] } } }

type Failed = {
  readonly status: { readonly state: string }
  readonly metadata: Readonly<Record<string, { readonly code?: string }>>
}

const AUTHORITY = 'urn:csb:ext:authority:v1'
const CLERK = join(import.meta.dirname, '../../apps/harness/agents/clerk.mjs')

test('L1.3 a revocation under partition takes effect within the bound, and is told afterwards', async () => {
  const lines: string[] = []
  const outcome = await play(revocation, {}, (line) => lines.push(line))
  expect({ proved: isProved(outcome), lines: isProved(outcome) ? [] : lines }).toEqual({ proved: true, lines: [] })
})

describe('what counts once counts once', () => {
  let cluster: Cluster
  let node: Member

  beforeAll(async () => {
    cluster = await createCluster()
    node = await cluster.add({ name: 'nas', ownerName: 'Ines' })
    const skills = [{ id: 'report.write', name: 'reports', description: 'writes reports' }]
    const agent = { id: 'clerk', name: 'clerk', description: 'writes reports', skills }
    await node.client.call('POST', '/v1/agents', { ...agent, command: [process.execPath, CLERK] })
  })

  afterAll(() => cluster.close())

  /** A message with authority signed by the node itself, as it would go to another one. */
  async function spoken(grant: Grant, level: Rank = 'execute') {
    const { seed } = JSON.parse(await readFile(join(node.directory, 'node.key'), 'utf8')) as { seed: string }
    const key = createKeyPair(fromBase64Url(seed) ?? random(32))
    const now = systemClock.now()
    const message = { messageId: newId('message', now), role: 'ROLE_USER', parts: [{ text: 'Write the report.' }] }
    const payload = payloadDigest({ method: 'SendMessage', params: { message } })
    const scope = grant.delegation.scope
    const init = { chain: [grant], payload, level, scope, audience: node.did, now, ttlMs: 300_000 }
    return { message: { ...message, metadata: { [AUTHORITY]: signAuthority(init, key) } } }
  }

  async function say(client: Client, params: object): Promise<string> {
    const { task } = await client.call<{ task: Task }>('POST', '/v1/agents/clerk/send', { params })
    return task.status.message?.parts.map(({ text }) => text).join('') ?? ''
  }

  /** A client with a token of its own, so that what it says is not the same task again. */
  async function another(): Promise<() => Client> {
    const asked = { name: 'another', lease: { actions: ['send' as const] }, ttlMs: 600_000 }
    const { token } = await leaseFor(await node.desk(), asked)
    return () => createClient(node.client.url, token)
  }

  const delegated = async (more: object = {}) =>
    (
      await delegateTo(await node.desk(), {
        audience: [node.did],
        scope: ['reports'],
        level: 'execute',
        ttlMs: 600_000,
        ...more,
      })
    ).grant

  const crash = async () => {
    await node.kill()
    await node.start()
    await until(() => node.client.call('GET', '/v1/status').catch(() => undefined), 30_000, 'it is up again')
  }

  test('attack 6: a message that was heard before a power cut is a replay after it', async () => {
    const params = await spoken(await delegated())
    const [one, other] = [await another(), await another()]
    expect(await say(one(), params)).toMatch(/^with authority from /)
    expect(await say(other(), params)).toBe('processed without authority: replayed')
    await crash()
    expect(await say(other(), { ...params })).toBe('processed without authority: replayed')
    expect(await say((await another())(), params)).toBe('processed without authority: replayed')
  })

  test('attack 7: a single delegation that was used before a power cut is used up after it', async () => {
    const grant = await delegated({ task: 'task_1' })
    const client = await another()
    expect(await say(client(), await spoken(grant))).toMatch(/^with authority from /)
    await crash()
    expect(await say(client(), await spoken(grant))).toBe('processed without authority: already_used')
  })

  test('attack 28: what a lease has used before a power cut is used after it', async () => {
    const asked = { name: 'reader', lease: { actions: ['list' as const], budget: { calls: 2 } }, ttlMs: 600_000 }
    const { token } = await leaseFor(await node.desk(), asked)
    const look = () => createClient(node.client.url, token).call('GET', '/v1/agents')
    await look()
    await look()
    await crash()
    await expect(look()).rejects.toMatchObject({ code: 'SCOPE_EXCEEDED', details: { field: 'budget.calls' } })
  })

  test('attack 28: what an agent said it used before a power cut is used after it, and never given back', async () => {
    const path = join(node.directory, 'counting.mjs')
    // says what it used and works on, until nobody hears it any more
    const says = `console.log('{"usage":{"tokens":60}}'); setInterval(() => console.log('{"status":"working"}'), 200)`
    await writeFile(path, says)
    await node.client.call('POST', '/v1/agents', {
      id: 'counting',
      name: 'Counting',
      description: 'counts',
      command: [process.execPath, path],
      skills: [{ id: 'count', name: 'count', description: 'counts' }],
    })
    const lease = { actions: ['send' as const], budget: { tokens: 100 } }
    const { token, hash } = await leaseFor(await node.desk(), { name: 'counter', lease, ttlMs: 600_000 })
    const used = async () => {
      const { items } = await node.client.call<{ items: { hash: string; used?: { tokens: number } }[] }>(
        'GET',
        '/v1/grants',
      )
      return items.find((item) => item.hash === hash)?.used?.tokens
    }
    const send = (configuration: object = { returnImmediately: true }) => {
      const message = { messageId: newId('message', systemClock.now()), role: 'ROLE_USER', parts: [{ text: 'count' }] }
      const params = { message, configuration }
      return createClient(node.client.url, token).call<{ task: Failed }>('POST', '/v1/agents/counting/send', { params })
    }
    await send()
    await until(async () => (await used()) === 60, 30_000, 'it has said so')
    await crash()
    expect(await used()).toBe(60)
    await send()
    // forty are left, and it used sixty
    await until(async () => (await used()) === 100, 30_000, 'all is used')
    await crash()
    expect(await used()).toBe(100)
    const { task } = await send({})
    expect([task.status.state, task.metadata['urn:csb:ext:error:v1']?.code]).toEqual([
      'TASK_STATE_FAILED',
      'SCOPE_EXCEEDED',
    ])
  })

  test('DEL-003.3.4 an entry that a person deletes from identity.json ends its grant', async () => {
    const grant = await delegated()
    const { id } = grant.delegation
    const isRevoked = async () => {
      const { items } = await node.client.call<{ items: { revoked: boolean; grant: Grant }[] }>('GET', '/v1/grants')
      return items.find((item) => item.grant.delegation.id === id)?.revoked
    }
    expect(await isRevoked()).toBe(false)
    await forgetDeclared(node, id)
    await until(isRevoked, 30_000, 'the running node has noticed')

    const second = (await delegated()).delegation.id
    await node.stop()
    await forgetDeclared(node, second)
    await node.start()
    const { items } = await node.client.call<{ items: { revoked: boolean; grant: Grant }[] }>('GET', '/v1/grants')
    expect(items.find((item) => item.grant.delegation.id === second)?.revoked).toBe(true)
  })
})

/** As a person does in an editor. */
async function forgetDeclared({ directory }: Member, id: string): Promise<void> {
  const path = join(directory, 'identity.json')
  const identity = JSON.parse(await readFile(path, 'utf8')) as { delegations: { delegation_id?: string }[] }
  const delegations = identity.delegations.filter((entry) => entry.delegation_id !== id)
  expect(delegations.length).toBeLessThan(identity.delegations.length)
  await writeFile(path, JSON.stringify({ ...identity, delegations }, null, 2))
}
