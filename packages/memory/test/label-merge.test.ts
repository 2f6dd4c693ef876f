/** Versions of one note that did not know of each other: what comes together is the same everywhere and never less strict than it may be. */
import { fail, formatLabel, fromUtf8, joinLabels, LEVELS, newId, parseLabel, PUBLIC, type Label } from '@csb/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseClock, plainClock } from '../src/label-clock.ts'
import { parseNote, renderNote, spellClock, type Note } from '../src/note.ts'
import type { Receiving } from '../src/put.ts'
import { getState, rebuildIndex } from '../src/states.ts'
import { createNotes } from '../src/write.ts'
import {
  apart,
  bytes,
  create,
  edit,
  give,
  label,
  LATER,
  note,
  places,
  put,
  relabel,
  type Place,
} from './label-places.ts'
import { DID, noteOf, NOW, OTHER, words } from './support.ts'

describe('two nodes of the owner that did not see each other', () => {
  test('L1.7 words written later under the old label do not lower the one that was raised', async () => {
    const { one, two, id, meet } = await apart()
    await relabel(one, id, 'sealed:owner')
    const { note: written } = await edit(two, id, LATER)
    expect(await meet()).toBe('sealed:owner')
    expect(note(one, id)).toMatchObject({ hlc: written.hlc, deletedAt: written.deletedAt })
  })

  test('L1.7 a label lowered without having seen that it was raised stays raised, whichever came later', async () => {
    for (const [raisedAt, loweredAt] of [
      [NOW, LATER],
      [LATER, NOW],
    ]) {
      const { one, two, id, meet } = await apart()
      await relabel(one, id, 'sealed:owner', raisedAt)
      await relabel(two, id, 'public:owner', loweredAt)
      expect(await meet()).toBe('sealed:owner')
      // a person sees it as it is, and lowers it again
      await relabel(two, id, 'public:owner', LATER)
      expect(await meet()).toBe('public:owner')
    }
  })

  test('L1.7 words that were not there when the label was lowered keep the one they were written under', async () => {
    const { one, two, id, meet } = await apart()
    await relabel(one, id, 'public:owner')
    await edit(two, id, LATER)
    expect(await meet()).toBe('private:owner')
    await relabel(one, id, 'public:owner', LATER)
    expect(await meet()).toBe('public:owner')
  })

  test('L1.7 a label that was lowered is lowered on the others, also where an older copy comes afterwards', async () => {
    const { one, two, three, id, meet } = await apart('sealed:owner:health')
    await relabel(one, id, 'private:owner')
    expect(await meet()).toBe('private:owner')
    await give(three, one, id)
    await give(one, three, id)
    expect([label(one, id), label(three, id)]).toEqual(['private:owner', 'private:owner'])
    await edit(three, id)
    await give(three, two, id)
    expect(label(two, id)).toBe('private:owner')
  })

  test('both raised it: the note bears what both said', async () => {
    const { one, two, id, meet } = await apart()
    await relabel(one, id, 'private:owner:health')
    await relabel(two, id, 'sealed:agent:work')
    expect(await meet()).toBe('sealed:agent:health,work')
  })

  test('L4.1 what was made once and not touched needs no clock, and a version that wins keeps its bytes', async () => {
    const { one, two, id } = await apart()
    for (const place of [one, two]) expect(bytes(place, id)).not.toContain('label_clock')
    const { made } = plainClock(note(two, id))
    const { note: written } = await edit(two, id, LATER)
    await give(two, one, id)
    expect(bytes(one, id)).toBe(fromUtf8(renderNote(written)))
    // who made it is kept, for changes that have seen it, and nothing else
    expect(written.clock).toEqual({ written: written.label, made, changes: {} })
  })

  test('L1.7 a change that saw the note of one maker lowers that of no other one', async () => {
    for (const [first, second] of [
      ['public:owner', 'sealed:owner:health'],
      ['sealed:owner:health', 'sealed:owner:work'],
    ]) {
      const [one, two, three] = (await places()) as [Place, Place, Place]
      const id = await create(one, first)
      await create(two, second, id)
      await give(one, three, id)
      await edit(three, id)
      await relabel(three, id, 'trusted:owner', LATER)
      for (const [from, to] of [
        [one, two],
        [three, one],
        [two, three],
        [two, one],
        [three, two],
        [one, three],
      ] as const)
        await give(from, to, id)
      expect([one, two, three].map((place) => label(place, id))).toEqual([second, second, second])
      await relabel(two, id, 'trusted:owner', LATER)
      await give(two, one, id)
      expect(label(one, id)).toBe('trusted:owner')
      expect(bytes(one, id)).not.toMatch(/health|work/)
    }
  })

  test('L1.7 after the index was made anew this node still changes labels later than it did', async () => {
    const { one, two, id } = await apart()
    await relabel(one, id, 'sealed:owner', LATER)
    const ahead = note(one, id).hlc
    // its words are older than the change of its label
    await put(two, [{ ...note(one, id), hlc: '0000000000000001' }])
    await two.store.transact((tx) => tx.del('m/hlc'))
    await two.store.transact((tx) => rebuildIndex(tx, two.home))
    const { notes } = await two.store.transact((tx) =>
      createNotes(tx, { ...words, home: two.home, actor: OTHER, inputs: [{ entry: { content: 'x' } }] }),
    )
    expect((notes[0]?.hlc ?? '') > ahead).toBe(true)
  })

  test('the clock of digits alone reads back as it was written', () => {
    const changes = {
      [DID]: { at: '1234567890123456', label: null },
      [OTHER]: { at: '0012345678e00001', label: PUBLIC },
    }
    const whole = noteOf(
      {},
      {
        label: PUBLIC,
        clock: { written: PUBLIC, made: [{ at: '0000000000000007', actor: DID, label: null }], changes },
      },
    )
    expect(parseNote(renderNote(whole))).toEqual(whole)
  })

  test('a note made twice under two labels bears both, and nothing that its label does not say is told', async () => {
    const [one, two] = (await places()) as [Place, Place]
    const id = newId('memory', NOW)
    await put(one, [noteOf({ id }, { label: parseLabel('private:owner:health') })])
    await put(two, [noteOf({ id, content: 'later' }, { label: parseLabel('public:agent'), hlc: '01a3185c50000009' })])
    await give(one, two, id)
    await give(two, one, id)
    expect(bytes(two, id)).toBe(bytes(one, id))
    expect(label(one, id)).toBe('private:agent:health')
    await relabel(one, id, 'public:owner')
    expect(bytes(one, id)).not.toMatch(/health|private/)
  })
})

