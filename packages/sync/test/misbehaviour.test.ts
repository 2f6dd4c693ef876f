import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { LIMITS, canonicalize, createKeyPair, digestOf, fromUtf8, newId } from '@csb/core'
import { renderNote, type Note } from '@csb/memory'
import type { Row } from '../src/messages.ts'
import { pagesOf } from '../src/pages.ts'
import { syncSession } from '../src/session.ts'
import { FULL, NOW, createNode, sideOf, sync, type Node } from './nodes.ts'
import { scripted } from './ports.ts'

const nodes: Node[] = []
let nas: Node

beforeEach(async () => {
  nas = await createNode('nas', createKeyPair().did)
  nodes.push(nas)
})

afterAll(async () => {
  for (const node of nodes) await node.close()
})

/** What a peer says that has nothing, in order. */
const compartments = (label: string) => [{ label, count: 1, root: digestOf('some') }]
const hello = (list: unknown = []) => ({ type: 'hello', compartments: list, tombstones: digestOf(''), last: true })
const nothing = { type: 'want', ids: [], last: true }
const done = { type: 'done', compartments: [], tombstones: digestOf(''), last: true }

async function talk(...replies: unknown[]) {
  const port = scripted(replies.map((reply) => (typeof reply === 'function' ? (reply as () => unknown) : () => reply)))
  return syncSession(
    port,
    sideOf(nas, () => FULL),
  )
}

/** A note as another node would have written it, and its row. */
async function foreign(content: string, label = 'public:owner'): Promise<{ note: Note; text: string; row: Row }> {
  const other = await createNode('other', createKeyPair().did)
  nodes.push(other)
  const id = await other.create(content, label)
  const [state] = await other.states()
  const note = other.note(id)
  return { note, text: fromUtf8(renderNote(note)) ?? '', row: [id, state?.hlc ?? '', other.key.did, state?.oid ?? ''] }
}

/** A session in which the peer lists one row and then sends these items. */
const sending = (row: Row, label: string, ...messages: unknown[]) =>
  talk(hello(compartments(label)), { type: 'list', label, rows: [row], last: true }, nothing, ...messages)

const misbehaved = { code: 'PEER_MISBEHAVED' }

