/** What ends a card without an act. */
import { describe, expect, test } from 'vitest'
import { getCard, listCards, signApproval, type Card } from '@csb/authority'
import { NOW, owner, refusal } from './cast.ts'
import { actsOf, change, decided, opened, resigned, signed, stand, subjectOf } from './gate-cast.ts'

describe('a rejection', () => {
  test('is signed, kept, and ends the card', async () => {
    const { store, card } = await stand()
    const done = await decided(store, signed(card, 'reject'), card, { decision: 'reject' })
    expect(done).toMatchObject({ outcome: 'rejected' })
    expect(actsOf(store.view())).toBe(0)
    expect(getCard(store.view(), card.id)).toMatchObject({ state: 'rejected', settled_at: NOW })
    await expect(decided(store, signed(card), card)).rejects.toMatchObject(refusal('already_used', { field: 'card' }))
  })

  test('is not taken for an approval, nor the other way', async () => {
    const { store, card } = await stand()
    const wanted = refusal('type_rule', { field: 'decision' })
    await expect(decided(store, signed(card, 'reject'), card)).rejects.toMatchObject(wanted)
    await expect(decided(store, signed(card), card, { decision: 'reject' })).rejects.toMatchObject(wanted)
  })
})

describe('a card that is given back to be changed', () => {
  const returned = (card: Card, words?: string) =>
    signApproval(
      { card, decision: 'needs-changes', ...(words === undefined ? {} : { words }), shownAt: NOW, now: NOW },
      owner,
    )

  test('L1.7 is signed with what has to change, kept, ends the card, and is no approval', async () => {
    const { store, card } = await stand()
    const approval = returned(card, 'no notes of b')
    const wanted = refusal('type_rule', { field: 'decision' })
    await expect(decided(store, approval, card)).rejects.toMatchObject(wanted)
    expect(await decided(store, approval, card, { decision: 'reject' })).toMatchObject({ outcome: 'returned' })
    expect(actsOf(store.view())).toBe(0)
    expect(getCard(store.view(), card.id)).toMatchObject({ state: 'returned', settled_at: NOW, approval })
    await expect(decided(store, signed(card), card)).rejects.toMatchObject(refusal('already_used', { field: 'card' }))
  })

  test('is not asked for again as it is while it would be open, and is as soon as something of it is another', async () => {
    const { store, card } = await stand()
    await decided(store, returned(card, 'no notes of b'), card, { decision: 'reject' })
    await expect(opened(store)).rejects.toMatchObject({
      code: 'DENIED',
      details: { reason: 'needs_changes', card: card.id, words: 'no notes of b' },
    })
    expect(await listCards(store.view())).toEqual([])
    const changed = await opened(store, subjectOf({ changes: [change('notes/a.md')] }))
    expect(changed.id).not.toBe(card.id)
    expect((await opened(store, subjectOf(), card.expires_at)).id).not.toBe(card.id)
  })

  test('words stand with nothing else, and are part of what is signed', async () => {
    const { store, card } = await stand()
    for (const decision of ['approve', 'reject'] as const)
      await expect(
        decided(store, resigned(signed(card, decision), { words: 'x' }), card, { decision }),
      ).rejects.toMatchObject(refusal('type_rule', { field: 'words' }))
    const { gate } = returned(card, 'x')
    await expect(decided(store, { gate: { ...gate, words: 'y' } }, card, { decision: 'reject' })).rejects.toMatchObject(
      refusal('bad_signature'),
    )
    expect(await decided(store, returned(card), card, { decision: 'reject' })).toMatchObject({ outcome: 'returned' })
  })
})
