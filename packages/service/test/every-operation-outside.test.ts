/** Whoever hears a word from outside by whatever operation is tainted by it, and who takes nothing from outside hears none. */
import { describe, expect, test } from 'vitest'
import { NodeError, createKeyPair, type KeyPair } from '@csb/core'
import { signApproval, taintOf } from '@csb/authority'
import { getRef } from '@csb/files'
import { key } from '@csb/store'
import type { Caller, Service } from '../src/index.ts'
import { attach, cardFor, messageOf, type Task } from './house.ts'
import { ask, createWorld, grantOf, remember, session, type World } from './every-operation-rig.ts'
import { ROWS } from './every-operation-rows.ts'

/** Words that come from outside, and an operation that tells each to whoever may hear everything. */
const PLANTED = {
  xonote: 'memory.get',
  xofiletext: 'files.read',
  xofilename: 'files.list',
  xomessage: 'files.log',
  xobranch: 'files.refs',
  xodeletedname: 'files.recycle',
  xoinbox: 'agents.inbox',
  xoanswer: 'agents.send',
  xodescription: 'agents.card',
  xocapability: 'agents.find',
  xograntor: 'authority.grants',
  xoreason: 'record.tail',
  xocard: 'gate.show',
  xosaid: 'authority.distribute',
  xoerror: 'agents.send',
  xorefusal: 'sync.run',
} as const

type Plants = {
  readonly note: string
  readonly evil: KeyPair
  readonly grim: KeyPair
  readonly task: string
  readonly foreignTask: string
  readonly grant: string
  readonly card: string
  readonly commit: string
  readonly run: string
}

/** A peer that answers whatever it likes. */
const talking: Service = {
  perform: async () => ({ name: 'x', description: 'xodescription', skills: [] }),
  // eslint-disable-next-line require-yield
  open: async function* () {
    throw new NodeError('DENIED', { reason: 'xoerror' })
  },
  attend: async (_caller, _operation, _input, port) => {
    await port.receive()
    await port.send({ accepted: 'xosaid', revoked: 'xosaid', said: 'xosaid' })
    await port.close()
  },
  watch: () => () => undefined,
  close: async () => undefined,
}

const refuse = async (): Promise<never> => {
  throw new NodeError('DENIED', { reason: 'xorefusal' })
}

/** A peer that refuses whatever it is asked, in words of its own. */
const refusing: Service = {
  ...talking,
  perform: refuse,
  // eslint-disable-next-line require-yield
  open: async function* () {
    await refuse()
  },
  attend: refuse,
}

const parrot = (text: string) => [
  process.execPath,
  '-e',
  `process.stdout.write(JSON.stringify({result:{text:${JSON.stringify(text)}}})+'\\n')`,
]

async function plant(world: World): Promise<Plants> {
  const { house, friend, network } = world
  const [evil, grim] = [createKeyPair(), createKeyPair()]
  network.join(evil.did, talking)
  network.join(grim.did, refusing)
  const note = await remember(world, 'xonote', 'public:external')
  // written by a session that has read from outside
  const tainted = await session(world)
  await house.service.perform(tainted, 'memory.get', { id: note })
  const write = (branch: string, path: string, more: object = {}) =>
    house.service.perform(tainted, 'files.write', { branch, path, text: 'xofiletext', label: 'public:owner', ...more })
  await write('runs/x', 'drafts/xofilename.md', { message: 'xomessage' })
  await write('runs/xobranch', 'drafts/a.md')
  await write('runs/z', 'drafts/xodeletedname.md')
  const merge = () => house.service.perform(tainted, 'files.merge', { from: 'runs/z', into: 'runs/y' })
  await merge()
  await house.service.perform(tainted, 'files.write', {
    branch: 'runs/z',
    path: 'drafts/xodeletedname.md',
    delete: true,
  })
  await merge()
  await house.service.perform(tainted, 'memory.delete', { id: await remember(world), reason: 'xoreason' })
  const card = await cardFor(
    house.service.perform(tainted, 'memory.forget', { ids: [await remember(world)], reason: 'xocard' }),
    house.owned,
  )
  await friend.owned('agents.send', {
    did: house.key.did,
    agent: 'clerk',
    params: { message: messageOf('show xoinbox') },
  })
  await attach(friend, {
    id: 'parrot',
    command: parrot('xoanswer'),
    description: 'xodescription',
    skills: [{ id: 'xocapability', name: 'x', description: 'x' }],
  })
  // the agent here tells what it was told from there
  const sent = async (did: string | undefined) => {
    const params = { message: messageOf('show') }
    const to = did === undefined ? { agent: 'clerk' } : { agent: 'parrot', did }
    return ((await house.service.perform(tainted, 'agents.send', { ...to, params })) as { task: Task }).task.id
  }
  const foreignTask = await sent(friend.key.did)
  const task = await sent(undefined)
  const grant = grantOf(friend, {
    from: { name: 'xograntor', did: friend.owner.did },
    to: { name: 'nas', did: house.key.did },
    maxDepth: 2,
  })
  const { hash } = await house.owned<{ hash: string }>('authority.accept', { grant })
  const commit = getRef(house.store.view(), house.home, 'runs/x')?.commit ?? ''
  const run = (await house.records()).findLast(({ effect }) => effect['reason'] === 'xoreason')?.run ?? ''
  await friend.idle()
  return { note, evil, grim, task, foreignTask, grant: hash, card: card.id, commit, run }
}

