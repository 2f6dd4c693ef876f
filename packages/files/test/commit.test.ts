import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { utf8 } from '@csb/core'
import { decodeCommit, encodeCommit, type Commit } from '../src/commit.ts'
import { NOW, OWNER } from './open-home.ts'

const person = { name: 'Ada', did: OWNER.did, at: NOW }
const commit: Commit = {
  tree: '1'.repeat(64),
  parents: [],
  author: person,
  committer: person,
  message: 'one',
  trailers: {},
}
const refused = (change: Partial<Commit>, code = 'INVALID_INPUT') =>
  expect(() => encodeCommit({ ...commit, ...change })).toThrow(expect.objectContaining({ code }))

const hex = fc.string({ unit: fc.constantFrom('0', '7', '9', 'a', 'f'), minLength: 64, maxLength: 64 })
const line = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
  .map((text) => text.replace(/[\p{Cc}\u2028\u2029<>]/gu, 'x').trim())
  .filter((text) => text !== '')
const people = fc.record({
  name: line,
  did: fc.constant(OWNER.did),
  at: fc.nat(4_000_000_000).map((seconds) => seconds * 1000),
})
const trailers = fc.dictionary(fc.constantFrom('Csb-Run', 'Csb-Lease', 'Csb-Home', 'Note'), line, {
  noNullPrototype: true,
})
const commits = fc.record({
  tree: hex,
  parents: fc.array(hex, { maxLength: 3 }),
  author: people,
  committer: people,
  message: fc
    .array(
      line.filter((text) => !text.includes(': ')),
      { minLength: 1, maxLength: 4 },
    )
    .map((lines) => lines.join('\n\n')),
  trailers,
})

describe('commits', () => {
  test('a commit reads back as it was written', () => {
    fc.assert(
      fc.property(commits, (value) => {
        expect(decodeCommit(encodeCommit(value))).toEqual(value)
      }),
      { numRuns: 500 },
    )
  })

  test('trailers are the last paragraph, so every clone shows them', () => {
    const encoded = encodeCommit({
      ...commit,
      message: 'title\n\nbody',
      trailers: { 'Csb-Run': 'run_1', 'Csb-Lease': 'sha256:aa' },
    })
    expect(Buffer.from(encoded).toString()).toMatch(/\n\ntitle\n\nbody\n\nCsb-Run: run_1\nCsb-Lease: sha256:aa\n$/)
  })

  test('line ends of other systems and space around a message are made plain', () => {
    expect(decodeCommit(encodeCommit({ ...commit, message: '\r\n\r\n one\r\ntwo  \n\n' })).message).toBe(' one\ntwo')
  })

  test('a paragraph that is not all trailers is part of the message', () => {
    const message = 'title\n\nSee: here\nand there'
    expect(decodeCommit(encodeCommit({ ...commit, message }))).toMatchObject({ message, trailers: {} })
  })

  test.each(['Csb-Run: forged', 'title\n\nCsb-Lease: forged', 'title\n\ncsb-run : forged', 'a\r\nCSB-X: y'])(
    'a message can not forge a trailer of the node: %j',
    (message) => refused({ message }),
  )

  test('what can not stand in a commit is refused', () => {
    refused({ message: ' \n ' })
    refused({ message: 'a\0b' })
    refused({ message: 'a\x1b[31mb' })
    refused({ message: 'x'.repeat(5000) }, 'TOO_LARGE')
    refused({ author: { ...person, name: 'Eve <eve@x>' } })
    refused({ author: { ...person, name: 'a\nparent b' } })
    refused({ author: { ...person, name: '' } })
    refused({ author: { ...person, at: -1 } })
    refused({ trailers: { 'Csb-Run': 'a\nCsb-Lease: b' } })
    refused({ trailers: { 'Csb Run': 'a' } })
    refused({ trailers: { 'Csb-Run': '' } })
  })

  test('bytes that are no commit are MALFORMED', () => {
    for (const text of ['', 'tree', `tree ${commit.tree}\n\nx`, `tree ${commit.tree}\nauthor a\ncommitter b\n\nx`]) {
      expect(() => decodeCommit(utf8(text))).toThrow(expect.objectContaining({ code: 'MALFORMED' }))
    }
    expect(() => decodeCommit(Uint8Array.of(0xff))).toThrow(expect.objectContaining({ code: 'MALFORMED' }))
  })
})
