/** Forgetting waits for the owner: what the card says goes, all of it and nothing else. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { payloadsThatMention, signApproval, verifyRecord, type Card } from '@csb/authority'
import { commitFiles, getRef, readLog } from '@csb/files'
import { notePath } from '@csb/memory'
import { key } from '@csb/store'
import { NOW, cardFor, codeOf, createHouse, type House } from './house.ts'

const remember = async (house: House, content: string, label = 'private:owner') =>
  (await house.owned<{ id: string }>('memory.create', { entry: { content, level: 'warm', type: 'lesson' }, label })).id

const ask = (house: House, ids: readonly string[], reason = 'asked to') =>
  cardFor(house.owned('memory.forget', { ids, reason }), house.owned)

const approve = (house: House, card: Card) => {
  const now = house.clock.now()
  const approval = signApproval({ card, decision: 'approve', shownAt: now, now }, house.owner)
  return house.owned<{ commit: string; forgotten: string[]; report: { id: string; records: number }[] }>(
    'gate.approve',
    {
      card: card.id,
      approval,
    },
  )
}

/** Everything but the record and the cards. */
const dump = (house: House) => house.dump((fullKey) => /^(?:r[hpncr]|m\/record|a[copq])(?:\/|$)/.test(fullKey))

describe('asking to forget', () => {
  test('L1.7 opens a card that says how far it goes, and forgets nothing', async () => {
    const house = await createHouse()
    const id = await remember(house, 'tea')
    await house.owned('memory.delete', { id })
    await house.owned('memory.restore', { id })
    const before = await dump(house)
    const size = (await house.records()).length
    const card = await ask(house, [id])
    expect(card).toMatchObject({ kind: 'forget', target: id, meaning: `Forget 1 note of ${house.home} for good` })
    expect(card.facts).toMatchObject({
      kind: 'forget',
      notes: 1,
      versions: 3,
      copies: [],
      holders: [],
      reason: 'asked to',
    })
    expect(card.facts).toMatchObject({ not_covered: ['names', 'derivatives', 'peers', 'exports', 'backups'] })
    expect(card.risks[0]).toEqual({ id: 'can-not-be-undone', severity: 'red', count: 1 })
    expect(await dump(house)).toEqual(before)
    const told = (await house.records()).slice(size)
    expect(told.map(({ operation, outcome, code }) => [operation, outcome, code])).toEqual([
      ['memory.forget', 'done', null],
      ['memory.forget', 'refused', 'GATE_REQUIRED'],
    ])
    const { changes } = await house.owned<{ changes: object[] }>('gate.show', { card: card.id })
    expect(changes).toMatchObject([{ op: 'delete', path: notePath(id), label_old: 'private:owner', label_new: null }])
  })

  test('L1.7 the same wish is the same card, in whatever order the notes are named, and another reason is another', async () => {
    const house = await createHouse()
    const ids = [await remember(house, 'one'), await remember(house, 'two'), await remember(house, 'three')]
    const card = await ask(house, ids)
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray(ids, { minLength: 3 }),
        fc.array(fc.constantFrom(...ids)),
        async (all, more) => {
          expect((await ask(house, [...all, ...more])).id).toBe(card.id)
        },
      ),
      { numRuns: 10 },
    )
    const other = await ask(house, ids, 'another reason')
    expect(other.id).not.toBe(card.id)
    expect(other.head).not.toBe(card.head)
    expect((await ask(house, ids.slice(1))).head).not.toBe(card.head)
  })

  test('one note among them that is not there, or not to be seen, opens no card', async () => {
    const house = await createHouse()
    const id = await remember(house, 'one')
    const agent = await house.leased({ labels_max: 'trusted' })
    const before = await dump(house)
    expect(await codeOf(house.owned('memory.forget', { ids: [id, 'mem_1700000000000_none'] }))).toBe('NOT_FOUND')
    expect(await codeOf(house.service.perform(agent, 'memory.forget', { ids: [id] }))).toBe('NOT_FOUND')
    expect(await codeOf(house.owned('memory.forget', { ids: [] }))).toBe('INVALID_INPUT')
    expect(await house.owned('gate.list', { all: true })).toEqual({ items: [] })
    expect(await dump(house)).toEqual(before)
  })

  test('an agent may ask where its lease lets it propose, and never decide', async () => {
    const house = await createHouse()
    const id = await remember(house, 'one')
    const agent = await house.leased({ labels_max: 'private' })
    const card = await cardFor(house.service.perform(agent, 'memory.forget', { ids: [id] }), house.owned)
    const now = house.clock.now()
    const approval = signApproval({ card, decision: 'approve', shownAt: now, now }, house.owner)
    expect(await codeOf(house.service.perform(agent, 'gate.approve', { card: card.id, approval }))).toBe(
      'SCOPE_EXCEEDED',
    )
    const scribe = await house.leased({ actions: ['list', 'read', 'write'] })
    expect(await codeOf(house.service.perform(scribe, 'memory.forget', { ids: [id] }))).toBe('SCOPE_EXCEEDED')
    await expect(house.owned('memory.get', { id })).resolves.toMatchObject({ content: 'one' })
    await approve(house, card)
    expect(await codeOf(house.owned('memory.get', { id }))).toBe('NOT_FOUND')
  })
})

