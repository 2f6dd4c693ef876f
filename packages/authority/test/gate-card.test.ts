import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { INTEGRITIES, LEVELS, LIMITS, formatLabel, joinLabels, parseLabel } from '@csb/core'
import {
  addCosignatures,
  appendRecord,
  grantHash,
  isLowered,
  makeCheckpoint,
  openCard,
  quickApprovals,
  signApproval,
  signStatus,
  storeGrant,
  takeStatus,
  trust,
  type Card,
  type GateChange,
} from '@csb/authority'
import { cosign } from '../src/checkpoint.ts'
import { NAME_RULES, lookalikes } from '../src/gate-names.ts'
import {
  HOME,
  NOW,
  agent,
  childGrant,
  helper,
  node,
  otherNode,
  owner,
  ownerGrant,
  stranger,
  testStore,
  wideLease,
} from './cast.ts'
import { COMMIT, REQUEST, change, decided, lease, opened, signed, subjectOf, workDone } from './gate-cast.ts'

const ENTRY = {
  operation: 'files.write',
  outcome: 'done',
  actor: agent.did,
  door: 'http',
  run: 'run_1',
  lease: null,
  reads: [],
  effect: {},
} as const

async function cardOf(changes: readonly GateChange[], label?: string): Promise<Card> {
  const store = await testStore()
  await workDone(store, label)
  return opened(store, subjectOf({ changes }))
}

/** What every card of these tests has: nobody was approved before, and there is no witness. */
const ALWAYS = ['new-actor', 'first-of-lease', 'unwitnessed']

const risksOf = ({ risks }: Card) => risks.map(({ id }) => id).filter((id) => !ALWAYS.includes(id))

describe('the line of meaning', () => {
  test('is made from counts and names of branches alone', async () => {
    const { meaning, home } = await cardOf([
      change('a.md'),
      change('b.md', { op: 'delete', sha256_new: null, size_new: null, mode_new: null, label_new: null }),
    ])
    expect(meaning).toBe(`Merge 0 added, 1 changed, 1 deleted from "runs/7f3c" into "main" of ${home}`)
  })
})

