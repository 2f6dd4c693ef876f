/** The words behind the changes on a card: those that the card names, and none else. */
import { describe, expect, test } from 'vitest'
import { LIMITS } from '@csb/core'
import { signApproval, type Card } from '@csb/authority'
import { LABELS_PATH, getRef, moveRef, readCommit, readTree, writeCommit, writeTree } from '@csb/files'
import type { ChangeText } from '../src/gate/texts.ts'
import { cardFor, openRig, owner, type Rig } from './gate-rig.ts'

const write = (rig: Rig, path: string, text: string, branch = 'runs/1') =>
  rig.agent.call('files.write', { branch, path, text })

/** What an agent writes is labelled as an agent's: that file is not what these tests are about. */
async function textsOf(rig: Rig, { id }: Card): Promise<Record<string, Omit<ChangeText, 'path'>>> {
  const { texts } = await rig.person.call<{ texts: ChangeText[] }>('gate.show', { card: id })
  const files = texts.filter(({ path }) => path !== LABELS_PATH)
  return Object.fromEntries(files.map(({ path, ...text }) => [path, text]))
}

async function approve(rig: Rig, card: Card) {
  const now = rig.clock.now()
  const approval = signApproval({ card, decision: 'approve', shownAt: now, now }, owner)
  await rig.person.call('gate.approve', { card: card.id, approval })
}

/** A commit on a branch, after which its root has a submodule `lib`. */
const pin = ({ store, home, clock }: Rig, branch: string, oid: string) =>
  store.transact((tx) => {
    const head = getRef(tx, home, branch)?.commit ?? ''
    const commit = readCommit(tx, home, head)
    const others = readTree(tx, home, commit.tree).filter(({ name }) => name !== 'lib')
    const tree = writeTree(tx, home, [...others, { mode: '160000', name: 'lib', oid }])
    const to = writeCommit(tx, home, { ...commit, tree, parents: [head] })
    moveRef(tx, home, branch, { expect: head, to, now: clock.now() })
  })

/** Main holds a text of ten lines. */
async function withText() {
  const rig = await openRig()
  const text = Array.from({ length: 10 }, (_, n) => `line ${n}\n`).join('')
  await write(rig, 'a.md', text, 'runs/0')
  await approve(rig, await cardFor(rig, rig.agent.merge('runs/0')))
  return { rig, text }
}

const diff = (text: string) => ({ form: 'diff', text, more_lines: 0 })

