/** Whatever is asked by whatever operation, what a lease does not reach is in no answer: not a word of it, nor its name. */
import { describe, expect, test } from 'vitest'
import { newId, type Lease } from '@csb/core'
import { changeRef, getRef } from '@csb/files'
import type { Caller } from '../src/index.ts'
import { NOW, attach, cardFor, messageOf } from './house.ts'
import { ask, createWorld, grantOf, remember, session, taskOf, type Heard, type World } from './every-operation-rig.ts'
import { ROWS } from './every-operation-rows.ts'

/** Why it is hidden: by its label, by the place where it lies, or because it speaks of everything. */
type Why = 'label' | 'place' | 'all'

/** Words that stand nowhere but in what is hidden. */
const PLANTED: Readonly<Record<string, Why>> = {
  zqnote: 'label',
  zqsealed: 'label',
  zqprivatename: 'label',
  zqoutsidetext: 'place',
  zqoutsidename: 'place',
  zqbranch: 'place',
  zqsnapshot: 'place',
  zqtag: 'place',
  zqgonebranch: 'place',
  zqdeletedname: 'place',
  zqmessage: 'place',
  zqtask: 'all',
  zqinbox: 'all',
  zqreason: 'all',
  zqgrantee: 'all',
  zqtrusted: 'all',
  zqcard: 'all',
  zqcommand: 'all',
}

type Plants = {
  readonly note: string
  readonly task: string
  readonly grant: string
  readonly card: string
  readonly heads: readonly string[]
  readonly run: string
}

/** One of each, by the owner. */
async function plant(world: World): Promise<Plants> {
  const { house, clock } = world
  const write = (branch: string, path: string, text: string, label: string, message?: string) =>
    house.owned<{ commit: string }>('files.write', {
      branch,
      path,
      text,
      label,
      ...(message === undefined ? {} : { message }),
    })
  const note = await remember(world, 'zqnote', 'private:owner')
  await write('runs/x', 'drafts/sealed.md', 'zqsealed', 'sealed:owner')
  await write('runs/x', 'drafts/zqprivatename.md', 'a name', 'private:owner')
  const { commit } = await write('runs/x', 'other/zqoutsidename.md', 'zqoutsidetext', 'public:owner', 'zqmessage')
  await write('runs/zqbranch', 'drafts/a.md', 'another draft', 'public:owner')
  await house.owned('files.snapshot', { name: 'zqsnapshot', of: 'runs/x' })
  await house.store.transact((tx) =>
    changeRef(
      tx,
      house.home,
      { name: 'refs/tags/zqtag', from: null, to: commit },
      { now: clock.now(), outside: false },
    ),
  )
  await write('runs/zqgonebranch', 'drafts/a.md', 'gone', 'public:owner')
  await house.owned('files.removeBranch', { branch: 'runs/zqgonebranch' })
  await write('runs/z', 'other/zqdeletedname.md', 'deleted', 'public:owner')
  const merge = () => house.owned('files.merge', { from: 'runs/z', into: 'runs/y' })
  await merge()
  await house.owned('files.write', { branch: 'runs/z', path: 'other/zqdeletedname.md', delete: true })
  await merge()
  const task = await taskOf(world, house.owning, 'show zqtask')
  await world.friend.owned('agents.send', {
    did: house.key.did,
    agent: 'clerk',
    params: { message: messageOf('show zqinbox') },
  })
  await house.owned('memory.delete', { id: await remember(world), reason: 'zqreason' })
  const grant = await house.grant({
    to: { name: 'zqgrantee', did: world.friend.key.did },
    type: 'scoped',
    scope: ['reports'],
    ttlMs: 3_600_000,
  })
  await house.owned('authority.trust', { did: grantOf(house).delegation.grantee_key, name: 'zqtrusted' })
  const card = await cardFor(house.owned('memory.forget', { ids: [note], reason: 'zqcard' }), house.owned)
  await attach(house, { id: 'vault', command: [process.execPath, 'zqcommand'] })
  const heads = ['runs/x', 'runs/zqbranch', 'memory'].map(
    (branch) => getRef(house.store.view(), house.home, branch)?.commit ?? '',
  )
  const run = (await house.records()).findLast(({ effect }) => effect['branch'] === 'runs/x')?.run ?? ''
  const { hash } = (
    await house.owned<{ items: { hash: string; grant: { delegation: { id: string } } }[] }>('authority.grants')
  ).items.find((one) => one.grant.delegation.id === grant.delegation.id) ?? { hash: '' }
  return { note, task, grant: hash, card: card.id, heads, run }
}

