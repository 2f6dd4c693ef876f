/** What stands behind a commit, in words: what was read before under the same lease, as far as it is told. */
import { expect, test } from 'vitest'
import { OWNER_PRIVATE } from '@csb/core'
import { explainedText, type Explained } from '../src/explain-text.ts'

const NONE: Explained['earlier'] = { reads: [], erased: 0, more: 0 }

const text = (earlier: Explained['earlier'], merged: Explained['merged'] = []): string =>
  explainedText({
    commit: 'a'.repeat(64),
    seq: 7,
    at: 1_800_000_000_000,
    operation: 'files.write',
    actor: { did: 'did:key:z6Mk', name: 'clerk' },
    run: null,
    lease: null,
    basis: null,
    approval: null,
    readCount: 0,
    reads: [],
    earlier,
    merged,
    mergedMore: false,
    imported: null,
    inclusion: null,
    settled: null,
  })

test('L1.5 nothing was read only where nothing was read before either', () => {
  expect(text(NONE)).toContain('nothing')
  for (const some of [
    { ...NONE, more: 3 },
    { ...NONE, erased: 1 },
  ])
    expect(text(some)).not.toContain('nothing')
})

test('L1.5 what is not told of earlier reads is counted, of merged commits as well', () => {
  const read = { path: 'notes/a.md', oid: 'b'.repeat(64), label: OWNER_PRIVATE }
  expect(text({ reads: [read], erased: 0, more: 12 })).toMatch(/notes\/a\.md[^]*at least 12 more/)
  const entry = { actor: { did: null, name: 'clerk' }, run: null, readCount: 0, reads: [] }
  const merged = [{ commit: 'c'.repeat(64), entry: { ...entry, earlier: { ...NONE, more: 5 } } }]
  expect(text(NONE, merged)).toContain('at least 5 more')
})