describe('an approved forgetting', () => {
  test('L1.7 L3.4 takes all notes of the card in one commit, once, and reports each', async () => {
    const house = await createHouse()
    const ids = [await remember(house, 'one'), await remember(house, 'two')].sort()
    const kept = await remember(house, 'three')
    const card = await ask(house, ids)
    const done = await approve(house, card)
    expect(done).toMatchObject({ outcome: 'approved', forgotten: ids })
    expect(done.report).toMatchObject(ids.map((id) => ({ id, cleared: 1, remains: [] })))
    const [last, ...older] = readLog(house.store.view(), { home: house.home, at: 'memory', limit: 50 })
    expect(last).toMatchObject({ commit: done.commit, message: 'forget 2 notes', trailers: { 'Csb-Gate': card.id } })
    expect(older).toHaveLength(4)
    for (const id of ids) {
      expect(await codeOf(house.owned('memory.get', { id }))).toBe('NOT_FOUND')
      expect(house.store.view().getJson(key('tombstone', house.home, id))).toMatchObject({ reason: 'asked to' })
    }
    await expect(house.owned('memory.get', { id: kept })).resolves.toMatchObject({ content: 'three' })
    await expect(approve(house, card)).rejects.toMatchObject({ details: { reason: 'already_used' } })
    expect(await house.owned('record.explain', { commit: done.commit })).toMatchObject({
      operation: 'gate.approve',
      approval: { card: card.id, approver: { did: house.owner.did } },
    })
  })

  test('L1.6 L3.4 the record says nothing of the notes any more, and verifies', async () => {
    const house = await createHouse()
    const id = await remember(house, 'one')
    await house.owned('memory.delete', { id })
    const view = () => house.store.view()
    const named = (await payloadsThatMention(view(), [id])).length
    const card = await ask(house, [id])
    expect(card.facts).toMatchObject({ records: named })
    const { report } = await approve(house, card)
    expect(report[0]?.records).toBeGreaterThanOrEqual(named)
    expect(await payloadsThatMention(view(), [id])).toEqual([])
    expect(await verifyRecord(view())).toMatchObject({ ok: true, erased: report[0]?.records })
    // that it was done, and by whose word, is still told
    expect((await house.records()).at(-1)).toMatchObject({
      operation: 'gate.approve',
      effect: { kind: 'forget', card: card.id, forgotten: 1 },
    })
  })

  test('what was asked is forgotten though more was said of the note since', async () => {
    const house = await createHouse()
    const id = await remember(house, 'one')
    const card = await ask(house, [id])
    const before = (await payloadsThatMention(house.store.view(), [id])).length
    expect(await codeOf(house.owned('memory.label', { id, label: 'public:owner' }))).toBe('GATE_REQUIRED')
    expect((await payloadsThatMention(house.store.view(), [id])).length).toBeGreaterThan(before)
    await approve(house, card)
    expect(await payloadsThatMention(house.store.view(), [id])).toEqual([])
  })
})

