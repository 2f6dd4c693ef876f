/** Whatever is asked by whatever operation, what a lease does not reach is in no answer: not a word of it, nor its name. */
import { describe, expect, test } from 'vitest'
import { newId, type Lease } from '@csb/core'
import type { Caller } from '../src/index.ts'
import { NOW, messageOf } from './house.ts'
import { PLANTED, plant, type Plants, type Why } from './every-operation-plants.ts'
import { ask, createWorld, session, type Heard, type World } from './every-operation-rig.ts'
import { ROWS } from './every-operation-rows.ts'

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
      ['files.read', { branch: 'runs/x', path: hidden }, { branch: 'runs/x', path: absent }],
      ['files.label', { branch: 'runs/x', path: hidden, label }, { branch: 'runs/x', path: absent, label }],
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

  test('L1.2 of it nothing is heard under a lease that may read no byte', async () => {
    const world = await createWorld()
    const plants = await plant(world)
    const found = await hear(world, plants, await session(world, { budget: { bytes_read: 0 } }))
    expect(found).toEqual([])
  })

  test('L1.2 of it nothing is heard under a lease that may do everything but list and read', async () => {
    const world = await createWorld()
    const plants = await plant(world)
    const found = await hear(
      world,
      plants,
      await session(world, { actions: ['write', 'propose', 'snapshot', 'send', 'exec'] }),
    )
    expect(found).toEqual([])
  })

  test('each of it is heard by a session with every right: it is there', async () => {
    const world = await createWorld()
    const plants = await plant(world)
    const found = await hear(world, plants, await session(world))
    const heard = new Set(found.map((one) => one.split(' ')[0] ?? ''))
    expect(Object.keys(PLANTED).filter((word) => !heard.has(word))).toEqual([])
    // what comes in bytes is looked into
    for (const whole of ['zqsealed by files.export', 'zqsealed by git.fetch'])
      expect([whole, found.some((one) => one.startsWith(whole))]).toEqual([whole, true])
  })
})
