import { describe, expect, test } from 'vitest'
import { signApproval, signRevocation, verifyRecord, type Card, type Decision } from '@csb/authority'
import { node, openRig, cardFor, owner, type Rig, type ShownCard } from './gate-rig.ts'

type Write = { commit: string }
type Note = { id: string; label: string }
type Tail = {
  items: { header: { operation: string; outcome: string; code: string | null }; payload: { effect: object } }[]
}

const approvalOf = (rig: Rig, card: Card, decision: Decision = 'approve', by = owner) =>
  signApproval({ card, decision, shownAt: rig.clock.now(), now: rig.clock.now() }, by)

const approve = (rig: Rig, card: Card, approval: unknown = approvalOf(rig, card)) =>
  rig.person.call<{ outcome: string; commit: string }>('gate.approve', { card: card.id, approval })

async function withFile() {
  const rig = await openRig()
  await rig.agent.call('files.write', { branch: 'runs/1', path: 'a.md', text: 'tea' })
  const lower = (label = 'public:owner') => rig.agent.call('files.label', { branch: 'runs/1', path: 'a.md', label })
  const labelNow = async () =>
    (await rig.person.call<{ label: { level: string } }>('files.read', { branch: 'runs/1', path: 'a.md' })).label.level
  return { rig, lower, labelNow }
}

describe('a label that would be lowered', () => {
  test('L1.7 waits for the owner, and is lowered as it was approved', async () => {
    const { rig, lower, labelNow } = await withFile()
    const card = await cardFor(rig, lower())
    expect(card).toMatchObject({ kind: 'lower-label', target: 'runs/1:a.md', source: 'public:owner' })
    expect(card.asked_by).toMatchObject({ name: '若兰 🌸', lease: { hash: rig.agent.lease } })
    expect(card.risks.map(({ id }) => id)).toEqual([
      'lowers-label',
      'becomes-public',
      'first-of-lease',
      'stale-status',
      'unwitnessed',
    ])
    expect(await labelNow()).toBe('private')
    const { outcome, commit } = await approve(rig, card)
    expect(outcome).toBe('approved')
    expect(await labelNow()).toBe('public')
    expect(await rig.person.call('record.explain', { commit })).toMatchObject({
      operation: 'gate.approve',
      approval: { card: card.id, diff: card.diff, approver: { did: owner.did } },
    })
    await verifyRecord(rig.store.view())
  })

  test('L1.7 is not lowered when the branch moved meanwhile: void, recorded, asked for anew', async () => {
    const { rig, lower, labelNow } = await withFile()
    const card = await cardFor(rig, lower())
    const approval = approvalOf(rig, card)
    await rig.agent.call('files.write', { branch: 'runs/1', path: 'a.md', text: 'something else' })
    const refused = { code: 'GATE_STALE', details: { card: card.id, field: 'base' } }
    await expect(approve(rig, card, approval)).rejects.toMatchObject(refused)
    expect(await labelNow()).toBe('private')
    const { items } = await rig.person.call<Tail>('record.tail', { limit: 2 })
    expect(items.map(({ header }) => [header.operation, header.outcome, header.code])).toEqual([
      ['gate.approve', 'refused', 'GATE_STALE'],
      ['gate.approve', 'done', null],
    ])
    expect(items[1]?.payload.effect).toMatchObject({ card: card.id, outcome: 'void', field: 'base' })
    await expect(approve(rig, card, approval)).rejects.toMatchObject(refused)
    const redrawn = await cardFor(rig, lower())
    expect(redrawn.id).not.toBe(card.id)
    expect(await approve(rig, redrawn)).toMatchObject({ outcome: 'approved' })
  })

  test('is not lowered when what it is about is gone', async () => {
    const { rig, lower } = await withFile()
    const card = await cardFor(rig, lower())
    await rig.agent.call('files.write', { branch: 'runs/1', path: 'a.md', delete: true })
    await expect(approve(rig, card)).rejects.toMatchObject({ code: 'GATE_STALE', details: { field: 'head' } })
  })

  test('is not lowered when the lease of who asked was revoked', async () => {
    const { rig, lower } = await withFile()
    const card = await cardFor(rig, lower())
    const { revocation } = signRevocation({ target: rig.agent.lease, now: rig.clock.now() }, owner)
    await rig.person.call('authority.revoke', { revocation })
    await expect(approve(rig, card)).rejects.toMatchObject({ code: 'GATE_STALE', details: { field: 'lease' } })
  })

  test('of a note: a new version of the same words', async () => {
    const rig = await openRig()
    const note = await rig.person.call<Note>('memory.create', {
      entry: { content: 'tea', type: 'lesson', level: 'hot' },
    })
    const wish = () => rig.agent.call('memory.label', { id: note.id, label: 'trusted:owner' })
    const card = await cardFor(rig, wish())
    expect(card).toMatchObject({ target: note.id, changes: { label: 1 } })
    expect((await cardFor(rig, wish())).id).toBe(card.id)
    await approve(rig, card)
    expect(await rig.person.call('memory.get', { id: note.id })).toMatchObject({
      content: 'tea',
      label: 'trusted:owner',
    })
  })
})

