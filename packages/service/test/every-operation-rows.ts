/**
 * Every operation of the registry, with one well-formed input and what it takes. A new operation needs a row here: the
 * matrix fails without one.
 */
import { createKeyPair, type Lease } from '@csb/core'
import { grantHash, signApproval, signKeyChange, signRevocation, trust } from '@csb/authority'
import { getRef } from '@csb/files'
import type { Caller } from '../src/index.ts'
import { HOUR, cardFor, messageOf } from './house.ts'
import { branchOf, grantOf, remember, taskOf, type World } from './every-operation-rig.ts'

/** Members of a lease without which the operation is refused with that member's name. */
type Needed =
  | 'locations'
  | 'actions'
  | 'paths'
  | 'deny_paths'
  | 'branches'
  | 'labels_max'
  | 'label_tags'
  | 'capabilities'

export type Row = {
  readonly operation: string
  readonly kind: 'read' | 'write' | 'call' | 'stream' | 'session'
  readonly open: 'lease' | 'owner' | 'peer' | 'nobody'
  /** what it may be given to do; null: holding a lease is enough */
  readonly action: Lease['actions'][number] | null
  readonly needs: readonly Needed[]
  /** what whoever may ask hears with every right */
  readonly code: string
  readonly input: (world: World, caller: Caller) => object | Promise<object>
  /** what the other end of a session says */
  readonly says?: (world: World) => readonly unknown[]
}

const AT: readonly Needed[] = ['locations', 'actions']
const ON: readonly Needed[] = [...AT, 'branches']
const IN: readonly Needed[] = [...ON, 'paths', 'deny_paths']
const RULE: readonly Needed[] = [...AT, 'capabilities']
const ALL: readonly Needed[] = [...IN, 'labels_max', 'label_tags']
const RULE_ALL: readonly Needed[] = [...ALL, 'capabilities']

type Asked = Row['input']
type More = Partial<Pick<Row, 'code' | 'says' | 'open'>>

const row = (
  operation: string,
  kind: Row['kind'],
  action: Row['action'],
  needs: readonly Needed[],
  input: Asked = () => ({}),
  more: More = {},
): Row => ({ operation, kind, open: 'lease', action, needs, code: 'done', input, ...more })

/** For peers: what a stranger with nothing to show hears. */
const ofPeers = (
  operation: string,
  kind: Row['kind'],
  code: string,
  input: Asked = () => ({}),
  says?: Row['says'],
): Row => row(operation, kind, null, [], input, { open: 'peer', code, ...(says === undefined ? {} : { says }) })

const SKILL = { id: 'report.read', name: 'Read', description: 'reads' }
const entry = { content: 'tea is hot', level: 'warm', type: 'lesson' }
const said = (text = 'show') => ({ agent: 'clerk', params: { message: messageOf(text) } })
const head = ({ house }: World, branch: string): string => getRef(house.store.view(), house.home, branch)?.commit ?? ''

/** A card that waits, and the owner's word on it. */
const decided = (decision: 'approve' | 'reject') => async (world: World) => {
  const { house } = world
  const card = await cardFor(
    house.owned('memory.forget', { ids: [await remember(world, world.word('soon gone'))] }),
    house.owned,
  )
  const now = house.clock.now()
  return { card: card.id, approval: signApproval({ card, decision, shownAt: now, now }, house.owner) }
}

/** A note that was deleted. */
const deleted = async (world: World) => {
  const id = await remember(world)
  await world.house.owned('memory.delete', { id })
  return { id }
}

/** A branch whose file a merge deleted. */
const recycled = async (world: World) => {
  const { house } = world
  const [from, into] = [await branchOf(world), await branchOf(world, 'drafts/c.md')]
  const merge = () => house.owned('files.merge', { from: from.branch, into: into.branch })
  await merge()
  await house.owned('files.write', { branch: from.branch, path: 'drafts/b.md', delete: true })
  await merge()
  return { branch: into.branch, path: 'drafts/b.md' }
}

/** A word on the key of somebody who is trusted here. */
const stated = async ({ house, clock }: World) => {
  const [old, next] = [createKeyPair(), createKeyPair()]
  await house.store.transact((tx) => trust(tx, { did: old.did, name: 'somebody', ceiling: 'request' }))
  return { statement: signKeyChange({ old, next, seq: 1, effectiveAt: clock.now() }) }
}

/** A grant of this owner that is kept. */
const granted = async ({ house }: World) =>
  house.grant({ to: { name: 'somebody', did: createKeyPair().did }, ttlMs: HOUR, type: 'scoped', scope: ['reports'] })

const passed = async ({ house, received }: World) =>
  house.owned<{ hash: string }>('authority.pass', { grant: received, to: { name: 'next', did: createKeyPair().did } })