describe('a peer that does not keep to the protocol is refused', () => {
  test.each([
    ['nothing at all', undefined],
    ['null', null],
    ['a text', 'hello'],
    ['another kind', done],
    ['no compartments', { type: 'hello', tombstones: '', last: true }],
    ['not whether it is the last', { type: 'hello', compartments: [], tombstones: '' }],
    ['one of nothing that is not the last', { type: 'hello', compartments: [], tombstones: '', last: false }],
    ['a label twice', hello([...compartments('public:owner'), ...compartments('public:owner')])],
    ['a compartment without a count', hello([{ label: 'public:owner', root: 'x' }])],
    ['a label longer than any', hello([{ label: 'x'.repeat(600), count: 1, root: 'x' }])],
    [
      'more compartments than a page',
      hello(Array.from({ length: LIMITS.syncPageRows + 1 }, (_, n) => ({ label: `${n}`, count: 1, root: 'x' }))),
    ],
  ])('at hello: %s', async (_name, message) => {
    await expect(talk(message)).rejects.toMatchObject(misbehaved)
  })

  const id = newId('memory', NOW)
  const row: Row = [id, '0'.repeat(16), 'did:key:z6Mk', 'a'.repeat(64)]
  const list = (rows: unknown, more: object = {}) => ({
    type: 'list',
    label: 'public:owner',
    rows,
    last: true,
    ...more,
  })

  test.each([
    ['of another label', list([row], { label: 'private:owner' })],
    ['with a row that is too short', list([[id, '0']])],
    [
      'with a row that is too long',
      list([
        [
          ...row,
          '{"made":["0000000000000001 did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK public:owner"]}',
          'x',
        ],
      ]),
    ],
    ['with an id that is none', list([['../../etc/passwd', '0', 'x', 'y']])],
    ['with a member that is no text', list([[id, 5, 'x', 'y']])],
    ['with more rows than a page', list(Array.from({ length: LIMITS.syncPageRows + 1 }, () => row))],
    ['that says a row twice', list([row, row])],
    ['that is empty and not the last', list([], { last: false })],
    ['that does not say whether it is the last', { type: 'list', label: 'public:owner', rows: [] }],
  ])('a list %s', async (_name, message) => {
    await expect(talk(hello(compartments('public:owner')), message)).rejects.toMatchObject(misbehaved)
  })

  test('labels without end are left at the bound', async () => {
    let at = 0
    const page = () => ({
      ...hello(
        Array.from({ length: LIMITS.syncPageRows }, () => ({ label: `public:owner:t${at++}`, count: 1, root: 'x' })),
      ),
      last: false,
    })
    await expect(talk(page)).rejects.toMatchObject(misbehaved)
    expect(at).toBeLessThanOrEqual(LIMITS.syncLabels + LIMITS.syncPageRows)
  })

  test('lists without end are left at the bound', async () => {
    let at = 0
    const page = () =>
      list(
        Array.from({ length: LIMITS.syncPageRows }, () => [`mem_${String(NOW)}_${at++}`, '0'.repeat(16), 'x', 'y']),
        { last: false },
      )
    const before = nas.tree()
    await expect(talk(hello(compartments('public:owner')), page)).rejects.toMatchObject(misbehaved)
    expect(at).toBeLessThanOrEqual(LIMITS.syncRows + LIMITS.syncPageRows)
    expect(nas.tree()).toBe(before)
  })

  test('lists of long rows are left at their bound in bytes, before that in rows', async () => {
    let at = 0
    const long = ['1', '2', '3'].map((digit) => digit.repeat(LIMITS.labelChars))
    const page = () =>
      list(
        Array.from({ length: LIMITS.syncPageRows }, () => [`mem_${String(NOW)}_${at++}`, ...long]),
        { last: false },
      )
    await expect(talk(hello(compartments('public:owner')), page)).rejects.toMatchObject(misbehaved)
    expect((at - LIMITS.syncPageRows) * 3 * LIMITS.labelChars).toBeLessThanOrEqual(LIMITS.syncListBytes)
    expect(await nas.states()).toEqual([])
  })

  test.each([
    ['what is no clock', 'x'.repeat(1000), { reason: 'not a label clock' }],
    ['more than a clock may be', `{"made":["${'x'.repeat(LIMITS.labelClockChars)}"]}`, { expected: 'list' }],
  ])('a row of a note that is not here, with %s, at once', async (_name, clock, details) => {
    const session = talk(hello(compartments('public:owner')), list([[...row, clock]]))
    await expect(session).rejects.toMatchObject({ ...misbehaved, details })
  })

  test('tombstones without end are left at once where a page is empty', async () => {
    const never = { type: 'tombstones', items: [], last: false }
    await expect(talk({ ...hello(), tombstones: 'x' }, never)).rejects.toMatchObject(misbehaved)
  })

  test('asking for what was not listed, or twice', async () => {
    const hidden = newId('memory', NOW)
    await expect(talk(hello(), { type: 'want', ids: [hidden], last: true })).rejects.toMatchObject(misbehaved)
    const own = await nas.create('mine')
    const empty = { type: 'list', label: 'public:owner', rows: [], last: true }
    await expect(talk(hello(), empty, { type: 'want', ids: [own, own], last: true })).rejects.toMatchObject(misbehaved)
  })

  test('letting go of what was not listed', async () => {
    const own = await nas.create('mine', 'private:owner')
    const theirs = { type: 'notes', items: [], gone: [newId('memory', NOW)], last: true }
    const empty = { type: 'list', label: 'private:owner', rows: [], last: true }
    await expect(talk(hello(), empty, nothing, theirs)).rejects.toMatchObject(misbehaved)
    expect(nas.note(own).entry.content).toBe('mine')
  })
})

