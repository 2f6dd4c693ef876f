import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { LIMITS, signDocument, until } from '@csb/core'
import { key, openStore } from '@csb/store'
import {
  appendRecord,
  cardDigest,
  changesDigest,
  changesOf,
  getCard,
  listCards,
  policyDigest,
  revoke,
  signApproval,
  signCompromise,
  signRevocation,
  takeKeyStatement,
  trust,
  grantHash,
  type Card,
  type GateSubject,
} from '@csb/authority'
import { HOUR, NOW, agent, node, otherNode, owner, refusal, reopened, stranger, thrownBy } from './cast.ts'
import { actsOf, change, decided, lease, opened, resigned, signed, stand, subjectOf } from './gate-cast.ts'

const STALE = (field: string) => ({ outcome: 'void', field })

describe('an approval', () => {
  test('L1.7 approves the difference that the node computed, and the act happens once', async () => {
    const { store, card } = await stand()
    expect(card.diff).toBe(changesDigest(subjectOf().changes))
    const approval = signed(card)
    expect(approval.gate).toMatchObject({ diff: card.diff, card: cardDigest(card), base: card.base, head: card.head })
    expect(await decided(store, approval, card)).toMatchObject({ outcome: 'approved', value: 'done' })
    expect(actsOf(store.view())).toBe(1)
    expect(getCard(store.view(), card.id)).toMatchObject({ state: 'approved', approval })
    expect(await listCards(store.view())).toEqual([])
  })

  test('L1.7 is void when the difference changed, and nothing happens', async () => {
    const { store, card } = await stand()
    const subject = subjectOf({ changes: [change('notes/a.md'), change('notes/b.md', { sha256_new: '3'.repeat(64) })] })
    expect(await decided(store, signed(card), card, { subject })).toMatchObject(STALE('diff'))
    expect(actsOf(store.view())).toBe(0)
    expect(getCard(store.view(), card.id)).toMatchObject({ state: 'void', field: 'diff' })
    // the difference comes back: the approval does not
    await expect(decided(store, signed(card), card)).rejects.toMatchObject({
      code: 'GATE_STALE',
      details: { field: 'diff' },
    })
  })

  test('L1.7 holds for the digest it names and for no other card', async () => {
    const { store, card } = await stand()
    const other = await opened(store, subjectOf({ changes: [change('notes/c.md')], source: 'runs/other' }))
    await expect(decided(store, signed(other), card)).rejects.toMatchObject({
      code: 'GATE_STALE',
      details: { field: 'diff' },
    })
    expect(getCard(store.view(), card.id).state).toBe('open')
    expect(await decided(store, signed(card), card)).toMatchObject({ outcome: 'approved' })
  })

  test.each<[string, Partial<GateSubject>]>([
    ['base', { base: 'e'.repeat(64) }],
    ['head', { head: 'e'.repeat(64) }],
    ['result_tree', { resultTree: 'e'.repeat(64) }],
    ['diff', { changes: [change('notes/a.md')] }],
    ['policy', { policy: policyDigest({ protected: [] }) }],
    ['target', { target: 'release' }],
    ['owner', { owner: stranger.did }],
    ['card', { conflicts: 1 }],
    ['card', { commits: ['f'.repeat(64)] }],
  ])('attack 30: %s changed between card and act', async (field, extra) => {
    const { store, card } = await stand()
    expect(await decided(store, signed(card), card, { subject: subjectOf(extra) })).toMatchObject(STALE(field))
    expect(actsOf(store.view())).toBe(0)
  })

  test('attack 30: labels changed between card and act', async () => {
    const { store, card } = await stand()
    const relabelled = subjectOf().changes.map((one) => ({ ...one, label_new: 'public:owner' }))
    const done = await decided(store, signed(card), card, { subject: subjectOf({ changes: relabelled }) })
    expect(done.outcome).toBe('void')
    expect(['diff', 'labels']).toContain(done.outcome === 'void' ? done.field : '')
  })

  test('attack 30: what is to be merged is gone', async () => {
    const { store, card } = await stand()
    expect(await decided(store, signed(card), card, { subject: undefined })).toMatchObject(STALE('head'))
  })

  test('attack 30: the lease behind it was revoked', async () => {
    const { store, card } = await stand()
    await store.transact((tx) => revoke(tx, signRevocation({ target: grantHash(lease), now: NOW }, owner), NOW))
    expect(await decided(store, signed(card), card)).toMatchObject(STALE('lease'))
  })

  test('attack 30: the lease behind it expired', async () => {
    const { store } = await stand()
    const late = NOW + 48 * HOUR - 1000
    const card = await opened(store, subjectOf({ source: 'runs/late' }), late)
    const now = NOW + 48 * HOUR
    const subject = subjectOf({ source: 'runs/late' })
    expect(await decided(store, signed(card, 'approve', owner, now), card, { now, subject })).toMatchObject(
      STALE('lease'),
    )
  })

  test("attack 30: the owner's key is said to be in other hands: it decides nothing, and the card stays", async () => {
    const { store, card } = await stand()
    await store.transact((tx) => takeKeyStatement(tx, signCompromise(owner.did, NOW, owner), NOW))
    for (const decision of ['approve', 'reject'] as const)
      await expect(decided(store, signed(card, decision), card, { decision })).rejects.toMatchObject(
        refusal('revoked', { field: 'approver' }),
      )
    expect(actsOf(store.view())).toBe(0)
    expect(getCard(store.view(), card.id).state).toBe('open')
  })

  test('attack 30: a name on the card changed', async () => {
    const { store, card } = await stand()
    await store.transact((tx) => trust(tx, { did: agent.did, name: 'Mallory', ceiling: 'request' }))
    expect(await decided(store, signed(card), card)).toMatchObject(STALE('card'))
  })

  test('attack 30: a card that nobody decided on is over after a day', async () => {
    const { store, card } = await stand()
    const now = NOW + LIMITS.gateCardMs
    expect(await decided(store, signed(card, 'approve', owner, now), card, { now })).toMatchObject(STALE('expires_at'))
  })

  test('attack 30: the record behind the card was rewritten', async () => {
    const { store, card } = await stand()
    await store.transact((tx) => tx.put(key('header', 0), new Uint8Array(40)))
    expect(await decided(store, signed(card), card)).toMatchObject(STALE('log'))
  })
})