describe('a label that is raised', () => {
  test('is raised at once, of a file and of a note', async () => {
    const { rig, lower, labelNow } = await withFile()
    await lower('sealed:agent')
    expect(await labelNow()).toBe('sealed')
    const note = await rig.person.call<Note>('memory.create', {
      entry: { content: 'tea', type: 'lesson', level: 'hot' },
    })
    await rig.agent.call('memory.label', { id: note.id, label: 'sealed:owner' })
    expect(await rig.person.call('memory.get', { id: note.id })).toMatchObject({ label: 'sealed:owner' })
    expect(await rig.person.call('gate.list', {})).toEqual({ items: [] })
  })
})

describe('attack 33: who comes to the gate', () => {
  test('an agent neither sees cards nor decides, not even with what the owner signed', async () => {
    const { rig, lower, labelNow } = await withFile()
    const card = await cardFor(rig, lower())
    const approval = approvalOf(rig, card)
    for (const [operation, input] of [
      ['gate.list', {}],
      ['gate.show', { card: card.id }],
      ['gate.approve', { card: card.id, approval }],
      ['gate.reject', { card: card.id, approval }],
    ] as const) {
      await expect(rig.agent.call(operation, input)).rejects.toMatchObject({ code: 'SCOPE_EXCEEDED' })
    }
    expect(await labelNow()).toBe('private')
  })

  test('the owner of a token, with the key of the node, can not approve', async () => {
    const { rig, lower } = await withFile()
    const card = await cardFor(rig, lower())
    const forged = { ...approvalOf(rig, { ...card, owner: { name: 'Ada', did: node.did } }, 'approve', node) }
    await expect(approve(rig, card, forged)).rejects.toMatchObject({
      code: 'GRANT_INVALID',
      details: { reason: 'holder_mismatch' },
    })
    await expect(approve(rig, card, { gate: { approved: true } })).rejects.toMatchObject({ code: 'GRANT_INVALID' })
    expect((await rig.person.call<ShownCard>('gate.show', { card: card.id })).state).toBe('open')
  })

  test('a lease without the word propose can not fill the list', async () => {
    const { rig } = await withFile()
    const wish = rig.scribe.call('files.label', { branch: 'runs/1', path: 'a.md', label: 'public:owner' })
    await expect(wish).rejects.toMatchObject({ code: 'SCOPE_EXCEEDED', details: { action: 'propose' } })
    expect(await rig.person.call('gate.list', { all: true })).toEqual({ items: [] })
  })
})

test('L1.7 what is given back to be changed is recorded, and whoever asked reads what has to change', async () => {
  const { rig, lower, labelNow } = await withFile()
  const card = await cardFor(rig, lower())
  const now = rig.clock.now()
  const approval = signApproval({ card, decision: 'needs-changes', words: 'not that far', shownAt: now, now }, owner)
  const done = await rig.person.call('gate.reject', { card: card.id, approval })
  expect(done).toEqual({ card: card.id, outcome: 'returned' })
  const { items } = await rig.person.call<Tail>('record.tail', { limit: 2 })
  const told = items.find(({ header }) => header.operation === 'gate.reject')
  expect(told?.payload.effect).toMatchObject({ card: card.id, outcome: 'returned' })
  await expect(lower()).rejects.toMatchObject({
    code: 'DENIED',
    details: { reason: 'needs_changes', card: card.id, words: 'not that far' },
  })
  expect(await rig.person.call('gate.list', {})).toEqual({ items: [] })
  const less = rig.agent.call('files.label', { branch: 'runs/1', path: 'a.md', label: 'trusted:owner' })
  expect((await cardFor(rig, less)).id).not.toBe(card.id)
  expect(await labelNow()).toBe('private')
})

test('a rejection is signed, recorded, and final', async () => {
  const { rig, lower, labelNow } = await withFile()
  const card = await cardFor(rig, lower())
  const approval = approvalOf(rig, card, 'reject')
  expect(await rig.person.call('gate.reject', { card: card.id, approval })).toEqual({
    card: card.id,
    outcome: 'rejected',
  })
  await expect(approve(rig, card)).rejects.toMatchObject({
    details: { reason: 'already_used', card: card.id, state: 'rejected' },
  })
  const { items } = await rig.person.call<Tail>('record.tail', { limit: 2 })
  expect(items[1]?.payload.effect).toMatchObject({ card: card.id, outcome: 'rejected' })
  expect(await labelNow()).toBe('private')
})

test('attack 31: an approval acts once, whoever brings it again', async () => {
  const { rig, lower } = await withFile()
  const card = await cardFor(rig, lower())
  const approval = approvalOf(rig, card)
  const both = await Promise.allSettled([approve(rig, card, approval), approve(rig, card, approval)])
  expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  const commits = await rig.person.call<{ items: Write[] }>('files.log', { branch: 'runs/1' })
  expect(commits.items).toHaveLength(3)
})
