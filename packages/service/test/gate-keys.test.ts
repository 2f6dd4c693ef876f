/** Whose key decides at the gate: the owner's of now, and neither one before it, nor one that followed for a thief. */
import { expect, test } from 'vitest'
import { createKeyPair, type KeyPair } from '@csb/core'
import {
  recoveryDigest,
  signApproval,
  signKeyChange,
  signRecovered,
  signRecovery,
  takeKeyStatements,
  type Card,
} from '@csb/authority'
import { NOW, cardFor, node, openRig, owner, type Rig, type ShownCard } from './gate-rig.ts'

const [thief, next, recovery] = [createKeyPair(), createKeyPair(), createKeyPair()]
const stolen = signKeyChange({ old: owner, next: thief, seq: 1, effectiveAt: NOW + 1 })
const named = signRecovery({ digest: recoveryDigest(recovery.did) }, owner)
const recovered = signRecovered({ old: owner.did, next, seq: 1, effectiveAt: NOW + 2 }, recovery)

const stating = ({ store, clock }: Rig, statements: readonly unknown[]) =>
  store.transact((tx) => takeKeyStatements(tx, statements, { now: clock.now(), also: [], except: [] }))

/** A file whose label an agent would lower. */
async function withFile() {
  const rig = await openRig()
  rig.clock.advance(10)
  await rig.agent.call('files.write', { branch: 'runs/1', path: 'a.md', text: 'tea' })
  const wish = () => rig.agent.call('files.label', { branch: 'runs/1', path: 'a.md', label: 'public:owner' })
  const labelNow = async () =>
    (await rig.person.call<{ label: { level: string } }>('files.read', { branch: 'runs/1', path: 'a.md' })).label.level
  return { rig, wish, labelNow }
}

/** The decision of that key, on the card as it is, or on one that is said to be its own. */
function approveBy(rig: Rig, card: Card, by: KeyPair) {
  const now = rig.clock.now()
  const own = { ...card, owner: { name: card.owner.name, did: by.did } }
  const approval = signApproval({ card: own, decision: 'approve', shownAt: now, now }, by)
  return rig.person.call<{ outcome: string }>('gate.approve', { card: card.id, approval })
}

test('L1.7 attack 33: neither the node, nor an agent, nor the recovery key approves, and the card stays open', async () => {
  const { rig, wish, labelNow } = await withFile()
  await stating(rig, [named])
  const card = await cardFor(rig, wish())
  for (const by of [node, recovery, thief, createKeyPair(new Uint8Array(32).fill(3))])
    await expect(approveBy(rig, card, by)).rejects.toMatchObject({
      code: 'GRANT_INVALID',
      details: { reason: 'holder_mismatch' },
    })
  expect((await rig.person.call<ShownCard>('gate.show', { card: card.id })).state).toBe('open')
  expect(await labelNow()).toBe('private')
  expect((await approveBy(rig, card, owner)).outcome).toBe('approved')
})

test.each(['reject', 'needs-changes'] as const)(
  'L1.7 a card that was open before the change: the key before settles it with no %s and no words',
  async (decision) => {
    const { rig, wish, labelNow } = await withFile()
    const card = await cardFor(rig, wish())
    await stating(rig, [signKeyChange({ old: owner, next, seq: 1, effectiveAt: NOW + 1 })])
    const now = rig.clock.now()
    const words = decision === 'reject' ? {} : { words: 'words of the former key' }
    const approval = signApproval({ card, decision, ...words, shownAt: now, now }, owner)
    await expect(rig.person.call('gate.reject', { card: card.id, approval })).rejects.toMatchObject({
      code: 'GATE_STALE',
      details: { card: card.id, field: 'owner' },
    })
    expect((await rig.person.call<ShownCard>('gate.show', { card: card.id })).state).toBe('void')
    // asked for again it is a card of the key that counts, and nobody hears words
    const again = await cardFor(rig, wish())
    expect(again.owner.did).toBe(next.did)
    expect((await approveBy(rig, again, next)).outcome).toBe('approved')
    expect(await labelNow()).toBe('public')
  },
)

test('L1.7 after a change the key before approves nothing, after a recovery neither does the one of the thief', async () => {
  const { rig, wish, labelNow } = await withFile()
  await stating(rig, [named, stolen])
  const ofThief = await cardFor(rig, wish())
  expect(ofThief.owner.did).toBe(thief.did)
  await expect(approveBy(rig, ofThief, owner)).rejects.toMatchObject({ details: { reason: 'holder_mismatch' } })
  await stating(rig, [recovered])
  const late = { code: 'GATE_STALE', details: { card: ofThief.id, field: 'owner' } }
  await expect(approveBy(rig, ofThief, thief)).rejects.toMatchObject(late)
  expect((await rig.person.call<ShownCard>('gate.show', { card: ofThief.id })).state).toBe('void')
  expect(await labelNow()).toBe('private')
  const card = await cardFor(rig, wish())
  expect(card.owner.did).toBe(next.did)
  expect((await approveBy(rig, card, next)).outcome).toBe('approved')
  expect(await labelNow()).toBe('public')
})