describe('an approval of a forgetting is void', () => {
  const copied = (house: House, branch: string, path: string, bytes: Uint8Array) =>
    house.store.transact((tx) =>
      commitFiles(tx, {
        home: house.home,
        branch,
        changes: [{ path, bytes }],
        author: { name: 'Ada', did: house.owner.did },
        message: 'm',
        trailers: {},
        now: NOW,
      }),
    )

  test.each<[string, string, (house: House, id: string) => Promise<unknown>]>([
    ['the note was deleted', 'base', (house, id) => house.owned('memory.delete', { id })],
    ['its label was raised', 'base', (house, id) => house.owned('memory.label', { id, label: 'sealed:owner' })],
    ['it was forgotten meanwhile', 'head', (house, id) => house.forget([id], 'another card')],
    [
      'a copy of its bytes lies elsewhere now',
      'head',
      async (house, id) => {
        const { text } = await house.owned<{ text: string }>('files.read', { branch: 'memory', path: notePath(id) })
        await copied(house, 'runs/copy', 'copy.md', Buffer.from(text))
      },
    ],
    [
      'a peer was in step since',
      'head',
      (house) => house.store.transact((tx) => tx.putJson(key('syncPeer', house.key.did, house.home), { at: NOW })),
    ],
  ])('L1.7 where %s', async (_, field, meddle) => {
    const house = await createHouse()
    const id = await remember(house, 'one')
    const other = await remember(house, 'two')
    const card = await ask(house, [id, other].sort())
    await meddle(house, id)
    const before = await dump(house)
    const head = getRef(house.store.view(), house.home, 'memory')?.commit
    await expect(approve(house, card)).rejects.toMatchObject({ code: 'GATE_STALE', details: { field } })
    expect(await dump(house)).toEqual(before)
    expect(getRef(house.store.view(), house.home, 'memory')?.commit).toBe(head)
    await expect(house.owned('memory.get', { id: other })).resolves.toMatchObject({ content: 'two' })
  })

  test('L1.7 where an entry that named the note has lost what it said meanwhile', async () => {
    const house = await createHouse()
    const items = ['one', 'two'].map((content) => ({ entry: { content, level: 'warm', type: 'lesson' } }))
    const made = await house.owned<{ items: { id: string }[] }>('memory.batch', { items })
    const [one = '', two = ''] = made.items.map(({ id }) => id)
    const card = await ask(house, [one])
    // the entry of the batch named both
    await house.forget([two])
    const before = await dump(house)
    await expect(approve(house, card)).rejects.toMatchObject({ code: 'GATE_STALE', details: { field: 'head' } })
    expect(await dump(house)).toEqual(before)
    await expect(house.forget([one])).resolves.toMatchObject({ forgotten: [one] })
  })

  test('L1.7 and one of a card that forgets less forgets nothing', async () => {
    const house = await createHouse()
    const [one, two] = [await remember(house, 'one'), await remember(house, 'two')]
    const [small, large] = [await ask(house, [one]), await ask(house, [one, two].sort())]
    const now = house.clock.now()
    const approval = signApproval({ card: small, decision: 'approve', shownAt: now, now }, house.owner)
    const turned = house.owned('gate.approve', { card: large.id, approval })
    await expect(turned).rejects.toMatchObject({ code: 'GATE_STALE' })
    await expect(house.owned('memory.get', { id: two })).resolves.toMatchObject({ content: 'two' })
  })
})