describe('the texts of a merge', () => {
  test('L1.7 are the differences that it makes: of what is new, changed and deleted', async () => {
    const { rig, text } = await withText()
    await write(rig, 'a.md', text.replace('line 0', 'LINE 0'))
    await write(rig, 'b.md', 'new\n')
    const card = await cardFor(rig, rig.agent.merge('runs/1'))
    expect(await textsOf(rig, card)).toEqual({
      'a.md': diff('@@ -1,4 +1,4 @@\n-line 0\n+LINE 0\n line 1\n line 2\n line 3'),
      'b.md': diff('@@ -0,0 +1,1 @@\n+new'),
    })
    await approve(rig, card)
    // it can be read afterwards as well
    expect((await textsOf(rig, card))['b.md']).toEqual(diff('@@ -0,0 +1,1 @@\n+new'))
    await rig.agent.call('files.write', { branch: 'runs/2', path: 'b.md', delete: true })
    const gone = await cardFor(rig, rig.agent.merge('runs/2'))
    expect(await textsOf(rig, gone)).toEqual({ 'b.md': diff('@@ -1,1 +0,0 @@\n-new') })
  })

  test('L1.7 are those of what comes of both sides, which is stored nowhere yet', async () => {
    const { rig, text } = await withText()
    await write(rig, 'a.md', text.replace('line 9', 'theirs'), 'runs/1')
    await write(rig, 'a.md', text.replace('line 0', 'ours'), 'runs/2')
    await approve(rig, await cardFor(rig, rig.agent.merge('runs/2')))
    const card = await cardFor(rig, rig.agent.merge('runs/1'))
    expect((await textsOf(rig, card))['a.md']?.text).toContain('-line 9\n+theirs')
    expect((await textsOf(rig, card))['a.md']?.text).not.toContain('ours')
  })

  test('L1.7 are those that the card names also where the branch went on, or none', async () => {
    const { rig, text } = await withText()
    await write(rig, 'b.md', 'shown\n')
    const whole = await cardFor(rig, rig.agent.merge('runs/1'))
    await write(rig, 'b.md', 'something else\n')
    expect(await textsOf(rig, whole)).toEqual({ 'b.md': diff('@@ -0,0 +1,1 @@\n+shown') })
    // what would have come of both sides is nowhere, once one of them went on
    await write(rig, 'a.md', text.replace('line 9', 'theirs'), 'runs/3')
    await write(rig, 'a.md', text.replace('line 0', 'ours'), 'runs/2')
    await approve(rig, await cardFor(rig, rig.agent.merge('runs/2')))
    const both = await cardFor(rig, rig.agent.merge('runs/3'))
    await write(rig, 'a.md', text.replace('line 9', 'something else'), 'runs/3')
    expect(await textsOf(rig, both)).toEqual({ 'a.md': { form: 'diff', text: null, why: 'not-there', more_lines: 0 } })
  })

  test('L1.7 are of a submodule the commit that it is at', async () => {
    const { rig } = await withText()
    const [one, two] = ['ab'.repeat(32), 'cd'.repeat(32)]
    await write(rig, 'b.md', 'beside it\n')
    await pin(rig, 'runs/1', one)
    const added = await cardFor(rig, rig.agent.merge('runs/1'))
    expect((await textsOf(rig, added))['lib']).toEqual(diff(`@@ -0,0 +1,1 @@\n+submodule at ${one}`))
    await approve(rig, added)
    await write(rig, 'c.md', 'beside it\n', 'runs/2')
    await pin(rig, 'runs/2', two)
    const moved = await cardFor(rig, rig.agent.merge('runs/2'))
    const told = diff(`@@ -1,1 +1,1 @@\n-submodule at ${one}\n+submodule at ${two}`)
    expect((await textsOf(rig, moved))['lib']).toEqual(told)
  })

  test('are bounded: lines, characters and bytes, and what is cut is counted', async () => {
    const rig = await openRig()
    const most = LIMITS.gateTextLines
    await write(rig, 'long.md', 'x\n'.repeat(most + 10))
    await write(rig, 'wide.md', '🌸'.repeat(LIMITS.gateLineChars + 5))
    await write(rig, 'large.md', 'y'.repeat(LIMITS.gateTextBytes + 1))
    await rig.agent.call('files.write', {
      branch: 'runs/1',
      path: 'b.bin',
      base64: Buffer.from([0, 255, 1]).toString('base64'),
    })
    const texts = await textsOf(rig, await cardFor(rig, rig.agent.merge('runs/1')))
    // the head of the hunk is a line as well
    expect(texts['long.md']).toMatchObject({ more_lines: 11 })
    expect(texts['long.md']?.text?.split('\n')).toHaveLength(most)
    expect(texts['wide.md']?.text).toMatch(/🌸 \[6 more characters\]\n/u)
    expect(texts['large.md']).toMatchObject({ text: null, why: 'large' })
    expect(texts['b.bin']).toMatchObject({ text: null, why: 'binary' })
  })
})

describe('the texts of other cards', () => {
  test('are what a file or a note says whose label would be lowered, and what a note says that would go', async () => {
    const rig = await openRig()
    await write(rig, 'a.md', 'tea')
    const note = await rig.person.call<{ id: string }>('memory.create', {
      entry: { content: 'a secret', type: 'lesson', level: 'hot' },
    })
    const file = rig.agent.call('files.label', { branch: 'runs/1', path: 'a.md', label: 'public:owner' })
    expect(await textsOf(rig, await cardFor(rig, file))).toEqual({
      'a.md': { form: 'content', text: 'tea', more_lines: 0 },
    })
    const lower = await cardFor(rig, rig.agent.call('memory.label', { id: note.id, label: 'public:owner' }))
    const forget = await cardFor(rig, rig.person.call('memory.forget', { ids: [note.id] }))
    for (const card of [lower, forget]) {
      const [told] = Object.values(await textsOf(rig, card))
      expect(told).toMatchObject({ form: 'content', more_lines: 0 })
      expect(told?.text).toContain('\na secret')
    }
    await approve(rig, forget)
    // what was forgotten is not shown by its card either
    for (const card of [lower, forget])
      expect(Object.values(await textsOf(rig, card))).toMatchObject([{ text: null, why: 'not-there' }])
  })
})
