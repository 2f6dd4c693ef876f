import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { INTEGRITIES, LEVELS, formatLabel, joinLabels, parseLabel } from '@csb/core'
import { appendRecord, isLowered, type Card, type GateChange } from '@csb/authority'
import { HOME, NOW, agent, testStore } from './cast.ts'
import { COMMIT, change, decided, opened, signed, subjectOf, workDone } from './gate-cast.ts'

async function cardOf(changes: readonly GateChange[], label?: string): Promise<Card> {
  const store = await testStore()
  await workDone(store, label)
  return opened(store, subjectOf({ changes }))
}

const risksOf = ({ risks }: Card) => risks.filter(({ id }) => id !== 'new-actor').map(({ id }) => id)

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

  test('a new actor is new until something of it was approved', async () => {
    const store = await testStore()
    await workDone(store)
    const card = await opened(store)
    expect(card.risks).toContainEqual({ id: 'new-actor', severity: 'amber', count: 1 })
    await decided(store, signed(card), card)
    expect((await opened(store, subjectOf({ source: 'runs/next' }))).risks).toEqual([])
  })
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