describe('somebody who may write and is no node of the owner', () => {
  const FRIEND: Receiving = { from: 'other', here: 'owner', node: DID }

  const told = (before: Note, rest: Partial<Note>): Note => ({ ...before, actor: OTHER, hlc: 'aaaa', ...rest })
  const later = (n: number): string => `01a3185c5000${String(n).padStart(4, '0')}`

  test.each([
    ['a label', {}],
    ['a change of the label by itself', { made: [], changes: { [OTHER]: { at: later(9), label: PUBLIC } } }],
    ['a change of the label by this node', { made: [], changes: { [DID]: { at: later(9), label: PUBLIC } } }],
    ['that nobody holds to it any more', { made: [], changes: { [DID]: { at: later(9), label: null } } }],
  ])('L1.7 lowers no label, by saying %s', async (_what, clock) => {
    const { one, id } = await apart('private:owner:health')
    const lower = {
      label: PUBLIC,
      hlc: later(5),
      clock: { written: PUBLIC, made: note(one, id).clock?.made ?? [], changes: {}, ...clock },
    }
    await put(one, [told(note(one, id), lower)], FRIEND)
    expect(note(one, id)).toMatchObject({ hlc: later(5), label: parseLabel('private:external:health') })
    // nor does its word stand in the way of the owner's later
    await relabel(one, id, 'sealed:owner')
    await give(one, (await apart()).two, id)
    expect(label(one, id)).toBe('sealed:owner')
  })

  test('L3.2 what it brings is from outside, whatever the bytes say', async () => {
    const [one] = (await places()) as [Place]
    const brought = noteOf({}, { label: parseLabel('trusted:owner'), actor: OTHER })
    await put(one, [brought], FRIEND)
    expect(label(one, brought.entry.id)).toBe('trusted:external')
    const own = await create(one, 'trusted:owner')
    await put(one, [told(note(one, own), { hlc: later(7) })], FRIEND)
    expect(label(one, own)).toBe('trusted:external')
  })

  test('L3.2 words of it that are not taken taint nothing', async () => {
    const { one, id } = await apart('trusted:owner')
    const before = bytes(one, id)
    await put(one, [told(note(one, id), { hlc: '0000000000000001' })], FRIEND)
    expect(bytes(one, id)).toBe(before)
  })

  test('makes a label stricter for all, whoever wrote last', async () => {
    for (const hlc of [later(9), '0000000000000001']) {
      const { one, two, id, meet } = await apart('trusted:owner')
      await edit(two, id, LATER)
      await put(one, [told(note(one, id), { hlc, label: parseLabel('private:owner') })], FRIEND)
      expect(note(one, id).label.level).toBe('private')
      expect(await meet()).toMatch(/^private:/)
    }
  })

  test('L1.7 lowers no words that no approval has seen, by writing over them', async () => {
    const { one, two, id, meet } = await apart()
    await relabel(one, id, 'public:owner')
    await edit(two, id, LATER)
    expect(await meet()).toBe('private:owner')
    await put(one, [told(note(one, id), { hlc: '01a3185d3a610000', label: PUBLIC })], FRIEND)
    expect(label(one, id)).toBe('private:external')
  })

  test('L1.7 can not lower what it made stricter itself', async () => {
    const { one, id } = await apart('trusted:owner')
    await put(one, [told(note(one, id), { hlc: later(3), label: parseLabel('private:owner') })], FRIEND)
    await put(one, [told(note(one, id), { hlc: later(4), label: parseLabel('trusted:owner') })], FRIEND)
    expect(note(one, id).label.level).toBe('private')
  })
})

