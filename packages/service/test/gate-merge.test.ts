import { describe, expect, test } from 'vitest'
import { signApproval, type Card, type GateChange } from '@csb/authority'
import { MEMORY, getRef, readCommit } from '@csb/files'
import { cardFor, openRig, owner, type Rig } from './gate-rig.ts'

type Shown = { readonly changes: readonly GateChange[] }

const headOf = (rig: Rig, branch = 'main') => getRef(rig.store.view(), rig.home, branch)?.commit ?? ''

const write = (rig: Rig, path: string, text: string | null, branch = 'runs/1', label?: string) =>
  rig.agent.call<{ commit: string }>('files.write', {
    branch,
    path,
    ...(text === null ? { delete: true } : { text }),
    ...(label === undefined ? {} : { label }),
  })

function approve(rig: Rig, card: Card) {
  const now = rig.clock.now()
  const approval = signApproval({ card, decision: 'approve', shownAt: now, now }, owner)
  return rig.person.call<{ commit: string }>('gate.approve', { card: card.id, approval })
}

async function proposed() {
  const rig = await openRig()
  await write(rig, 'a.md', 'one\n')
  await write(rig, 'b.md', 'two\n')
  return { rig, card: await cardFor(rig, rig.agent.merge('runs/1')) }
}

/** Main holds a.md and b.md, and a second branch that began there. */
async function merged() {
  const { rig, card } = await proposed()
  await approve(rig, card)
  return rig
}

describe('a merge into the protected main', () => {
  test('L1.7 the card shows what the node computed, and the approval moves main to exactly that', async () => {
    const { rig, card } = await proposed()
    const root = headOf(rig)
    expect(card).toMatchObject({ base: root, head: headOf(rig, 'runs/1'), changes: { add: 3 }, target: 'main' })
    expect(card.made_by.map(({ lease }) => lease?.hash)).toEqual([rig.agent.lease, rig.agent.lease])
    const { changes } = await rig.person.call<Shown>('gate.show', { card: card.id })
    expect(changes.map(({ op, path }) => [op, path])).toEqual([
      // an agent's word is not the owner's
      ['add', '.csb/labels.json'],
      ['add', 'a.md'],
      ['add', 'b.md'],
    ])
    expect(headOf(rig)).toBe(root)

    const { commit } = await approve(rig, card)
    expect(headOf(rig)).toBe(commit)
    const made = readCommit(rig.store.view(), rig.home, commit)
    expect(made).toMatchObject({ tree: card.result_tree, parents: [root, card.head] })
    expect(made.trailers['Csb-Gate']).toBe(card.id)
    expect(await rig.person.call('record.explain', { commit })).toMatchObject({
      approval: { card: card.id, approver: { did: owner.did, name: null } },
    })
    expect(getRef(rig.store.view(), rig.home, 'main')?.protected).toBe(true)
  })

  test.each<[string, string, (rig: Rig) => Promise<unknown>]>([
    ['a file changed', 'head', (rig) => write(rig, 'a.md', 'other\n')],
    ['a file was added', 'head', (rig) => write(rig, 'c.md', 'three\n')],
    ['a file was deleted', 'head', (rig) => write(rig, 'a.md', null)],
    [
      'a label was raised',
      'head',
      (rig) => rig.agent.call('files.label', { branch: 'runs/1', path: 'a.md', label: 'sealed:agent' }),
    ],
    [
      'main moved by another approval',
      'base',
      async (rig) => {
        await write(rig, 'z.md', 'other line\n', 'runs/2')
        await approve(rig, await cardFor(rig, rig.agent.merge('runs/2')))
      },
    ],
  ])('L1.7 is void when the difference changed: %s', async (_, field, meddle) => {
    const { rig, card } = await proposed()
    await meddle(rig)
    const before = headOf(rig)
    await expect(approve(rig, card)).rejects.toMatchObject({ code: 'GATE_STALE', details: { field } })
    expect(headOf(rig)).toBe(before)
    // asked for again, it is another card, and that one holds
    const again = await cardFor(rig, rig.agent.merge('runs/1'))
    expect(again.id).not.toBe(card.id)
    await approve(rig, again)
    expect(headOf(rig)).not.toBe(before)
  })

  test('what it deletes is red when it is much, and comes first of what a person sees', async () => {
    const rig = await openRig()
    for (let i = 0; i < 12; i++) await write(rig, `d/${i}.md`, `${i}\n`)
    await approve(rig, await cardFor(rig, rig.agent.merge('runs/1')))
    for (let i = 0; i < 12; i++) await write(rig, `d/${i}.md`, null, 'runs/2')
    const card = await cardFor(rig, rig.agent.merge('runs/2'))
    expect(card.changes.delete).toBe(12)
    expect(card.risks.map(({ id }) => id)).toContain('deletes-many')
  })

  test('nothing to merge opens no card, notes and snapshots are no place to merge into', async () => {
    const rig = await merged()
    await expect(rig.agent.merge('runs/1')).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await expect(rig.person.merge('runs/1', MEMORY)).rejects.toMatchObject({ code: 'PROTECTED' })
    await expect(rig.person.merge('runs/none')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await rig.person.call('gate.list', {})).toEqual({ items: [] })
  })

  test('attack 26: a lease that reaches everything moves main by no other way', async () => {
    const rig = await merged()
    const wish = rig.person.call('files.write', { branch: 'main', path: 'a.md', text: 'x' })
    await expect(wish).rejects.toMatchObject({ code: 'PROTECTED' })
  })
})

describe('a label on main', () => {
  test('is lowered by approval alone, and its files stay', async () => {
    const rig = await merged()
    const wish = () => rig.person.call('files.label', { branch: 'main', path: 'a.md', label: 'public:owner' })
    const card = await cardFor(rig, wish())
    const before = headOf(rig)
    const { commit } = await approve(rig, card)
    expect(readCommit(rig.store.view(), rig.home, commit).parents).toEqual([before])
    expect(await rig.person.call('files.read', { branch: 'main', path: 'a.md' })).toMatchObject({
      text: 'one\n',
      label: { level: 'public' },
    })
  })
})