/** What each operation is asked besides what its row asks. */
const tries = (
  { house, friend }: World,
  { note, evil, grim, foreignTask, grant, card, commit, run }: Plants,
): Readonly<Record<string, readonly object[]>> => {
  const [there, bad, sullen] = [
    { agent: 'parrot', did: friend.key.did },
    { agent: 'x', did: evil.did },
    { agent: 'x', did: grim.did },
  ]
  const message = () => messageOf('show')
  const ofTask = [
    { ...there, params: { id: foreignTask } },
    { ...bad, params: { id: foreignTask } },
    { ...sullen, params: { id: foreignTask } },
  ]
  const says = () => [
    { ...there, params: { message: message() } },
    { ...bad, params: { message: message() } },
    { ...sullen, params: { message: message() } },
  ]
  return {
    'files.list': [{ branch: 'runs/x' }, { branch: 'runs/y' }],
    'files.read': [
      { branch: 'runs/x', path: 'drafts/xofilename.md' },
      { branch: 'runs/x', path: '.csb/labels.json' },
    ],
    'files.log': [{ branch: 'runs/x' }, { branch: 'runs/y' }],
    'files.diff': [
      { from: 'main', to: 'runs/x' },
      { from: 'runs/x', to: 'main' },
    ],
    'files.preview': [{ from: 'runs/x', into: 'runs/y' }],
    'files.merge': [{ from: 'runs/x', into: 'runs/y' }],
    'memory.get': [{ id: note }],
    'memory.list': [{}, { include_deleted: true }],
    'memory.delete': [{ id: note }],
    'memory.restore': [{ id: note }],
    'agents.card': [there, bad, sullen],
    'agents.find': [{ did: friend.key.did }, { capability: 'xocapability' }, {}],
    'agents.send': says(),
    'agents.stream': says(),
    'agents.tasksSend': [
      { ...there, params: { id: 't', message: { role: 'agent', parts: [{ type: 'text', text: 'show' }] } } },
    ],
    'agents.getTask': ofTask,
    'agents.listTasks': [{ ...there, params: {} }],
    'agents.cancelTask': ofTask,
    'agents.subscribe': ofTask,
    'authority.pass': [{ grant, to: { name: 'next', did: createKeyPair().did } }],
    'authority.distribute': [evil, grim].map(({ did }) => ({ did, chain: [grantOf(house)] })),
    'keys.tell': [evil, grim].map(({ did }) => ({ did, statement: {} })),
    'sync.run': [evil, grim].map(({ did }) => ({ did })),
    'peers.dial': [{ address: `/ip4/127.0.0.1/tcp/1/p2p/${grim.peerId}` }],
    'handoff.offer': [
      { ...there, text: 'show' },
      { ...bad, text: 'show' },
      { ...sullen, text: 'show' },
    ],
    'record.explain': [{ commit }],
    'record.explainRun': [{ run }],
    'record.tail': [{ after: 0, limit: 200 }],
    'gate.show': [{ card }],
    'git.fetch': [{ wants: [commit], done: true }],
  }
}

