import { describe, expect, test } from 'vitest'
import { EXTENSIONS, createKeyPair, type Grant, type Lease } from '@csb/core'
import { draftGrant, signGrant, grantHash, signRevocation, trust } from '@csb/authority'
import { getRef, readCommit } from '@csb/files'
import type { MessagePort } from '../src/index.ts'
import { NOW, attach, codeOf, createHouse, messageOf, visitor, wordsOf, type House, type Task } from './house.ts'
import { createNetwork, type Network } from './network.ts'

const remember = (house: House, content: string, label: string) =>
  house
    .owned<{ id: string }>('memory.create', { entry: { content, level: 'warm', type: 'lesson' }, label })
    .then(({ id }) => id)

const treeOf = (house: House, home: string): string =>
  readCommit(house.store.view(), home, getRef(house.store.view(), home, 'memory')?.commit ?? '').tree

/** Let another node see the home's notes up to a level. */
const share = (house: House, other: House, lease: Partial<Lease> = {}): Promise<Grant> =>
  house.grant({
    to: { name: other.name, did: other.key.did },
    lease: {
      type: 'urn:csb:lease:1',
      locations: [`nas://*/${house.home}`],
      actions: ['list', 'read'],
      paths: ['/'],
      branches: ['memory'],
      labels_max: 'trusted',
      ...lease,
    },
  })

const trusting = (house: House, other: House, clearance = { level: 'sealed' as const, tags: ['*'] }) =>
  house.store.transact((tx) => trust(tx, { did: other.owner.did, name: other.name, ceiling: 'override', clearance }))

/** Two houses of different owners; the friend lists the owner of the nas. */
async function friends(): Promise<{ nas: House; friend: House; network: Network }> {
  const network = createNetwork()
  const nas = await createHouse({ name: 'nas', network })
  const friend = await createHouse({ name: 'friend', network })
  await trusting(friend, nas)
  return { nas, friend, network }
}

type Report = { readonly sent: number; readonly received: number; readonly equal: boolean; readonly withdrawn: number }
const syncing = (from: House, to: House, home = from.home) => from.owned<Report>('sync.run', { did: to.key.did, home })

