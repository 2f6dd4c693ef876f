/** Whatever names, texts and reasons hold: nothing of a card steers the terminal, and no line passes for another one. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Decided, Review } from '@csb/node'
import { cardLine, cardText } from '../src/card-text.ts'
import { forgottenText } from '../src/commands/forget.ts'
import { jsonLine, visible } from '../src/terminal.ts'

const DID = 'did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK'

/** All that steers, turns round or hides: each range from its first to its last. */
const STEERING: readonly (readonly [number, number])[] = [
  [0x00, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x34f, 0x34f],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0x2800, 0x2800],
  [0x3164, 0x3164],
  [0xd800, 0xdfff],
  [0xe000, 0xf8ff],
  [0xfdd0, 0xfdef],
  [0xfe00, 0xfe0f],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xfffb],
  [0xfffe, 0xffff],
  [0x1fffe, 0x1ffff],
  [0xe0000, 0xe0fff],
  [0xf0000, 0x10ffff],
]

const isSteering = (code: number): boolean => STEERING.some(([from, to]) => code >= from && code <= to)

const nasty = fc.oneof(
  { arbitrary: fc.constantFrom(...STEERING), weight: 4 },
  { arbitrary: fc.constant([0x20, 0x7e] as const), weight: 2 },
  { arbitrary: fc.constant([0xa0, 0x2ffff] as const), weight: 1 },
)
const char = nasty.chain(([from, to]) => fc.integer({ min: from, max: to }).map((code) => String.fromCodePoint(code)))
const forged = fc.constantFrom(
  '\u001B[2J\u001B]0;x\u0007',
  '\u001B]8;;http://x\u001B\\y\u001B]8;;\u001B\\',
  '\r\nRISKS\n  none by the rules',
  '\ndigest     sha256:0\n',
  '{digest}',
  '$&$1',
  '\u202Etxt.exe\u202C',
)
const words = fc
  .array(fc.oneof({ arbitrary: char, weight: 6 }, { arbitrary: forged, weight: 1 }), { maxLength: 12 })
  .map((parts) => parts.join(''))

const party = (name: string) => ({ name, did: DID })
const lease = (word: string) => ({
  hash: word,
  revoked: true,
  chain: [{ from: party(word), to: party(word), level: word }],
  lease: {
    type: 'urn:csb:lease:1' as const,
    locations: [word],
    actions: [word],
    paths: [word],
    deny_paths: [word],
    branches: [word],
    labels_max: word,
    label_tags: [word],
    label_floor: word,
    capabilities: [word],
    gates: [word],
    budget: { calls: 1 },
  },
  expires_at: null,
})

/** Everything of a card that somebody may have chosen is one of these words. */
function reviewOf(next: () => string, kind: 'merge' | 'forget' | 'mint'): Review {
  const [word, more] = [next(), next()]
  const facts = {
    merge: undefined,
    forget: {
      kind: 'forget',
      notes: 1,
      versions: 1,
      copies: [{ branch: next(), path: next() }],
      more_copies: 1,
      holders: [{ did: DID, name: next() }],
      records: 1,
      derived: { branches: [next(), next()], more_branches: 1, commits: 1, handed: [{ did: DID, name: next() }] },
      not_covered: [next()],
      reason: next(),
    },
    mint: {
      kind: 'mint',
      operation: next(),
      to: { name: next(), did: DID, known: next() },
      from: { name: next(), did: DID, known: null },
      lease: lease(next()).lease,
      grant: { level: next(), scope: [next()], audience: [next(), '*'], depth: 1, task: next(), max_age_ms: 1 },
      work: {
        agent: next(),
        text: next(),
        context: next(),
        withheld: [{ id: next(), label: next() }],
        more_withheld: 1,
      },
      ttl_ms: null,
      expires_at: null,
      token: true,
      parent: next(),
      under: [{ from: party(next()), to: party(next()), level: next() }],
      document: next(),
      tainted_by: { label: next(), more: true, reads: [{ home: next(), path: next(), oid: next(), label: next() }] },
      wish: next(),
    },
  }[kind]
  const change = (op: string) => ({
    op,
    path: next(),
    path_old: next(),
    mode_old: next(),
    mode_new: next(),
    sha256_old: next(),
    sha256_new: next(),
    size_old: 1,
    size_new: 2,
    label_old: next(),
    label_new: next(),
  })
  const card = {
    v: 1,
    id: next(),
    kind,
    nas: DID,
    home: next(),
    owner: party(next()),
    target: next(),
    source: next(),
    meaning: next(),
    base: next(),
    head: next(),
    result_tree: next(),
    diff: next(),
    changes: { add: 0, change: 1, delete: 1, rename: 0, label: 0, send: 0, bytes_old: 1, bytes_new: 2 },
    conflicts: 0,
    labels: [next(), next()],
    taint: true,
    policy: next(),
    asked_by: { ...party(next()), door: next(), lease: lease(next()) },
    exec: next(),
    made_by: [
      {
        run: next(),
        actor: party(next()),
        lease: lease(next()),
        commits: 1,
        reads: 2,
        label: next(),
        outside: [{ path: next(), label: next() }],
        more_outside: 1,
      },
    ],
    more_makers: 1,
    unrecorded: 1,
    risks: [{ id: next(), severity: 'red', count: 1 }],
    ...(facts === undefined ? {} : { facts }),
    log: { size: 7, root: next() },
    witnessed: { size: 7, at: 1, by: [party(next())] },
    opened_at: 1,
    expires_at: 2,
  }
  const texts = [
    { path: 'a', form: 'diff', text: word, more_lines: 3 },
    { path: 'b', form: 'content', text: null, why: more, more_lines: 0 },
  ]
  const changes = [{ ...change('change'), path: 'a' }, { ...change('delete'), path: 'b' }, change('send')]
  return {
    card,
    digest: next(),
    state: 'open',
    field: next(),
    quick: 0,
    left: { [next()]: 1 },
    changes,
    texts,
  } as unknown as Review
}

