/** What earlier entries under a lease list: whose it is, and how much of it is told. */
import { describe, expect, test } from 'vitest'
import { LIMITS, OWNER_PRIVATE, type Grant } from '@csb/core'
import { key, type ReadEntry, type Store } from '@csb/store'
import {
  appendRecord,
  draftGrant,
  explainCommit,
  grantHash,
  signGrant,
  signKeyChange,
  storeGrant,
  takeKeyStatement,
} from '@csb/authority'
import {
  HOME,
  NOW,
  agent,
  HOUR,
  node,
  owner,
  ownerDraft,
  ownerGrant,
  party,
  stranger,
  testStore,
  wideLease,
} from './cast.ts'

const COMMIT = '1234abcd'.padEnd(64, '0')
const WIDE = { lease: wideLease() }
const read = (path: string): ReadEntry => ({ home: HOME, path, oid: 'a'.repeat(64), label: OWNER_PRIVATE })
const reads = (count: number, name: string) => Array.from({ length: count }, (_, at) => read(`${name}/${at}`))

/** An entry for each list, then the commit. */
async function committed(store: Store, chain: readonly Grant[], lists: readonly (readonly ReadEntry[])[]) {
  const lease = grantHash(chain.at(-1) ?? ownerGrant())
  await store.transact((tx) => {
    if (chain.length > 0) storeGrant(tx, { chain })
    for (const [at, list] of [...lists, []].entries()) {
      const said = { operation: 'files.write', outcome: 'done', actor: agent.did, door: 'http' } as const
      const commit = at === lists.length ? { commit: COMMIT } : {}
      appendRecord(tx, { ...said, ...commit, run: null, lease, reads: list, effect: {} }, NOW)
    }
  })
}
const earlierOf = async (store: Store) => (await explainCommit(store.view(), COMMIT)).earlier
const told = async (store: Store) => {
  const { reads: found, ...rest } = await earlierOf(store)
  return { paths: found.map(({ path }) => path), ...rest }
}

const LISTS = [[read('a')], [read('b')]]
const ALL = { paths: ['a', 'b'], erased: 0, more: 0 }
const NONE = { paths: [], erased: 0, more: 0 }

const toNode = ownerGrant({ ...WIDE, to: party('nas', node) })
const errand = signGrant(
  draftGrant({
    type: 'single',
    from: party('nas', node),
    to: party('clerk', node),
    audience: [node.did],
    scope: ['csb-protocol'],
    level: 'request',
    now: NOW,
    ttlMs: HOUR / 2,
    parent: toNode,
    task: 'task_1',
    ...WIDE,
  }),
  node,
)

describe('L1.5 what a commit rests on besides its own entry', () => {
  test.each([
    ['handed out to somebody', [ownerGrant(WIDE)], ALL],
    ['whose grants are not kept', [], ALL],
    ["of the owner's own command line", [ownerGrant({ ...WIDE, to: party('Ada', owner) })], NONE],
    ['of the node', [toNode], NONE],
    ['of an agent that the node runs for one task', [toNode, errand], ALL],
  ])('under a lease %s', async (_, chain, expected) => {
    const store = await testStore()
    await store.transact((tx) => tx.putJson(key('meta', 'node-grant'), storeGrant(tx, { chain: [toNode] })))
    await committed(store, chain, LISTS)
    expect(await told(store)).toEqual(expected)
  })

  test('under a lease of the owner by another key of the same owner', async () => {
    const store = await testStore()
    const statement = signKeyChange({ old: owner, next: stranger, seq: 1, effectiveAt: NOW })
    await store.transact((tx) => takeKeyStatement(tx, statement, NOW))
    const grant = signGrant(ownerDraft({ ...WIDE, from: party('Ada', stranger), to: party('Ada', owner) }), stranger)
    await committed(store, [grant], LISTS)
    expect(await told(store)).toEqual(NONE)
  })

  test.each([0, 1, 5])(
    'of %i entries more than are looked at the newest are, and the others are counted',
    async (over) => {
      const store = await testStore()
      const lists = Array.from({ length: LIMITS.earlierEntries + over }, (_, at) => [read(`${at}`)])
      await committed(store, [ownerGrant(WIDE)], lists)
      const { paths, more } = await told(store)
      expect(paths).toEqual(lists.slice(over).map(([one]) => one?.path))
      expect(more).toBe(over)
    },
  )

  test.each([0, 1])('of %i things more than are told the newest are, and the others are counted', async (over) => {
    const store = await testStore()
    await committed(store, [ownerGrant(WIDE)], [reads(over, 'old'), reads(LIMITS.earlierReads, 'new')])
    const { paths, more } = await told(store)
    expect(paths).toHaveLength(LIMITS.earlierReads)
    expect(paths.every((path) => path.startsWith('new/'))).toBe(true)
    expect(more).toBe(over)
  })

  test('a listing of more than is looked at ends it, and is counted', async () => {
    const store = await testStore()
    const lists = [[read('first')], reads(LIMITS.earlierLooked, 'all'), [read('last')]]
    await committed(store, [ownerGrant(WIDE)], lists)
    expect(await told(store)).toEqual({ paths: ['last'], erased: 0, more: LIMITS.earlierLooked + 1 })
  })

  test('L3.4 what was erased is counted', async () => {
    const store = await testStore()
    await committed(store, [ownerGrant(WIDE)], LISTS)
    await store.transact((tx) => tx.del(key('payload', 0)))
    expect(await told(store)).toEqual({ paths: ['b'], erased: 1, more: 0 })
  })
})