describe('attack 31: an approval replayed or turned', () => {
  test('one approval acts once, also after a restart', async () => {
    const { store, card } = await stand()
    const approval = signed(card)
    await decided(store, approval, card)
    await expect(decided(store, approval, card)).rejects.toMatchObject(refusal('already_used', { field: 'card' }))
    const again = await reopened(store)
    await expect(decided(again, approval, card)).rejects.toMatchObject(refusal('already_used', { field: 'card' }))
    expect(actsOf(again.view())).toBe(1)
  })

  test('two approvals for one card: the first acts, the second does not', async () => {
    const { store, card } = await stand()
    const results = await Promise.allSettled([decided(store, signed(card), card), decided(store, signed(card), card)])
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(actsOf(store.view())).toBe(1)
  })

  test('the same nonce on another card is refused', async () => {
    const { store, card } = await stand()
    const first = signed(card)
    await decided(store, first, card)
    const other = await opened(store, subjectOf({ source: 'runs/other' }))
    const turned = resigned(signed(other), { nonce: first.gate.nonce })
    await expect(decided(store, turned, other)).rejects.toMatchObject(refusal('replayed', { field: 'nonce' }))
  })

  test('for another node or another home', async () => {
    const { store, card } = await stand()
    const elsewhere = decided(store, signed(card), card, { node: otherNode.did })
    await expect(elsewhere).rejects.toMatchObject(refusal('wrong_audience', { field: 'nas' }))
    const home = resigned(signed(card), { home: `home_${'b'.repeat(26)}` })
    await expect(decided(store, home, card)).rejects.toMatchObject({ code: 'GATE_STALE', details: { field: 'home' } })
  })

  test('a member that is missing, empty or unknown is refused, never passed over', async () => {
    const { store, card } = await stand()
    const approval = signed(card)
    for (const name of Object.keys(approval.gate)) {
      const { [name]: _, ...rest } = approval.gate as Record<string, unknown>
      await expect(decided(store, { gate: rest }, card)).rejects.toMatchObject({ code: 'GRANT_INVALID' })
    }
    for (const extra of [{ diff: '' }, { card: '' }, { base: '' }, { comment: 'x' }, { v: 2 }])
      await expect(decided(store, resigned(approval, extra), card)).rejects.toMatchObject({
        code: 'GRANT_INVALID',
        details: { reason: 'malformed' },
      })
    expect(getCard(store.view(), card.id).state).toBe('open')
  })

  test('each member changed after signing breaks the signature or names another card', async () => {
    const { store, card } = await stand()
    const approval = signed(card)
    for (const [name, value] of Object.entries(approval.gate)) {
      const turned = typeof value === 'string' ? `${value.slice(0, -1)}${value.endsWith('1') ? '2' : '1'}` : value
      if (turned === value) continue
      const spoiled = { gate: { ...approval.gate, [name]: turned } }
      await expect(decided(store, spoiled, card), name).rejects.toMatchObject({ code: 'GRANT_INVALID' })
    }
  })

  test('the clock: expired, of the future, living too long', async () => {
    const { store, card } = await stand()
    const late = decided(store, signed(card), card, { now: NOW + LIMITS.gateApprovalMs })
    await expect(late).rejects.toMatchObject(refusal('expired', { field: 'expires_at' }))
    const early = signed(card, 'approve', owner, NOW + LIMITS.clockSkewMs + 1)
    await expect(decided(store, early, card)).rejects.toMatchObject(refusal('not_yet_valid', { field: 'decided_at' }))
    const long = resigned(signed(card), { expires_at: NOW + LIMITS.gateApprovalMs + 1 })
    await expect(decided(store, long, card)).rejects.toMatchObject(refusal('type_rule', { field: 'expires_at' }))
    const unseen = resigned(signed(card), { shown_at: NOW + 1 })
    await expect(decided(store, unseen, card)).rejects.toMatchObject(refusal('type_rule', { field: 'shown_at' }))
    expect(await decided(store, signed(card), card, { now: NOW + LIMITS.gateApprovalMs - 1 })).toMatchObject({
      outcome: 'approved',
    })
  })

  test('a clock that was set back brings no approval to life again', async () => {
    const { store, card } = await stand()
    const entry = {
      operation: 'x',
      outcome: 'done',
      actor: null,
      door: 'x',
      run: null,
      lease: null,
      reads: [],
    } as const
    await store.transact((tx) => appendRecord(tx, { ...entry, effect: {} }, NOW + LIMITS.gateApprovalMs))
    await expect(decided(store, signed(card), card)).rejects.toMatchObject(refusal('expired', { field: 'expires_at' }))
  })
})