describe('sync between nodes', () => {
  test('L4.1 two nodes of one owner end with the same tree, whoever began', async () => {
    const network = createNetwork()
    const nas = await createHouse({ name: 'nas', network })
    const laptop = await createHouse({ name: 'laptop', network, owner: nas.owner, home: nas.home })
    await remember(nas, 'private', 'private:owner')
    await remember(laptop, 'sealed', 'sealed:owner:health')
    await expect(syncing(nas, laptop)).resolves.toMatchObject({ sent: 1, received: 1, equal: true })
    await remember(laptop, 'another', 'public:owner')
    await expect(syncing(laptop, nas)).resolves.toMatchObject({ sent: 1, equal: true })
    expect(treeOf(nas, nas.home)).toBe(treeOf(laptop, nas.home))
    for (const house of [nas, laptop]) await expect(house.owned('record.verify')).resolves.toMatchObject({ ok: true })
  })

  test('L4.2 a friend gets what it may see, and not a word of the rest goes over the line', async () => {
    const { nas, friend, network } = await friends()
    await share(nas, friend)
    const shown = await remember(nas, 'for friends', 'trusted:owner')
    const hidden = await remember(nas, 'Zq9 secret', 'private:owner')
    await syncing(nas, friend)
    await expect(friend.owned('memory.list', { home: nas.home })).resolves.toMatchObject({ items: [{ id: shown }] })
    const heard = network.heard
      .filter(({ from }) => from === nas.key.did)
      .map(({ text }) => text)
      .join('\n')
    expect(heard).toContain('for friends')
    for (const word of ['Zq9 secret', hidden, 'private:owner']) expect(heard).not.toContain(word)
  })

  test("L4.2 a bound of the node's owner narrows what a grant shows, and never widens it", async () => {
    const { nas, friend } = await friends()
    await share(nas, friend, { labels_max: 'public', label_tags: ['health'] })
    await remember(nas, 'public', 'public:owner')
    await remember(nas, 'trusted', 'trusted:owner')
    await remember(nas, 'health', 'public:owner:health')
    await nas.store.transact((tx) =>
      trust(tx, { did: friend.key.did, name: 'friend', ceiling: 'request', clearance: { level: 'sealed', tags: [] } }),
    )
    await syncing(nas, friend)
    const { items } = await friend.owned<{ items: { content: string }[] }>('memory.list', { home: nas.home })
    expect(items.map(({ content }) => content)).toEqual(['public'])
  })

  test('L4.2 a stranger learns nothing: not the notes, not whose home it is, not by what right it is kept', async () => {
    const { nas, network } = await friends()
    await remember(nas, 'public', 'public:owner')
    const stranger = await createHouse({ name: 'stranger', network, home: nas.home })
    expect(await codeOf(syncing(stranger, nas, nas.home))).toBe('GRANT_INVALID')
    const heard = network.heard.filter(({ from }) => from === nas.key.did)
    expect(heard).toEqual([])
    // the same without any grant to show
    const told: unknown[] = []
    const port: MessagePort = {
      send: async (message) => void told.push(message),
      receive: async () => ({ home: { id: nas.home }, credential: null }),
      close: async () => undefined,
      abort: () => undefined,
    }
    const asking = nas.service.attend(visitor(createKeyPair().did), 'sync.serve', { home: nas.home }, port)
    expect(await codeOf(asking)).toBe('CLEARANCE')
    expect(told).toEqual([])
  })

  test('L1.1 a home is taken in only from a node that its owner lets write, and of an owner that is listed', async () => {
    const network = createNetwork()
    const nas = await createHouse({ name: 'nas', network })
    const friend = await createHouse({ name: 'friend', network })
    expect(await codeOf(syncing(nas, friend))).toBe('DENIED')
    await trusting(friend, nas)
    // a home of that owner, brought by somebody it gave no right
    const home = { id: 'home_bbbbbbbbbbbbbbbbbbbbbbbbbb', owner: nas.owner.did, origin: nas.key.did, hash: 'sha256' }
    const said: unknown[] = [{ home, credential: null }]
    const port: MessagePort = {
      send: async () => undefined,
      receive: async () => said.shift(),
      close: async () => undefined,
      abort: () => undefined,
    }
    const thief = visitor(createKeyPair().did)
    expect(await codeOf(friend.service.attend(thief, 'sync.serve', { home: home.id }, port))).toBe('CLEARANCE')
    expect(JSON.stringify(await friend.owned('node.status'))).not.toContain(home.id)
  })

  test('L4.3 a forgotten note goes at every peer and does not come back', async () => {
    const { nas, friend } = await friends()
    await share(nas, friend)
    const id = await remember(nas, 'for friends', 'trusted:owner')
    await syncing(nas, friend)
    await nas.forget([id])
    await syncing(friend, nas, nas.home)
    expect(await codeOf(friend.owned('memory.get', { home: nas.home, id }))).toBe('NOT_FOUND')
    // it was approved where it began: nobody is asked again
    expect(await friend.owned('gate.list', { all: true })).toEqual({ items: [] })
    await syncing(friend, nas, nas.home)
    expect(await codeOf(nas.owned('memory.get', { id }))).toBe('NOT_FOUND')
  })

  test('L1.3 a revoked peer gets nothing more', async () => {
    const { nas, friend } = await friends()
    const grant = await share(nas, friend)
    await remember(nas, 'one', 'trusted:owner')
    await syncing(nas, friend)
    await nas.owned('authority.revoke', signRevocation({ target: grantHash(grant), now: NOW }, nas.owner))
    await remember(nas, 'two', 'trusted:owner')
    expect(await codeOf(syncing(nas, friend))).toBe('CLEARANCE')
    const { items } = await friend.owned<{ items: unknown[] }>('memory.list', { home: nas.home })
    expect(items).toHaveLength(1)
  })

  test('L1.5 what a peer brought leads to that peer', async () => {
    const { nas, friend } = await friends()
    await share(nas, friend)
    await remember(nas, 'for friends', 'trusted:owner')
    await syncing(nas, friend)
    const told = (await friend.records()).find(({ effect }) => effect['from'] === nas.key.did && effect['count'] === 1)
    expect(told).toMatchObject({ operation: 'sync.serve', actor: nas.key.did, outcome: 'done' })
    const explained = JSON.stringify(await friend.owned('record.explain', { commit: String(told?.effect['commit']) }))
    expect(explained).toContain(nas.key.did)
  })

  test('a peer that is away is told as such, and the next round completes', async () => {
    const { nas, friend, network } = await friends()
    await share(nas, friend)
    network.away.add(friend.key.did)
    expect(await codeOf(syncing(nas, friend))).toBe('PEER_UNREACHABLE')
    network.away.clear()
    await expect(syncing(nas, friend)).resolves.toMatchObject({ equal: true })
  })
})