/** Words one after another, and the same again. */
const from = (list: readonly string[]) => {
  let at = 0
  return () => list[at++ % list.length] ?? ''
}

const kinds = fc.constantFrom('merge' as const, 'forget' as const, 'mint' as const)
const lists = fc.array(words, { minLength: 7, maxLength: 23 })

/** Characters that a terminal must not get; a tab is one behind the margin of somebody's text. */
const steeringIn = (text: string): string[] =>
  text
    .split('\n')
    .flatMap((line) => Array.from(line.startsWith('    | ') ? line.replaceAll('\t', '') : line))
    .filter((one) => isSteering(one.codePointAt(0) ?? 0))

test('attack 32: no line of a card holds a control, bidi, zero-width, tag, private or escape character', () => {
  fc.assert(
    fc.property(kinds, lists, (kind, list) => {
      const review = reviewOf(from(list), kind)
      for (const text of [cardText(review), cardText(review, 200), cardLine(review), visible(cardText(review))])
        expect(steeringIn(text)).toEqual([])
    }),
    { numRuns: 500 },
  )
})

test('attack 32: no word adds a line to a card that is not behind the margin of a text', () => {
  const own = (text: string) => text.split('\n').filter((line) => !line.startsWith('    | '))
  fc.assert(
    fc.property(kinds, lists, (kind, list) => {
      // two words that are alike are told as one: so are these
      const honest = reviewOf(from(list.map((word) => word.replaceAll(/[^\p{L}\p{N}]/gu, 'x'))), kind)
      const told = own(cardText(reviewOf(from(list), kind)))
      expect(told.filter((line) => /^(?:RISKS|SIGNED WITH A DECISION|CHANGES {2}.*)$/.test(line))).toHaveLength(3)
      expect(told.filter((line) => line.startsWith('digest     '))).toHaveLength(1)
      expect(Math.abs(told.length - own(cardText(honest)).length)).toBeLessThanOrEqual(2)
    }),
    { numRuns: 300 },
  )
})

test('attack 32: what is said of a forgetting that was approved is escaped too', () => {
  fc.assert(
    fc.property(words, words, (branch, name) => {
      const derived = { branches: [branch], more_branches: 1, commits: 2, handed: [{ did: DID, name }] }
      const done: Decided = { card: 'gate_1', outcome: 'approved', forgotten: ['mem_1'], report: [], derived }
      expect(steeringIn(forgottenText(done))).toEqual([])
    }),
  )
})

test('attack 32: JSON for a program reads as the same value, and steers no terminal on the way', () => {
  fc.assert(
    fc.property(kinds, lists, (kind, list) => {
      const review = reviewOf(from(list), kind)
      const line = jsonLine(review)
      expect(steeringIn(line)).toEqual([])
      expect(JSON.parse(line)).toEqual(JSON.parse(JSON.stringify(review)))
    }),
    { numRuns: 200 },
  )
})
