/** What is said of a label has a bound, which holds also where versions come together. */
import { LIMITS, parseLabel, type Label } from '@csb/core'
import { describe, expect, test } from 'vitest'
import { parseClock } from '../src/label-clock.ts'
import { parseNote, renderNote, type Note } from '../src/note.ts'
import type { Receiving } from '../src/put.ts'
import { apart, bytes, label, LATER, note, put, relabel, type Place } from './label-places.ts'
import { DID } from './support.ts'

describe('more said of a label than there is room for', () => {
  const didOf = (n: number, who: string): string =>
    `did:key:z6Mk${who}${String(n + 111)
      .padStart(40, '1')
      .replaceAll('0', 'A')}`
  const later = (n: number): string => `01a3185c5000${String(n).padStart(4, '0')}`
  /** Changed by so many nodes, each of which has seen those before. */
  const crowd = (before: Note, who: string, count: number, last: Label): Note => {
    const changes = Object.fromEntries(
      Array.from({ length: count }, (_, n) => [didOf(n, who), { at: later(n), label: n === count - 1 ? last : null }]),
    )
    return { ...before, hlc: later(count), label: last, clock: { written: last, made: [], changes } }
  }
  const receiving = (place: Place): Receiving => ({ from: 'owner', here: 'owner', node: place.did })

  test('L1.7 stays readable on all nodes, lowers nothing, and becomes the same', async () => {
    const { one, two, three, id } = await apart()
    const before = note(one, id)
    await put(one, [crowd(before, 'a', 80, parseLabel('sealed:owner'))], receiving(one))
    await put(two, [crowd(before, 'b', 79, parseLabel('private:owner:health'))], receiving(two))
    for (let round = 0; round < 2; round++) {
      const [left, right] = [note(one, id), note(two, id)]
      await put(one, [right], receiving(one))
      await put(two, [left], receiving(two))
    }
    expect(bytes(two, id)).toBe(bytes(one, id))
    expect(label(one, id)).toBe('sealed:owner:health')
    // one that was not there says no more than that it was made, and gets what was said
    const untouched = note(three, id)
    await put(three, [note(one, id)], receiving(three))
    for (const place of [one, two]) await put(place, [untouched], receiving(place))
    for (const place of [two, three]) expect(bytes(place, id)).toBe(bytes(one, id))
    expect(parseNote(renderNote(note(one, id)))).toEqual(note(one, id))
    // a person sees it as it is, and lowers it
    await relabel(one, id, 'public:owner', LATER)
    await put(two, [note(one, id)], receiving(two))
    expect([label(one, id), label(two, id)]).toEqual(['public:owner', 'public:owner'])
    // an older copy may make it stricter again, and no less strict
    await put(one, [crowd(before, 'b', 79, parseLabel('private:owner:health'))], receiving(one))
    expect(parseNote(renderNote(note(one, id)))).toEqual(note(one, id))
  })

  test('a change where there is no room for one more stands alone', async () => {
    const { one, id } = await apart()
    await put(one, [crowd(note(one, id), 'a', 82, parseLabel('sealed:owner'))], receiving(one))
    for (const spelled of ['private:owner:health', 'trusted:owner', 'sealed:owner']) {
      await relabel(one, id, spelled, LATER)
      expect(label(one, id)).toBe(spelled)
      expect(parseNote(renderNote(note(one, id)))).toEqual(note(one, id))
    }
  })

  test('a note that is as large as one may be takes every word about its label', async () => {
    const { one, two, id } = await apart()
    const before = note(one, id)
    const room = LIMITS.syncNoteBytes - renderNote({ ...before, extra: { type: '' } }).byteLength
    const full = { ...before, hlc: later(1), extra: { type: 'x'.repeat(room) } }
    expect(() => renderNote({ ...full, extra: { type: 'x'.repeat(room + 100) } })).toThrow(
      expect.objectContaining({ code: 'TOO_LARGE' }) as Error,
    )
    await put(one, [crowd(full, 'a', 70, parseLabel('sealed:owner'))], receiving(one))
    await put(two, [note(one, id)], receiving(two))
    expect(bytes(two, id)).toBe(bytes(one, id))
  })

  test.each(['constructor', 'toString', '__proto__', 'did:key:z6Mk', 'nobody'])('nobody is called %s', (name) => {
    const head = { hlc: later(1), actor: DID, label: parseLabel('private:owner') }
    for (const text of [
      `{"changes":{"${name}":"${later(2)} private:owner"}}`,
      `{"made":["${later(2)} ${name} private:owner"]}`,
    ])
      expect(() => parseClock(text, head)).toThrow(expect.objectContaining({ code: 'MALFORMED' }) as Error)
  })
})