describe('a note that is not what was asked for leaves nothing behind', () => {
  const notes = (items: readonly string[], last = true) => ({ type: 'notes', items, gone: [], last })

  test('as it was listed it is taken', async () => {
    const { text, row, note } = await foreign('good')
    await sending(row, 'public:owner', notes([text]), done)
    expect(nas.note(note.entry.id).entry.content).toBe('good')
  })

  test.each<[string, (text: string) => string]>([
    ['that is no note', () => 'hello'],
    ['with broken front matter', (text) => text.replace('---\n', '---\n: [\n')],
    ['in another spelling', (text) => text.replace('type: lesson', 'type:   lesson')],
    ['with a word changed', (text) => text.replace('good', 'evil')],
    ['with another label', (text) => text.replace('public:owner', 'private:owner')],
    ['with another id', (text) => text.replaceAll(/mem_\d{13}_\w+/g, newId('memory', NOW))],
    ['with a lone surrogate', (text) => text.replace('good', 'go\ud800d')],
  ])('one %s', async (_name, change) => {
    const { text, row } = await foreign('good')
    const other = await foreign('in the same page')
    const before = nas.tree()
    const list = { type: 'list', label: 'public:owner', rows: [row, other.row], last: true }
    const session = talk(hello(compartments('public:owner')), list, nothing, notes([other.text, change(text)]))
    await expect(session).rejects.toMatchObject(misbehaved)
    expect(nas.tree()).toBe(before)
    expect(await nas.states()).toEqual([])
  })

  test.each([
    ['nothing', ''],
    ['no JSON', 'private'],
    ['no change and no beginning', '{}'],
    ['another member', '{"more":1}'],
    ['a time that is none', '{"changes":{"did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK":"yesterday"}}'],
    [
      'another label than it was listed under',
      '{"made":["0000000000000001 did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK sealed:owner"]}',
    ],
    [
      'one making twice',
      '{"made":["0000000000000001 did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK","0000000000000001 did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK"]}',
    ],
    [
      'makings out of order',
      '{"made":["0000000000000002 did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK","0000000000000001 did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK"]}',
    ],
  ])('listed with a label clock that says %s', async (_name, clock) => {
    const other = await foreign('good')
    const { note, row } = other
    await nas.create('mine', 'public:owner', note.entry.id)
    const listed: Row = [row[0], row[1], row[2], row[3], clock]
    await expect(sending(listed, 'public:owner')).rejects.toMatchObject(misbehaved)
    expect(nas.note(note.entry.id).entry.content).toBe('mine')
  })

  test('listed with one label clock and bearing another', async () => {
    const { text, row } = await foreign('good')
    const listed: Row = [row[0], row[1], row[2], row[3], `{"changes":{"${row[2]}":"${row[1]}"}}`]
    await expect(sending(listed, 'public:owner', notes([text]))).rejects.toMatchObject(misbehaved)
    expect(await nas.states()).toEqual([])
  })

  test('listed under one label and bearing another', async () => {
    const { text, row } = await foreign('good', 'sealed:owner')
    await expect(sending(row, 'public:owner', notes([text]))).rejects.toMatchObject(misbehaved)
    expect(await nas.states()).toEqual([])
  })

  test('the same one again and again', async () => {
    const { text, row } = await foreign('good')
    await expect(sending(row, 'public:owner', notes([text], false), notes([text], false))).rejects.toMatchObject(
      misbehaved,
    )
  })

  test('pages with nothing in them', async () => {
    const { row } = await foreign('good')
    await expect(sending(row, 'public:owner', notes([], false))).rejects.toMatchObject(misbehaved)
  })

  test('one from the future is not taken, and moves no clock', async () => {
    const other = await createNode('other', createKeyPair().did)
    nodes.push(other)
    const id = await other.create('later')
    const ahead = { ...other.note(id), hlc: (NOW + 3_600_000).toString(16).padStart(12, '0') + '0000' }
    const text = fromUtf8(renderNote(ahead)) ?? ''
    const oid = digestOf(Buffer.concat([Buffer.from(`blob ${Buffer.byteLength(text)}\0`), Buffer.from(text)]))
    await sending([id, ahead.hlc, other.key.did, oid.slice('sha256:'.length)], 'public:owner', notes([text]), done)
    expect(await nas.states()).toEqual([])
    const mine = await nas.create('now')
    expect(nas.note(mine).hlc < ahead.hlc).toBe(true)
  })
})

describe('a tombstone that does not hold', () => {
  test.each<[string, (given: Record<string, unknown>) => unknown, string]>([
    ['of another home', (given) => ({ ...given, home: 'home_bbbbbbbbbbbbbbbbbbbbbbbbbb' }), 'DENIED'],
    ['for another note', (given) => ({ ...given, id: newId('memory', NOW) }), 'DENIED'],
    ['by another signer', (given) => ({ ...given, by: createKeyPair().did }), 'DENIED'],
    ['without a signature', ({ signature: _signature, ...given }) => given, 'MALFORMED'],
  ])('%s forgets nothing, and nothing of its page', async (_name, change, code) => {
    const kept = await nas.create('kept')
    const other = await createNode('other', createKeyPair().did)
    nodes.push(other)
    await sync(nas, other, { ofRight: FULL, ofLeft: FULL })
    await other.forget(kept)
    const good = await other.tombstone(kept)
    const bad = change(good)
    const message = { type: 'tombstones', items: [good, bad], last: true }
    await expect(talk({ ...hello(), tombstones: 'x' }, message)).rejects.toMatchObject({ code })
    expect(nas.note(kept).entry.content).toBe('kept')
    expect(await nas.tombstones()).toEqual([])
  })
})

describe('pages', () => {
  test('hold at most so many items and so many bytes, and lose none', () => {
    const items = Array.from({ length: 3000 }, (_, n) => ({ n, text: '漢'.repeat(n % 400) }))
    const pages = [...pagesOf(items)]
    expect(pages.flatMap((page) => page.items)).toEqual(items)
    for (const page of pages)
      expect(Buffer.byteLength(canonicalize(page.items))).toBeLessThan(LIMITS.syncPageBytes * 1.1)
    expect(pages.map(({ last }) => last).filter(Boolean)).toHaveLength(1)
    expect([...pagesOf([])]).toEqual([{ items: [], last: true }])
    expect([...pagesOf(Array.from({ length: LIMITS.syncPageRows + 1 }, (_, n) => n))]).toHaveLength(2)
  })
})