describe('who stands behind a card', () => {
  test('is read from the record, with the chain of the lease', async () => {
    const { made_by: makers, asked_by: asked } = await cardOf([change('a.md')])
    expect(makers).toMatchObject([{ commits: 1, actor: { did: agent.did }, label: 'private:owner' }])
    expect(makers[0]?.lease?.chain).toMatchObject([{ from: { name: 'Ada' }, to: { name: '若兰 🌸' } }])
    expect(asked.lease?.lease?.actions).toContain('propose')
  })

  test('what it had read from outside is named, each path once, and counted beyond a few', async () => {
    const store = await testStore()
    await workDone(store)
    const read = (path: string, integrity: 'external' | 'agent') => ({
      home: HOME,
      path,
      oid: 'a'.repeat(64),
      label: { level: 'private' as const, integrity, tags: [] },
    })
    const outside = Array.from({ length: 11 }, (_, n) => read(`mail/${String(n).padStart(2, '0')}.md`, 'external'))
    for (const commit of [COMMIT, 'e'.repeat(64)]) {
      await store.transact((tx) => {
        const reads = [...outside.toReversed(), read('own.md', 'agent')]
        const entry = {
          operation: 'x',
          outcome: 'done' as const,
          actor: agent.did,
          door: 'x',
          run: 'run_x',
          lease: null,
        }
        appendRecord(tx, { ...entry, reads, effect: {}, commit: `${commit.slice(1)}f` }, NOW)
      })
    }
    const card = await opened(store, subjectOf({ commits: [`${COMMIT.slice(1)}f`, `${'e'.repeat(63)}f`] }))
    expect(card.made_by).toMatchObject([{ reads: 12, more_outside: 3, label: 'private:external' }])
    expect(card.made_by[0]?.outside.map(({ path }) => path)).toEqual(outside.slice(0, 8).map(({ path }) => path))
  })

  test('a commit that the record does not know is said to be unknown', async () => {
    const store = await testStore()
    await workDone(store)
    const card = await opened(store, subjectOf({ commits: ['f'.repeat(64)] }))
    expect(card).toMatchObject({ unrecorded: 1, made_by: [] })
    expect(risksOf(card)).toContain('not-in-the-record')
  })

  test('a new actor is new, and a lease used for the first time, until something of it was approved', async () => {
    const store = await testStore()
    await workDone(store)
    const card = await opened(store)
    expect(card.risks.map(({ id }) => id)).toEqual(ALWAYS)
    await decided(store, signed(card), card)
    const next = await opened(store, subjectOf({ source: 'runs/next' }))
    expect(next.risks.map(({ id }) => id)).toEqual(['unwitnessed'])
  })

  test('a lease for one task is used as often as the one above it, and the owner needs no such word', async () => {
    const store = await testStore()
    await workDone(store)
    const task = childGrant(lease, { type: 'single', task: 'task_1', maxDepth: 0, lease: wideLease() })
    await store.transact((tx) => storeGrant(tx, { chain: [lease, task] }))
    const isFirst = async (hash: string, did: string, source: string) => {
      const asker = { did, name: 'x', run: 'run_1', lease: hash, door: 'http' }
      const init = { subject: subjectOf({ source }), request: REQUEST, asker, node: node.did, now: NOW }
      const { card } = await store.transact((tx) => openCard(tx, init))
      return { card, isFirst: card.risks.some(({ id }) => id === 'first-of-lease') }
    }
    expect((await isFirst(grantHash(task), helper.did, 'a')).isFirst).toBe(true)
    expect((await isFirst(grantHash(lease), owner.did, 'b')).isFirst).toBe(false)
    const { card } = await isFirst(grantHash(lease), agent.did, 'c')
    await decided(store, signed(card), card, { subject: subjectOf({ source: 'c' }) })
    expect((await isFirst(grantHash(task), helper.did, 'd')).isFirst).toBe(false)
  })

  test('by which door it was asked, and who else had signed the record and when', async () => {
    const store = await testStore()
    await workDone(store)
    expect(await opened(store)).toMatchObject({ asked_by: { door: 'http' }, witnessed: null })
    await store.transact((tx) => {
      trust(tx, { did: otherNode.did, name: 'laptop', ceiling: 'request' })
      const checkpoint = makeCheckpoint(tx, node, NOW)
      if (checkpoint === undefined) throw new Error('the record is empty')
      addCosignatures(tx, checkpoint, cosign(checkpoint.note, otherNode, NOW + 5_000), otherNode.did, 1)
    })
    const card = await opened(store, subjectOf({ source: 'runs/next' }))
    const by = [{ did: otherNode.did, name: 'laptop' }]
    expect(card.witnessed).toEqual({ size: 1, at: NOW + 5_000, by })
    expect(card.risks.some(({ id }) => id === 'unwitnessed')).toBe(false)
    // it stays what it was when the card was drawn
    await store.transact((tx) => void appendRecord(tx, ENTRY, NOW))
    expect(await decided(store, signed(card), card, { subject: subjectOf({ source: 'runs/next' }) })).toMatchObject({
      outcome: 'approved',
    })
  })

  test('a lease without a young word that it is not revoked is said to be one', async () => {
    const store = await testStore()
    await workDone(store)
    const foreign = ownerGrant({ lease: wideLease(), statusKey: otherNode.did })
    await store.transact((tx) => {
      storeGrant(tx, { chain: [foreign] })
      appendRecord(tx, { ...ENTRY, lease: grantHash(foreign), commit: 'e'.repeat(64) }, NOW)
    })
    const commits = [COMMIT, 'e'.repeat(64)]
    expect((await opened(store, subjectOf({ commits }))).risks).toContainEqual({
      id: 'stale-status',
      severity: 'amber',
      count: 1,
    })
    await store.transact((tx) => takeStatus(tx, signStatus({ seq: 0, revoked: [], now: NOW }, otherNode), NOW))
    expect(risksOf(await opened(store, subjectOf({ commits, source: 'x' })))).toEqual([])
  })
})

describe('names', () => {
  const named = async (name: string, known: string) => {
    const store = await testStore()
    await workDone(store)
    await store.transact((tx) => trust(tx, { did: otherNode.did, name: known, ceiling: 'request' }))
    const asker = { did: stranger.did, name, run: 'run_1', lease: null, door: 'http' }
    const init = { subject: subjectOf(), request: REQUEST, asker, node: node.did, now: NOW }
    return risksOf((await store.transact((tx) => openCard(tx, init))).card)
  }

  test.each([
    ['laptop', 'laptop'],
    ['Laptop', 'laptop'],
    ['l\u0430pt\u043Ep', 'laptop'],
    ['\u04CFaptop', 'laptop'],
    ['laptop\u200B', 'laptop'],
    ['Bi11', 'Bill'],
    ['rnorning', 'morning'],
    ['lap top', 'laptop'],
    ['\uFF4Captop', 'laptop'],
    ['\u0421\u0410\u0420', 'cap'],
  ])('attack 32: %j of another key looks like the known %j', async (name, known) => {
    expect(await named(name, known)).toContain('name-like-another')
  })

  test('attack 32: a name is found out whichever of its letters are drawn by others that look alike', () => {
    const { alike } = NAME_RULES
    const letters = fc.array(fc.constantFrom(...Object.keys(alike)), { minLength: 1, maxLength: 12 })
    fc.assert(
      fc.property(letters, fc.infiniteStream(fc.nat()), (name, numbers) => {
        const drawn = name.map((letter) => {
          const others = [letter, letter.toUpperCase(), ...Array.from(alike[letter] ?? '')]
          return others[(numbers.next().value ?? 0) % others.length]
        })
        const known = [{ name: name.join(''), did: owner.did }]
        const shown = { name: drawn.join(''), did: stranger.did }
        expect(lookalikes([shown], known, () => false)).toEqual([shown])
        expect(lookalikes([shown], known, () => true)).toEqual([])
      }),
    )
  })

  test.each([
    ['desktop', 'laptop'],
    ['若兰', 'laptop'],
    ['🌸', '🌺'],
    ['laptops', 'laptop'],
  ])('%j does not look like %j', async (name, known) => {
    expect(await named(name, known)).toEqual([])
  })

  test("attack 32: the owner's own name for that key is none, and one with letters of several scripts is said to be", async () => {
    const store = await testStore()
    await workDone(store)
    await store.transact((tx) => trust(tx, { did: agent.did, name: '若兰 🌸', ceiling: 'request' }))
    expect(risksOf(await opened(store))).toEqual([])
    expect(await named('p\u0430ypal', 'laptop')).toEqual(['name-in-mixed-letters'])
    const into = await opened(store, subjectOf({ target: 'm\u0430in' }))
    expect(risksOf(into)).toEqual(['name-in-mixed-letters'])
  })

  test('attack 30: a name that begins to look like another one voids the card', async () => {
    const store = await testStore()
    await workDone(store)
    const card = await opened(store)
    await store.transact((tx) => trust(tx, { did: stranger.did, name: '若兰 🌸', ceiling: 'request' }))
    expect(await decided(store, signed(card), card)).toMatchObject({ outcome: 'void', field: 'card' })
  })
})