type Heard = {
  readonly operation: string
  readonly input: string
  readonly words: readonly string[]
  readonly isTainted: boolean
  readonly code: string
}

/** Every operation, asked by a new session each time. */
async function hear(world: World, external: 'taint' | 'deny'): Promise<Heard[]> {
  const plants = await plant(world)
  const tried = tries(world, plants)
  const heard: Heard[] = []
  for (const { operation, open, input, says } of ROWS) {
    if (open === 'peer') continue
    const asked = [(caller: Caller) => input(world, caller), ...(tried[operation] ?? []).map((one) => () => one)]
    for (const make of asked) {
      const caller = await session(world, { external })
      const given = await make(caller)
      const { text, code } = await ask(world, caller, operation, given, says?.(world))
      const own = JSON.stringify(given)
      const words = Object.keys(PLANTED).filter((word) => text.includes(word) && !own.includes(word))
      const isTainted = taintOf(world.house.store.view(), caller.hash) !== undefined
      heard.push({ operation, input: own.slice(0, 120), words, isTainted, code })
    }
  }
  return heard
}

describe('attack 27: a word from outside', () => {
  test('attack 27: taints whoever hears it, by whatever operation', async () => {
    const heard = await hear(await createWorld(), 'taint')
    const untouched = heard.filter(({ words, isTainted }) => words.length > 0 && !isTainted)
    expect(
      untouched.map(({ operation, words, input, code }) => [operation, words.join(' '), input, code].join(' ')),
    ).toEqual([])
    const unheard = Object.entries(PLANTED).filter(
      ([word, by]) => !heard.some(({ operation, words }) => operation === by && words.includes(word)),
    )
    expect(unheard).toEqual([])
  })

  test('L1.2 is heard by no operation under a lease that takes nothing from outside', async () => {
    const heard = await hear(await createWorld(), 'deny')
    const told = heard.filter(({ words }) => words.length > 0)
    expect(
      told.map(({ operation, words, input, code }) => [operation, words.join(' '), input, code].join(' ')),
    ).toEqual([])
  })

  test.each(['taint', 'deny'] as const)('attack 27: in the names of what is damaged, under %s', async (external) => {
    const world = await createWorld()
    const { house } = world
    const file = { branch: 'runs/x', path: 'drafts/xodamaged.md' }
    await house.owned('files.write', { ...file, text: 'x', label: 'public:external' })
    const { oid } = await house.owned<{ oid: string }>('files.read', file)
    await house.store.transact((tx) => tx.del(key('object', house.home, oid)))
    expect((await ask(world, house.owning, 'files.fsck', {})).text).toContain('xodamaged')
    const caller = await session(world, { external })
    const { text } = await ask(world, caller, 'files.fsck', {})
    const isTainted = taintOf(house.store.view(), caller.hash) !== undefined
    expect([text.includes('xodamaged'), isTainted]).toEqual(external === 'taint' ? [true, true] : [false, false])
  })

  test.each(['taint', 'deny'] as const)('attack 27: in the names of what is derived, under %s', async (external) => {
    const world = await createWorld()
    const { house } = world
    const id = await remember(world)
    const writer = await session(world)
    await house.service.perform(writer, 'memory.get', { id })
    await house.service.perform(writer, 'files.write', { branch: 'runs/xoderived', path: 'drafts/a.md', text: 'x' })
    const card = await cardFor(house.owned('memory.forget', { ids: [id] }), house.owned)
    const now = house.clock.now()
    const approval = signApproval({ card, decision: 'approve', shownAt: now, now }, house.owner)
    const caller = await session(world, { external })
    const { text, code } = await ask(world, caller, 'gate.approve', { card: card.id, approval })
    const isTainted = taintOf(house.store.view(), caller.hash) !== undefined
    const wanted = external === 'taint' ? ['done', true, true] : ['DENIED', false, false]
    expect([code, text.includes('xoderived'), isTainted]).toEqual(wanted)
  })
})