type Done = {
  readonly id: string
  readonly outcome: string
  readonly text: string
  readonly code: string | null
  readonly branch?: string
  readonly withheld: string[]
}

describe('handoff', () => {
  async function working(accept?: 'nobody') {
    const both = await friends()
    await attach(both.friend, accept === undefined ? {} : { accept })
    await share(both.nas, both.friend)
    const offer = (text: string, more: object = {}, from = both.nas.owning) =>
      both.nas.service.perform(from, 'handoff.offer', {
        did: both.friend.key.did,
        agent: 'clerk',
        text,
        ...more,
      }) as Promise<Done>
    return { ...both, offer }
  }

  test('L4.4 runs at the peer, and its result is a branch here and nothing else', async () => {
    const { nas, friend, offer } = await working()
    const main = getRef(nas.store.view(), nas.home, 'main')
    const done = await offer('write results/summary.md short')
    expect(done).toMatchObject({ outcome: 'completed', branch: `handoff/${done.id}` })
    await expect(
      nas.owned('files.read', { branch: `handoff/${done.id}`, path: 'results/summary.md' }),
    ).resolves.toMatchObject({ text: 'short', label: { integrity: 'external' } })
    expect(getRef(nas.store.view(), nas.home, 'main')).toEqual(main)
    expect(JSON.stringify(await friend.owned('files.refs'))).not.toContain(done.id)
    for (const house of [nas, friend]) {
      expect((await house.records()).some(({ effect }) => effect['handoff'] === done.id)).toBe(true)
    }
  })

  test('L4.2 notes above the peer are withheld, and named to the caller only', async () => {
    const { nas, network, offer } = await working()
    const shown = await remember(nas, 'for friends', 'trusted:owner')
    const hidden = await remember(nas, 'Zq9 secret', 'private:owner')
    const done = await offer('echo', { notes: [shown, hidden] })
    expect(done.withheld).toEqual([hidden])
    const heard = network.heard.map(({ text }) => text).join('\n')
    expect(heard).toContain('for friends')
    for (const word of ['Zq9 secret', hidden]) expect(heard).not.toContain(word)
  })

  test('L4.4 a file outside its lease fails it there, and nothing is written here', async () => {
    const { nas, offer } = await working()
    const done = await offer('write notes/evil.md x')
    expect(done).toMatchObject({ outcome: 'failed', code: 'SCOPE_EXCEEDED' })
    expect(getRef(nas.store.view(), nas.home, `handoff/${done.id}`)).toBeUndefined()
  })

  test('L4.4 its agent gets no way into the home of the peer', async () => {
    const { friend, nas, offer } = await working()
    const done = await offer('echo')
    const told = (await nas.records()).at(-1)
    expect(told?.effect['handoff']).toBe(done.id)
    // what it said is answered, and kept nowhere
    expect(nas.store.view().getJson(`sh/${done.id}`)).not.toHaveProperty('text')
    const { env } = JSON.parse(done.text) as { env: Record<string, string> }
    expect(env).not.toHaveProperty('CSB_TOKEN')
    expect(friend.parts.runs.reads.size).toBe(0)
  })

  test('L1.2 takes the right to read what goes along', async () => {
    const { nas, offer } = await working()
    const id = await remember(nas, 'for friends', 'trusted:owner')
    const sender = await nas.leased({ actions: ['send'] })
    expect(await codeOf(offer('echo', { notes: [id] }, sender))).toBe('SCOPE_EXCEEDED')
  })

  test('L4.4 a package works once', async () => {
    const { nas, friend, network, offer } = await working()
    await offer('echo')
    const handoff: unknown = JSON.parse(network.heard.find(({ from }) => from === nas.key.did)?.text ?? '')
    const port: MessagePort = {
      send: async () => undefined,
      receive: async () => handoff,
      close: async () => undefined,
      abort: () => undefined,
    }
    expect(await codeOf(friend.service.attend(visitor(nas.key.did), 'handoff.receive', {}, port))).toBe('REPLAYED')
    expect(await codeOf(friend.service.attend(visitor(createKeyPair().did), 'handoff.receive', {}, port))).toBe(
      'SENDER_MISMATCH',
    )
  })

  test('L4.4 an agent that takes no work, or an origin that is not listed, is asked in vain', async () => {
    const closed = await working('nobody')
    expect(await codeOf(closed.offer('echo'))).toBe('DENIED')
    const { offer, friend, nas } = await working()
    await friend.owned('authority.untrust', { did: nas.owner.did })
    expect(await codeOf(offer('echo'))).toBe('GRANT_INVALID')
    expect(friend.parts.runs.active.size).toBe(0)
  })

  test('an agent that fails there is told here with its code', async () => {
    const { offer } = await working()
    await expect(offer('crash')).resolves.toMatchObject({ outcome: 'failed', code: 'AGENT_FAILED' })
  })
})