describe('attack 33: who signs', () => {
  test.each([
    ['the node', node],
    ['the run', agent],
    ['another owner', stranger],
  ])('%s can not sign an approval', async (_, signer) => {
    const { store, card } = await stand()
    expect(thrownBy(() => signed(card, 'approve', signer))).toMatchObject(
      refusal('holder_mismatch', { field: 'approver' }),
    )
    const own = resigned(signed(card), { approver: signer.did }, signer)
    await expect(decided(store, own, card)).rejects.toMatchObject(refusal('holder_mismatch', { field: 'approver' }))
    const borrowed = resigned(signed(card), {}, signer)
    await expect(decided(store, borrowed, card)).rejects.toMatchObject(refusal('bad_signature'))
    expect(getCard(store.view(), card.id).state).toBe('open')
    expect(actsOf(store.view())).toBe(0)
  })

  test('not even where the home belongs to the key of the node', async () => {
    const { store, card } = await stand(subjectOf({ owner: node.did }))
    const own = signApproval({ card, decision: 'approve', shownAt: NOW, now: NOW }, node)
    await expect(decided(store, own, card, { subject: subjectOf({ owner: node.did }) })).rejects.toMatchObject(
      refusal('holder_mismatch', { field: 'approver' }),
    )
  })

  test('attack 5: a signature of another kind of document is none', async () => {
    const { store, card } = await stand()
    const { signature: _, ...body } = signed(card).gate
    const other = { gate: { ...body, signature: signDocument('grant', { gate: body }, owner) } }
    await expect(decided(store, other, card)).rejects.toMatchObject(refusal('bad_signature'))
  })
})

