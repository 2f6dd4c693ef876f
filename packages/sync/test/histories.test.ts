/** Random histories of three nodes with different clearances: whatever happens in whatever order, nothing leaks and nothing comes back. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createKeyPair, dominates, parseLabel, type Level } from '@csb/core'
import { FULL, TRUSTED, createNode, labelOf, seenBy, sync, type Between, type Node, type Rights } from './nodes.ts'
import { createWire, type Wire } from './ports.ts'

const LEVELS: readonly Level[] = ['public', 'trusted', 'private', 'sealed']
const IMPORTED = ['mem_1800000000000_aaaaaaaaaa', 'mem_1800000000000_bbbbbbbbbb']
const isShown = (level: Level): boolean => level === 'public' || level === 'trusted'

type Step =
  | { readonly do: 'create'; readonly who: number; readonly level: Level }
  /** the same thing from elsewhere, which has the same id on every node */
  | { readonly do: 'import'; readonly who: number; readonly which: number; readonly level: Level }
  | { readonly do: 'rewrite' | 'softDelete' | 'forget'; readonly who: number; readonly which: number }
  | { readonly do: 'relabel'; readonly who: number; readonly which: number; readonly level: Level }
  | { readonly do: 'sync'; readonly pair: number; readonly cutAfter: number }

const who = fc.integer({ min: 0, max: 2 })
const which = fc.nat(20)
const level = fc.constantFrom(...LEVELS)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('create' as const), who, level }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('import' as const), who, which: fc.nat(1), level }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('rewrite', 'softDelete', 'forget' as const), who, which }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('relabel' as const), who, which, level }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('sync' as const),
      pair: fc.integer({ min: 0, max: 2 }),
      cutAfter: fc.oneof(fc.constant(1000), fc.integer({ min: 0, max: 14 })),
    }),
  },
)

/** What a friend may do here. Whether it writes is what the two properties differ in. */
function between(left: Node, right: Node, friend: Node, mayWrite: boolean): Between {
  const rightsOf = (node: Node): Rights => (node === friend ? { clearance: TRUSTED, mayWrite } : FULL)
  return { ofRight: rightsOf(right), ofLeft: rightsOf(left) }
}

/** A word in each text, and whether any version that bore it could be seen by the friend. */
type Words = Map<string, boolean>

async function live(steps: readonly Step[], mayWrite: boolean): Promise<void> {
  const owner = createKeyPair().did
  const nodes = await Promise.all(['nas', 'laptop', 'friend'].map((name) => createNode(name, owner, name !== 'friend')))
  const [nas, laptop, friend] = nodes as [Node, Node, Node]
  const words: Words = new Map()
  const ids: Words = new Map()
  let count = 0

  /** What a friend that only reads does in its own copy is its own affair and would hide what is looked for. */
  const acts = (at: number): Node => (at === 2 && !mayWrite ? nas : (nodes[at] ?? nas))
  const said = (id: string, word: string, shown: boolean) => {
    words.set(word, (words.get(word) ?? false) || shown)
    ids.set(id, (ids.get(id) ?? false) || shown)
  }
  const held = async (node: Node, at: number) => {
    const states = await node.states()
    return states.length === 0 ? undefined : states[at % states.length]
  }

  const checkHeard = (wire: Wire, friendIsLeft: boolean) => {
    const heard = (friendIsLeft ? wire.toLeft : wire.toRight).join('\n')
    for (const [word, shown] of [...words, ...ids]) if (!shown) expect(heard).not.toContain(word)
  }
  const meet = async (pair: number, cutAfter = Number.POSITIVE_INFINITY) => {
    const [left, right] = [
      [nas, laptop],
      [nas, friend],
      [friend, laptop],
    ][pair] as [Node, Node]
    const wire = createWire(cutAfter)
    await sync(left, right, { ...between(left, right, friend, mayWrite), wire }).catch((error: unknown) => {
      expect(error).toMatchObject({ code: 'PEER_UNREACHABLE' })
    })
    if (pair > 0) checkHeard(wire, left === friend)
  }

  const take = async (each: Step): Promise<void> => {
    if (each.do === 'sync') return meet(each.pair, each.cutAfter)
    const node = acts(each.who)
    if (each.do === 'create' || each.do === 'import') {
      const same = each.do === 'create' ? undefined : IMPORTED[each.which]
      const here = [...(await node.states()).map(({ id }) => id), ...(await node.tombstones())]
      if (same !== undefined && here.includes(same)) return
      // a friend has no word for what it may not see
      const under = node === friend && !isShown(each.level) ? 'trusted' : each.level
      const word = `word${++count}x`
      said(await node.create(word, labelOf(under), same), word, isShown(under))
      return
    }
    const state = await held(node, each.which)
    if (state === undefined) return
    const seen = dominates(TRUSTED, parseLabel(state.label))
    if (each.do === 'rewrite') {
      const word = `word${++count}x`
      said(state.id, word, seen)
      await node.rewrite(state.id, word)
    } else if (each.do === 'relabel') {
      const under = node === friend && !isShown(each.level) ? 'trusted' : each.level
      said(state.id, node.note(state.id).entry.content, isShown(under))
      await node.relabel(state.id, labelOf(under)).catch((error: unknown) => {
        // a friend makes none less strict
        expect([node, error]).toMatchObject([friend, { code: 'DENIED' }])
      })
    } else if (each.do === 'softDelete' || node === friend) await node.softDelete(state.id)
    else await node.forget(state.id)
  }

  try {
    for (const each of steps) {
      await take(each)
      for (const node of nodes) {
        const forgotten = new Set(await node.tombstones())
        expect((await node.states()).filter(({ id }) => forgotten.has(id))).toEqual([])
      }
    }
    for (let round = 0; round < 4; round++) for (const pair of [0, 1, 2]) await meet(pair)
    const everything = () => true
    expect(nas.tree()).toBe(laptop.tree())
    expect(seenBy(await nas.states(), everything)).toEqual(seenBy(await laptop.states(), everything))
    expect(seenBy(await friend.states(), everything)).toEqual(
      seenBy(await nas.states(), (label) => dominates(TRUSTED, label)),
    )
    const forgotten = new Set(await nas.tombstones())
    for (const node of nodes) expect((await node.states()).filter(({ id }) => forgotten.has(id))).toEqual([])
  } finally {
    for (const node of nodes) await node.close()
  }
}

describe('random histories', () => {
  test.each([
    ['reads', false],
    ['also writes', true],
  ])(
    'L4.1, L4.2, L4.3: three nodes, one of which is a friend that %s, converge; nothing leaks, nothing comes back',
    async (_name, mayWrite) => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), (steps) => live(steps, mayWrite)),
        { numRuns: 40, endOnFailure: false },
      )
    },
  )
})