/** What somebody tries who looks for it. */
const tries = ({ note, task, grant, card, heads, run }: Plants): Readonly<Record<string, readonly object[]>> => {
  const ofTask = { agent: 'clerk', params: { id: task } }
  return {
    'files.list': [
      { branch: 'runs/x' },
      { branch: 'runs/x', path: 'other' },
      { branch: 'runs/y' },
      { branch: 'memory' },
    ],
    'files.read': [
      { branch: 'runs/x', path: 'drafts/sealed.md' },
      { branch: 'runs/x', path: '.csb/labels.json' },
    ],
    'files.log': [{ branch: 'runs/x' }, { branch: 'runs/y' }, { branch: 'memory' }],
    'files.diff': [
      { from: 'main', to: 'runs/x' },
      { from: 'runs/y', to: 'runs/x', path: 'other' },
      { from: 'runs/x', to: 'runs/y' },
    ],
    'files.preview': [
      { from: 'runs/x', into: 'runs/y' },
      { from: 'runs/y', into: 'runs/x' },
    ],
    'files.merge': [{ from: 'runs/x', into: 'runs/y' }],
    'files.branch': [{ branch: 'runs/new/1', from: 'runs/x' }],
    'files.snapshot': [{ name: 'mine', of: 'runs/x' }],
    'files.recycle': [{}, { limit: 1 }],
    'files.restore': [{ branch: 'runs/y', path: 'drafts/none.md' }, { branch: 'runs/x' }],
    'files.write': [{ branch: 'runs/x', path: 'drafts/sealed.md', text: 'x', expect: heads[1] }],
    'files.label': [
      { branch: 'runs/x', path: 'drafts', label: 'sealed:owner' },
      { branch: 'runs/x', path: 'drafts/sealed.md', label: 'public:owner' },
    ],
    'files.fsck': [{}],
    'memory.get': [{ id: note }],
    'memory.list': [{}, { include_deleted: true }],
    'memory.delete': [{ id: note }],
    'memory.restore': [{ id: note }],
    'memory.forget': [{ ids: [note] }],
    'memory.label': [{ id: note, label: 'sealed:owner' }],
    'memory.create': [{ entry: { id: note, content: 'x', level: 'warm', type: 'lesson' } }],
    'agents.getTask': [ofTask],
    'agents.listTasks': [{ agent: 'clerk', params: { historyLength: 10, includeArtifacts: true } }],
    'agents.cancelTask': [ofTask],
    'agents.subscribe': [ofTask],
    'agents.send': [{ agent: 'clerk', params: { message: messageOf('show', { taskId: task }) } }],
    'authority.pass': [{ grant, to: { name: 'me', did: `did:key:z6Mk${'a'.repeat(44)}` } }],
    'record.explain': heads.map((commit) => ({ commit })),
    'record.explainRun': [{ run }],
    'gate.show': [{ card }],
    'gate.approve': [{ card, approval: {} }],
    'git.refs': [{ ends: true }],
    'git.fetch': heads.map((head) => ({ wants: [head], done: true })),
    'handoff.offer': [{ did: `did:key:z6Mk${'a'.repeat(44)}`, agent: 'clerk', text: 'show', notes: [note] }],
  }
}

const PLACED: Partial<Lease> = { paths: ['/drafts'], branches: ['runs/x', 'runs/y', 'runs/new/*'] }
const PUBLIC: Partial<Lease> = { labels_max: 'public', label_tags: [] }
const NO_RULE: Partial<Lease> = { actions: ['list', 'read', 'write', 'propose', 'snapshot', 'send'], capabilities: [] }

const LIMITED: readonly (readonly [string, Partial<Lease>, (word: string, why: Why) => boolean])[] = [
  ['to public drafts of two branches', { ...PLACED, ...PUBLIC, ...NO_RULE }, () => true],
  ['so, though it may rule', { ...PLACED, ...PUBLIC }, (word) => word !== 'zqcommand'],
  ['to what is public, anywhere', { ...PUBLIC, ...NO_RULE }, (_word, why) => why !== 'place'],
  [
    'to drafts of two branches, whatever their labels',
    { ...PLACED, ...NO_RULE },
    (word, why) => why !== 'label' && word !== 'zqtrusted',
  ],
]

