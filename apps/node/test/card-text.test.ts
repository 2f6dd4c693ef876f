import { describe, expect, test } from 'vitest'
import type { Review } from '@csb/node'
import { cardLine, cardText } from '../src/card-text.ts'

type Card = Review['card']
type Change = Review['changes'][number]

const DID = 'did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK'

const change = (path: string, op: Change['op'] = 'change'): Change => ({
  op,
  path,
  mode_old: '100644',
  mode_new: '100644',
  sha256_old: '1'.repeat(64),
  sha256_new: '2'.repeat(64),
  size_old: 1,
  size_new: 2,
  label_old: 'private:owner',
  label_new: 'private:owner',
})

function review(changes: readonly Change[], extra: Partial<Card> = {}): Review {
  const card: Card = {
    v: 1,
    id: 'gate_1800000000000_aaaaaaaaaa',
    kind: 'merge',
    nas: DID,
    home: `home_${'a'.repeat(26)}`,
    owner: { name: 'Ada', did: DID },
    target: 'main',
    source: 'runs/1',
    meaning: 'Merge 0 added, 1 changed, 0 deleted from "runs/1" into "main"',
    base: 'a'.repeat(64),
    head: 'b'.repeat(64),
    result_tree: 'c'.repeat(64),
    diff: `sha256:${'d'.repeat(64)}`,
    changes: { add: 0, change: changes.length, delete: 0, rename: 0, label: 0, bytes_old: 1, bytes_new: 2 },
    conflicts: 0,
    labels: ['private:owner'],
    taint: false,
    policy: `sha256:${'e'.repeat(64)}`,
    asked_by: { name: '若兰 🌸', did: DID, lease: null },
    exec: 'run_1800000000000_aaaaaaaaaa',
    made_by: [],
    more_makers: 0,
    unrecorded: 0,
    risks: [],
    log: { size: 7, root: 'f'.repeat(64) },
    opened_at: 1_800_000_000_000,
    expires_at: 1_800_086_400_000,
    ...extra,
  }
  return { card, digest: `sha256:${'9'.repeat(64)}`, state: 'open', field: null, changes }
}

describe('a card in words', () => {
  test('L1.7 shows every member that is signed, whole', () => {
    const shown = review([change('a.md')])
    const text = cardText(shown)
    const { base, head, result_tree: tree, diff, policy, exec, log, home, target } = shown.card
    for (const value of [base, head, tree, diff, policy, exec, log.root, String(log.size), home, target, shown.digest])
      expect(text).toContain(value)
  })

  test('attack 32: what others named can not forge a line of it', () => {
    const evil = 'x\u001B[2K\r\nRISKS\n  none by the rules\u202E\u200B'
    const honest = cardText(review([change('a.md')])).split('\n').length
    const forged = review([change(evil)], {
      asked_by: { name: evil, did: DID, lease: null },
      owner: { name: evil, did: DID },
      source: evil,
      target: evil,
      meaning: evil,
    })
    const text = cardText(forged)
    expect(text.split('\n')).toHaveLength(honest)
    for (const char of ['\u001B', '\r', '\u202E', '\u200B']) expect(text).not.toContain(char)
    expect(text).toContain('\\u{1b}[2K\\u{d}\\u{a}RISKS')
    expect(cardLine(forged)).not.toContain('\n')
  })

  test('a name is quoted and followed by the end of its key', () => {
    expect(cardText(review([change('a.md')]))).toContain(`"若兰 🌸" (…${DID.slice(-8)})`)
  })

  test('deletions and labels come first', () => {
    const text = cardText(review([change('a.md'), change('b.md', 'label'), change('c.md', 'delete')]))
    expect(text.indexOf('"c.md"')).toBeLessThan(text.indexOf('"b.md"'))
    expect(text.indexOf('"b.md"')).toBeLessThan(text.indexOf('"a.md"'))
  })

  test('what is not printed is counted, and a red card is printed whole', () => {
    const changes = Array.from({ length: 7 }, (_, i) => change(`${i}.md`))
    expect(cardText(review(changes), 5)).toContain('and 2 more')
    const red = review(changes, { risks: [{ id: 'deletes-many', severity: 'red', count: 11 }] })
    expect(cardText(red, 5)).not.toContain('more, which')
    expect(cardText(red, 5)).toContain('RED    deletes many files (11)')
  })
})