export const ROWS: readonly Row[] = [
  row('node.status', 'read', 'list', AT),
  row('peers.list', 'read', 'list', ALL),
  row('peers.dial', 'call', 'send', AT, () => ({ address: '/ip4/127.0.0.1/tcp/1' }), { code: 'PEER_UNREACHABLE' }),

  row('files.refs', 'read', 'list', AT),
  row('files.list', 'read', 'read', IN, () => ({ branch: 'runs/x', path: 'drafts' })),
  row('files.read', 'read', 'read', IN, () => ({ branch: 'runs/x', path: 'drafts/a.md' })),
  row('files.log', 'read', 'read', ALL, () => ({ branch: 'runs/x' })),
  row('files.write', 'write', 'write', IN, ({ word }) => ({
    branch: 'runs/x',
    path: `drafts/${word('w')}.md`,
    text: 'x',
  })),
  row('files.branch', 'write', 'write', ON, ({ word }) => ({ branch: word('runs/new'), from: 'runs/x' })),
  row('files.removeBranch', 'write', 'write', IN, async (world) => ({ branch: (await branchOf(world)).branch })),
  row('files.diff', 'read', 'read', ON, () => ({ from: 'main', to: 'runs/x' })),
  row('files.preview', 'read', 'read', ON, () => ({ from: 'runs/x', into: 'runs/y' })),
  row('files.merge', 'write', 'write', IN, async (world) => ({ from: 'runs/x', into: (await branchOf(world)).branch })),
  row('files.snapshot', 'write', 'snapshot', ON, ({ word }) => ({ name: word('kept'), of: 'runs/x' })),
  row('files.recycle', 'read', 'list', AT),
  row('files.restore', 'write', 'write', IN, recycled),
  row('files.gc', 'call', 'exec', RULE),
  row('files.fsck', 'read', 'exec', RULE_ALL),
  row('files.export', 'stream', 'read', IN),
  row('files.import', 'session', 'exec', RULE, () => ({}), { open: 'owner', says: ({ archive }) => archive }),
  row('files.label', 'write', 'write', IN, async (world) => ({
    branch: (await branchOf(world)).branch,
    path: 'drafts/b.md',
    label: 'private:owner',
  })),

  row('memory.create', 'write', 'write', IN, () => ({ entry })),
  row('memory.batch', 'write', 'write', IN, () => ({ items: [{ entry }] })),
  row('memory.get', 'read', 'read', IN, async (world) => ({ id: await remember(world) })),
  row('memory.list', 'read', 'read', IN),
  row('memory.delete', 'write', 'write', IN, async (world) => ({ id: await remember(world) })),
  row('memory.restore', 'write', 'write', IN, deleted),
  row('memory.forget', 'write', 'write', IN, async (world) => ({ ids: [await remember(world)] }), {
    code: 'GATE_REQUIRED',
  }),
  row('memory.label', 'write', 'write', IN, async (world) => ({ id: await remember(world), label: 'private:owner' })),

  row('agents.list', 'read', 'list', AT),
  row('agents.inbox', 'read', 'read', ALL),
  row('agents.attach', 'write', 'exec', RULE, ({ word }) => ({
    id: word('clerk'),
    name: 'Clerk',
    description: 'another',
    command: ['true'],
    skills: [SKILL],
  })),
  row('agents.detach', 'write', 'exec', RULE, async ({ house, word }) => {
    const id = word('gone')
    await house.owned('agents.attach', { id, name: 'Gone', description: 'soon', command: ['true'], skills: [SKILL] })
    return { id }
  }),
  row('agents.card', 'read', null, [], () => ({ agent: 'clerk' }), { open: 'nobody' }),
  row('agents.find', 'call', 'send', AT, () => ({ capability: 'report.write' })),
  row('agents.send', 'call', 'send', AT, () => said()),
  row('agents.tasksSend', 'call', 'send', AT, ({ word }) => ({
    agent: 'clerk',
    params: {
      id: word('t'),
      sessionId: word('s'),
      message: { role: 'agent', parts: [{ type: 'text', text: 'show' }] },
    },
  })),
  row('agents.getTask', 'call', 'send', AT, async (world, caller) => ({
    agent: 'clerk',
    params: { id: await ownTask(world, caller) },
  })),
  row('agents.listTasks', 'call', 'send', AT, () => ({ agent: 'clerk', params: {} })),
  row('agents.cancelTask', 'call', 'send', AT, async (world, caller) => ({
    agent: 'clerk',
    params: { id: await ownTask(world, caller, 'hang') },
  })),
  row('agents.stream', 'stream', 'send', AT, () => said()),
  row('agents.subscribe', 'stream', 'send', AT, async (world, caller) => ({
    agent: 'clerk',
    params: { id: await ownTask(world, caller, 'hang') },
  })),
  ofPeers('agents.deliver', 'stream', 'MALFORMED', () => ({ envelope: {} })),

  row('authority.accept', 'write', 'exec', RULE, ({ house }) => ({ grant: grantOf(house) })),
  row('authority.attenuate', 'write', null, ['capabilities'], ({ word }) => ({ name: word('child'), lease: {} })),
  ofPeers(
    'authority.receive',
    'session',
    'done',
    () => ({}),
    ({ house }) => [{ status: [house.key.did] }],
  ),
  row('authority.distribute', 'call', 'exec', RULE, async (world) => ({
    did: world.friend.key.did,
    chain: [await granted(world)],
  })),
  row('authority.grants', 'read', 'read', ALL),
  row('authority.revoke', 'write', 'exec', RULE, async (world) =>
    signRevocation({ target: grantHash(await granted(world)), now: world.clock.now() }, world.house.owner),
  ),
  row('authority.declared', 'write', 'exec', RULE, () => ({ ids: [] })),
  row('authority.pass', 'write', 'exec', RULE, ({ received }) => ({
    grant: received,
    to: { name: 'next', did: createKeyPair().did },
  })),
  row('authority.end', 'write', 'exec', RULE, async (world) => ({ grant: (await passed(world)).hash })),
  row('authority.trust', 'write', 'exec', RULE, () => ({ did: createKeyPair().did, name: 'new' })),
  row('authority.untrust', 'write', 'exec', RULE, async ({ house }) => {
    const { did } = createKeyPair()
    await house.owned('authority.trust', { did, name: 'old' })
    return { did }
  }),
  row('authority.trusted', 'read', 'read', ALL),
  row('keys.list', 'read', 'read', ALL),
  row('keys.state', 'write', 'exec', RULE, stated),
  row('keys.tell', 'call', 'exec', RULE, async (world) => {
    const told = await stated(world)
    await world.friend.store.transact((tx) =>
      trust(tx, { did: told.statement.keychange.old, name: 'somebody', ceiling: 'request' }),
    )
    return { did: world.friend.key.did, ...told }
  }),

  row('record.tail', 'read', 'read', ALL),
  row('record.verify', 'read', 'read', ALL),
  row('record.explain', 'read', 'read', ALL, (world) => ({ commit: head(world, 'runs/x') })),
  row('record.explainRun', 'read', 'read', ALL, async ({ house }) => {
    const { run } = (await house.records()).findLast(({ effect }) => effect['branch'] === 'runs/x') ?? {}
    return { run }
  }),
  row('record.prove', 'read', 'read', ALL, () => ({ seq: 0 })),
  row('record.checkpoint', 'read', 'read', ALL),
  row('record.witnessed', 'read', 'read', ALL),
  row('record.resume', 'write', 'exec', RULE, () => ({ after_restore: true }), { open: 'owner', code: 'CONFLICT' }),
  ofPeers(
    'witness.serve',
    'session',
    'DENIED',
    () => ({}),
    () => [{ add_checkpoint: 'old 0' }],
  ),

  row('sync.run', 'call', 'send', ON, ({ friend }) => ({ did: friend.key.did })),
  ofPeers(
    'sync.serve',
    'session',
    'CLEARANCE',
    ({ house }) => ({ home: house.home }),
    ({ house }) => [{ home: { id: house.home }, credential: null }],
  ),
  row('sync.status', 'read', 'list', ALL),
  row('handoff.offer', 'call', 'send', [...ON, 'capabilities'], ({ friend }) => ({
    did: friend.key.did,
    agent: 'clerk',
    text: 'show',
  })),
  ofPeers(
    'handoff.receive',
    'session',
    'MALFORMED',
    () => ({}),
    () => [{}],
  ),

  row('gate.list', 'read', 'exec', RULE_ALL),
  row('gate.show', 'read', 'exec', RULE_ALL, async (world) => ({ card: (await decided('approve')(world)).card })),
  row('gate.approve', 'write', 'exec', RULE, decided('approve')),
  row('gate.reject', 'write', 'exec', RULE, decided('reject')),
  row('git.refs', 'read', 'list', AT),
  row('git.fetch', 'stream', 'read', AT, (world) => ({ wants: [head(world, 'runs/x')], done: true })),
  row('git.push', 'session', 'write', [...IN], async (world) => {
    const { branch, commit } = await branchOf(world)
    return { changes: [{ name: `refs/heads/${branch}`, from: commit, to: null }] }
  }),
]

/** A task of whoever asks, where that one can have one; of the owner else. */
async function ownTask(world: World, caller: Caller, text = 'show'): Promise<string> {
  try {
    return await taskOf(world, caller, text)
  } catch {
    return taskOf(world, world.house.owning, text)
  }
}