/** All that is heard by every operation, asked as its row does and as somebody who looks for what is hidden. */
async function hear(world: World, plants: Plants, caller: Caller): Promise<string[]> {
  const tried = tries(plants)
  const found: string[] = []
  const hear1 = async (operation: string, input: object, says: readonly unknown[] = []) => {
    const { code, text } = await ask(world, caller, operation, input, says)
    const given = JSON.stringify(input)
    for (const word of Object.keys(PLANTED))
      if (text.includes(word) && !given.includes(word))
        found.push(`${word} by ${operation} ${given.slice(0, 200)} ${code}`)
  }
  for (const { operation, open, input, says } of ROWS) {
    if (open === 'peer') continue
    await hear1(operation, await input(world, caller), says?.(world))
    for (const one of tried[operation] ?? []) await hear1(operation, one)
  }
  // what git is shown can be fetched
  const { refs } = await world.house.service.perform(caller, 'git.refs', {}).then(
    (told) => told as { refs: readonly { oid: string; peeled?: string }[] },
    () => ({ refs: [] }),
  )
  for (const { oid, peeled } of refs)
    for (const want of [oid, ...(peeled === undefined ? [] : [peeled])])
      await hear1('git.fetch', { wants: [want], done: true, include_tags: true })
  return found
}

describe('attack 14: what a lease does not reach is heard by no operation', () => {
  test.each(LIMITED)('attack 14: limited %s', async (_, lease, isHidden) => {
    const world = await createWorld()
    const plants = await plant(world)
    const caller = await session(world, lease)
    const found = await hear(world, plants, caller)
    expect(
      [...new Set(found)].filter((one) => {
        const word = one.split(' ')[0] ?? ''
        return isHidden(word, PLANTED[word] ?? 'all')
      }),
    ).toEqual([])
  })

  test('attack 14: what may not be seen is answered as what is not there', async () => {
    const world = await createWorld()
    const { note, task, heads } = await plant(world)
    const caller = await session(world, { ...PUBLIC, ...NO_RULE })
    const none = newId('memory', NOW)
    const [hidden, absent] = ['drafts/zqprivatename.md', 'drafts/none.md']
    const label = 'sealed:owner'
    const ofTask = (id: string) => ({ agent: 'clerk', params: { id } })
    const pairs: readonly (readonly [string, object, object])[] = [
      ...['memory.get', 'memory.delete', 'memory.restore'].map((one) => [one, { id: note }, { id: none }] as const),
      ['memory.label', { id: note, label }, { id: none, label }],
      ['memory.forget', { ids: [note] }, { ids: [none] }],
      ['files.list', { branch: 'runs/x', path: hidden }, { branch: 'runs/x', path: absent }],
      ['files.diff', { from: 'main', to: 'runs/x', path: hidden }, { from: 'main', to: 'runs/x', path: absent }],
      ['files.restore', { branch: 'runs/x', path: hidden }, { branch: 'runs/x', path: absent }],
      ['git.fetch', { wants: [heads[2]], done: true }, { wants: ['ab'.repeat(32)], done: true }],
      ...['agents.getTask', 'agents.cancelTask', 'agents.subscribe'].map(
        (one) => [one, ofTask(task), ofTask(newId('task', NOW))] as const,
      ),
    ]
    const words = /mem_\w+|task_\w+|[0-9a-f]{64}|drafts\/\w+\.md/g
    const told = ({ code, text }: Heard) => [code, text.replaceAll(words, '')].join(' ')
    const differing: string[] = []
    for (const [operation, one, other] of pairs) {
      const [there, gone] = [await ask(world, caller, operation, one), await ask(world, caller, operation, other)]
      if (told(there) !== told(gone)) differing.push(`${operation}: ${told(there)} and not ${told(gone)}`)
    }
    expect(differing).toEqual([])
  })

  test('each of it is heard by a session with every right: it is there', async () => {
    const world = await createWorld()
    const plants = await plant(world)
    const found = await hear(world, plants, await session(world))
    const heard = new Set(found.map((one) => one.split(' ')[0] ?? ''))
    expect(Object.keys(PLANTED).filter((word) => !heard.has(word))).toEqual([])
  })
})