type Step =
  | { readonly do: 'edit'; readonly who: number; readonly late: number }
  | { readonly do: 'relabel'; readonly who: number; readonly late: number; readonly to: string }
  | { readonly do: 'give'; readonly who: number; readonly to: number }

const SPELLED = LEVELS.flatMap((level) => [`${level}:owner`, `${level}:agent:health`, `${level}:owner:work`])
const who = fc.nat(2)
const late = fc.nat(3).map((minutes) => minutes * 60_000)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ do: fc.constant('edit' as const), who, late }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('relabel' as const), who, late, to: fc.constantFrom(...SPELLED) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('give' as const), who, to: who }) },
)

/** What happened on a node, by name: what it knows of. */
type Event = {
  readonly label: Label
  readonly before: ReadonlySet<number>
  readonly kind: 'making' | 'edit' | 'change'
}

describe('random histories of three nodes', () => {
  test('L1.7, L4.1 all versions in any order are the same note, never less strict than what no change has seen', async () => {
    const nodes = await places()
    const readers = await places()
    const at = <T>(list: readonly T[], n: number): T => list[n % list.length] ?? fail('INTERNAL')

    /** @param twice the label under which the third makes it by itself; undefined: it gets it from the first */
    const live = async (
      steps: readonly Step[],
      orders: readonly (readonly number[])[],
      twice: string | undefined,
    ): Promise<void> => {
      const [first, second, third] = nodes as [Place, Place, Place]
      const id = await create(first)
      await give(first, second, id)
      if (twice === undefined) await give(first, third, id)
      else await create(third, twice, id)
      const makers = twice === undefined ? [first] : [first, third]
      const events: Event[] = makers.map((place) => ({
        label: note(place, id).label,
        before: new Set(),
        kind: 'making',
      }))
      const known: Set<number>[] = [new Set([0]), new Set([0]), new Set([makers.length - 1])]
      const versions: Note[] = makers.map((place) => note(place, id))
      for (const each of steps) {
        const node = at(nodes, each.who)
        const mine = known[each.who] ?? new Set()
        if (each.do === 'give') {
          await give(node, at(nodes, each.to), id)
          for (const event of mine) known[each.to]?.add(event)
          versions.push(note(at(nodes, each.to), id))
          continue
        }
        const before = note(node, id)
        if (each.do === 'edit') await edit(node, id, NOW + each.late)
        else await relabel(node, id, each.to, NOW + each.late)
        const after = note(node, id)
        // the label it has already is no change
        if (after.hlc === before.hlc) continue
        versions.push(after)
        events.push({ label: after.label, before: new Set(mine), kind: each.do === 'edit' ? 'edit' : 'change' })
        mine.add(events.length - 1)
      }
      // every version reaches everybody, each in another order
      for (const [n, order] of orders.entries()) {
        for (const index of order) await put(at(readers, n), [at(versions, index)])
        await put(at(readers, n), versions)
        expect(bytes(at(readers, n), id)).toBe(bytes(at(readers, 0), id))
      }
      for (const node of nodes) {
        await put(node, versions)
        expect(bytes(node, id)).toBe(bytes(at(readers, 0), id))
      }
      const final = note(at(readers, 0), id)
      expect(parseNote(renderNote(final))).toEqual(final)
      const state = getState(at(readers, 0).store.view(), at(readers, 0).home, id)
      expect(parseClock(state?.clock, final)).toEqual(parseClock(spellClock(final), final))
      // a making or a change counts until a change that has seen it
      const isSeen = (n: number) => events.some(({ kind, before }) => kind === 'change' && before.has(n))
      const unseen = events.filter(({ kind }, n) => kind !== 'edit' && !isSeen(n)).map((event) => event.label)
      expect(formatLabel(joinLabels([final.label, ...unseen]))).toBe(formatLabel(final.label))
      const [last] = events.slice(-1)
      const sawAll = last?.before.size === events.length - 1
      if (last !== undefined && sawAll) expect(formatLabel(final.label)).toBe(formatLabel(last.label))
    }

    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 14 }),
        fc.array(fc.array(fc.nat(40), { maxLength: 25 }), { minLength: 3, maxLength: 3 }),
        fc.option(fc.constantFrom(...SPELLED), { nil: undefined }),
        live,
      ),
      { numRuns: 50, endOnFailure: false },
    )
  })
})