describe('a card whose text was tampered with', () => {
  const tampered = (card: Card): Card => ({ ...card, meaning: 'Merge nothing of importance', risks: [] })

  test('before it was shown: what the node computes is another one', async () => {
    const { store, card } = await stand()
    const shown = tampered(card)
    const entry = getCard(store.view(), card.id)
    await store.transact((tx) => tx.putJson(key('gate', card.id), { ...entry, card: shown }))
    expect(await decided(store, signed(shown), shown)).toMatchObject(STALE('card'))
    expect(actsOf(store.view())).toBe(0)
  })

  test('on its way: the person signed another card', async () => {
    const { store, card } = await stand()
    await expect(decided(store, signed(tampered(card)), card)).rejects.toMatchObject({
      code: 'GATE_STALE',
      details: { field: 'card' },
    })
  })
})

describe('the list of open cards', () => {
  test('the same wish finds the card that is open, another head replaces it', async () => {
    const { store, card } = await stand()
    expect((await opened(store)).id).toBe(card.id)
    const redrawn = await opened(store, subjectOf({ head: 'e'.repeat(64) }), NOW + 1)
    expect(redrawn.id).not.toBe(card.id)
    expect((await listCards(store.view())).map((entry) => entry.card.id)).toEqual([redrawn.id])
    expect(getCard(store.view(), card.id)).toMatchObject({ state: 'void', field: 'head' })
    expect(await listCards(store.view(), { all: true })).toHaveLength(2)
  })

  test('is bounded', async () => {
    const { store } = await stand()
    await store.transact(() => undefined)
    for (let i = 1; i < LIMITS.gateCards; i++) await opened(store, subjectOf({ source: `runs/${i}` }))
    await expect(opened(store, subjectOf({ source: 'runs/more' }))).rejects.toMatchObject({ code: 'BUSY' })
    const later = await opened(store, subjectOf({ source: 'runs/more' }), NOW + LIMITS.gateCardMs)
    expect((await listCards(store.view())).map((entry) => entry.card.id)).toEqual([later.id])
  })

  test('changes come in pages, all of them, and hash to the digest of the card', async () => {
    const changes = Array.from({ length: 1201 }, (_, i) => change(`n/${String(i).padStart(5, '0')}.md`))
    const { store, card } = await stand(subjectOf({ changes }))
    const read = []
    for (let page: number | null = 0; page !== null;) {
      const part = changesOf(store.view(), card.id, page)
      read.push(...part.items)
      page = part.next
    }
    expect(changesDigest(read)).toBe(card.diff)
    expect(thrownBy(() => changesOf(store.view(), 'gate_none', 0))).toMatchObject({ code: 'NOT_FOUND' })
  })
})

describe('kill -9', () => {
  test('between approval and act: the card is open and nothing happened', async () => {
    const { folder, lines, end } = await killed('during')
    expect(lines).toEqual([])
    expect(end).toBe('SIGKILL')
    const store = await until(() => openStore(folder), 30_000, 'the lock of the killed process is free')
    onTestFinished(() => store.close())
    expect(actsOf(store.view())).toBe(0)
    const [entry] = await listCards(store.view())
    expect(entry?.state).toBe('open')
    const card = entry?.card ?? (await opened(store))
    const again = await decided(store, signed(card), card, { subject: subjectOf({ source: 'runs/0' }) })
    expect(again.outcome).toBe('approved')
    expect(actsOf(store.view())).toBe(1)
  })

  test('at any moment: a card is approved if and only if its act happened', async () => {
    const { folder, lines } = await killed('loop')
    const store = await until(() => openStore(folder), 30_000, 'the lock of the killed process is free')
    onTestFinished(() => store.close())
    const entries = await listCards(store.view(), { all: true })
    const approved = entries.filter(({ state }) => state === 'approved')
    expect(approved.length).toBeGreaterThanOrEqual(lines.length)
    expect(actsOf(store.view())).toBe(approved.length)
  })

  async function killed(mode: 'during' | 'loop') {
    const folder = await mkdtemp(join(tmpdir(), 'csb-gate-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const script = new URL('./gate-killed.ts', import.meta.url).pathname
    const child = spawn(process.execPath, ['--conditions=csb-source', script, join(folder, 'db'), mode], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const lines: string[] = []
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line)
      if (lines.length === 7) child.kill('SIGKILL')
    })
    const [, end] = (await once(child, 'close')) as [number | null, string | null]
    return { folder: join(folder, 'db'), lines, end }
  }
})