describe('speaking and trusting across nodes', () => {
  const delegated = async () => {
    const both = await friends()
    await attach(both.friend)
    const grant = await both.nas.grant({
      type: 'scoped',
      to: { name: 'nas', did: both.nas.key.did },
      audience: [both.friend.key.did],
      scope: ['reports'],
      level: 'execute',
      ttlMs: 3_600_000,
    })
    return { ...both, grant }
  }

  test('DEL-002.2.4 a delegated message goes out, is worked on there, and says by whose authority', async () => {
    const { nas, friend, grant } = await delegated()
    const { task } = await nas.owned<{ task: Task }>('agents.send', {
      did: friend.key.did,
      agent: 'clerk',
      params: { message: messageOf('write report.md x') },
      delegation: grant.delegation.id,
      scope: ['reports'],
    })
    expect(wordsOf(task)).toBe('with authority from nas')
    expect(task.metadata?.[EXTENSIONS.authority]).toMatchObject({ accepted: true, level: 'execute' })
    const told = (await nas.records()).findLast(({ operation }) => operation === 'agents.send')
    expect(told?.effect).toMatchObject({ to: friend.key.did, delegation: grant.delegation.id })
  })

  test("L1.2 a lease to send does not lend the owner's voice", async () => {
    const { nas, friend, grant } = await delegated()
    const agent = await nas.leased({ actions: ['send'] })
    const speak = (more: object) =>
      nas.service.perform(agent, 'agents.send', {
        did: friend.key.did,
        agent: 'clerk',
        params: { message: messageOf('x') },
        ...more,
      })
    expect(await codeOf(speak({ delegation: grant.delegation.id }))).toBe('SCOPE_EXCEEDED')
    expect(wordsOf(((await speak({})) as { task: Task }).task)).toBe('processed without authority: absent')
  })

  test('L1.5 a message that left is in the record though no answer came', async () => {
    const { nas, friend, network } = await delegated()
    network.away.add(friend.key.did)
    const sent = nas.owned('agents.send', { did: friend.key.did, agent: 'clerk', params: { message: messageOf('x') } })
    expect(await codeOf(sent)).toBe('PEER_UNREACHABLE')
    expect((await nas.records()).at(-1)).toMatchObject({ operation: 'agents.send', effect: { to: friend.key.did } })
  })

  test('DEL-003.3.4, L1.3 a revocation that is brought by stream ends the grant there', async () => {
    const { nas, friend, grant } = await delegated()
    await nas.owned('authority.distribute', { did: friend.key.did, chain: [grant] })
    const revocation = signRevocation({ target: grantHash(grant), now: NOW }, nas.owner)
    await nas.owned('authority.distribute', { did: friend.key.did, revocation })
    const { task } = await nas.owned<{ task: Task }>('agents.send', {
      did: friend.key.did,
      agent: 'clerk',
      params: { message: messageOf('x') },
      delegation: grant.delegation.id,
    })
    expect(wordsOf(task)).toBe('processed without authority: revoked')
  })

  test('A2A-003, DEL-003.3.3 strangers can leave neither grants nor revocations behind', async () => {
    const { friend } = await friends()
    const stranger = createKeyPair()
    const before = await friend.dump()
    const bring = (message: unknown) => {
      const port: MessagePort = {
        send: async () => undefined,
        receive: async () => message,
        close: async () => undefined,
        abort: () => undefined,
      }
      return codeOf(friend.service.attend(visitor(stranger.did), 'authority.receive', {}, port))
    }
    const grant = signGrant(
      draftGrant({
        type: 'global',
        from: { name: 'me', did: stranger.did },
        to: { name: 'me', did: stranger.did },
        audience: ['*'],
        scope: ['*'],
        level: 'request',
        now: NOW,
        ttlMs: null,
      }),
      stranger,
    )
    expect(await bring({ chain: [grant] })).toBe('GRANT_INVALID')
    expect(await bring(signRevocation({ target: `sha256:${'0'.repeat(64)}`, now: NOW }, stranger))).toBe('DENIED')
    expect(await bring({})).toBe('MALFORMED')
    expect(await bring(undefined)).toBe('MALFORMED')
    expect(await bring('x'.repeat(10))).toBe('MALFORMED')
    expect(await friend.dump()).toEqual(before)
  })
})