test('approvals that come at once after their cards are counted, up to one that did not', async () => {
  const store = await testStore()
  await workDone(store)
  const approve = async (source: string, tookMs: number, at: number) => {
    const card = await opened(store, subjectOf({ source }), at)
    const approval = signApproval({ card, decision: 'approve', shownAt: at, now: at + tookMs }, owner)
    await decided(store, approval, card, { subject: subjectOf({ source }), now: at + tookMs })
  }
  const quick = () => quickApprovals(store.view())
  expect(await quick()).toBe(0)
  for (const [at, tookMs] of [500, 1_999].entries()) await approve(`quick ${at}`, tookMs, NOW + at * 10_000)
  expect(await quick()).toBe(2)
  await approve('calm', LIMITS.gateQuickMs, NOW + 30_000)
  expect(await quick()).toBe(0)
  await approve('again', 0, NOW + 40_000)
  expect(await quick()).toBe(1)
})

describe('risks are found by rules', () => {
  test.each<[string, GateChange]>([
    ['touches-policy', change('.csb/policy.cedar')],
    ['touches-policy', change('policies/floor.cedar')],
    ['touches-identity', change('agents/me/SOUL.md')],
    ['touches-automation', change('.github/workflows/x.yml')],
    ['touches-automation', change('package.json')],
    ['lowers-label', change('a.md', { label_new: 'trusted:owner' })],
    ['lowers-label', change('a.md', { label_old: 'private:owner:health' })],
    ['lowers-label', change('a.md', { label_old: 'private:agent' })],
    ['becomes-public', change('a.md', { label_new: 'public:owner' })],
    ['may-be-run-now', change('a.md', { mode_new: '100755' })],
    ['link', change('a.md', { mode_new: '120000' })],
    ['name-in-mixed-letters', change('p\u0430ypal.md')],
    ['program', change('tools/run.sh')],
    ['deletes', change('a.md', { op: 'delete' })],
    ['opaque', change('a.md', { opaque: true })],
    ['leaves-this-node', change('a.md', { op: 'send' })],
    ['large', change('a.md', { size_new: 11 * 1024 * 1024 })],
  ])('%s: %o', async (id, one) => {
    expect(risksOf(await cardOf([one]))).toContain(id)
  })

  test('nothing is found in what is plain', async () => {
    expect(
      risksOf(await cardOf([change('notes/若兰 🌸.md'), change('.csb/labels.json'), change('a/policy-notes.md')])),
    ).toEqual([])
  })

  test('what was read from outside taints the card, and is red under a lease that reaches', async () => {
    const card = await cardOf([change('a.md')], 'private:external')
    expect(card.taint).toBe(true)
    expect(risksOf(card)).toEqual(['external-with-reach', 'external'])
  })
})

test('a label is lowered exactly where the join of both is not the new one', () => {
  const label = fc
    .tuple(fc.constantFrom(...LEVELS), fc.constantFrom(...INTEGRITIES), fc.subarray(['a', 'b', 'c']))
    .map(([level, integrity, tags]) => formatLabel({ level, integrity, tags }))
  fc.assert(
    fc.property(label, label, (before, after) => {
      const joined = formatLabel(joinLabels([parseLabel(before), parseLabel(after)]))
      expect(isLowered({ label_old: before, label_new: after })).toBe(joined !== after)
    }),
  )
})
