/** Names that some system takes for one: whichever way they would come to lie side by side. */
import { describe, expect, test } from 'vitest'
import { commitFiles, listFiles, restoreRecycled } from '../src/index.ts'
import { openRig } from './merge-rig.ts'
import { NOW, WORDS, openHome, snapshot, text } from './open-home.ts'

const PAIRS = [
  ['README', 'readme'],
  ['Straße', 'STRASSE'],
  ['file', 'ﬁle'],
  ['Ａ', 'a'],
  ['x\u2060y', 'xy'],
] as const
const TWINS = { code: 'INVALID_INPUT', details: { reason: 'two names that some systems take for one' } }

async function stand() {
  const { store, home } = await openHome()
  const write = (changes: Readonly<Record<string, string | null>>) =>
    store.transact((tx) =>
      commitFiles(tx, {
        ...WORDS,
        home: home.id,
        branch: 'runs/one',
        changes: Object.entries(changes).map(([path, bytes]) => ({ path, bytes: bytes === null ? null : text(bytes) })),
      }),
    )
  const names = () =>
    listFiles(store.view(), { home: home.id, at: 'runs/one', recursive: true }).map(({ path }) => path)
  return { store, home, write, names }
}

describe('two names that some system takes for one', () => {
  test.each(PAIRS)('are not written side by side: %s and %s', async (one, other) => {
    const { store, write } = await stand()
    await write({ [`docs/${one}`]: 'one' })
    const before = await snapshot(store)
    await expect(write({ [`docs/${other}`]: 'other' })).rejects.toMatchObject(TWINS)
    await expect(write({ [`new/${one}`]: 'one', [`new/${other}`]: 'other' })).rejects.toMatchObject(TWINS)
    expect(await snapshot(store)).toEqual(before)
  })

  test('and a folder is no twin of another either, nor of a file', async () => {
    const { write } = await stand()
    await write({ 'docs/one': 'one' })
    await expect(write({ 'Docs/two': 'two' })).rejects.toMatchObject(TWINS)
    await expect(write({ DOCS: 'a file' })).rejects.toMatchObject(TWINS)
  })

  test('a refusal tells the name that was asked for, not the one that is there', async () => {
    const { write } = await stand()
    await write({ 'docs/Secret Plan': 'one' })
    await expect(write({ 'docs/secret plan': 'two' })).rejects.toMatchObject({
      details: { path: 'docs/secret plan', reason: TWINS.details.reason },
    })
    const error = await write({ 'docs/secret plan': 'two' }).catch((reason: unknown) => JSON.stringify(reason))
    expect(error).not.toContain('Secret Plan')
  })

  test('a name changes its letters where the old one goes with the same change', async () => {
    const { write, names } = await stand()
    await write({ README: 'one' })
    await write({ README: null, readme: 'one' })
    expect(names()).toEqual(['readme'])
  })

  test('do not come together by a merge, which writes nothing then', async () => {
    const { store, home } = await openHome()
    const rig = await openRig(store, home)
    await rig.write('runs/one', 'docs/README', 'one')
    await rig.write('runs/two', 'docs/readme', 'two')
    await rig.merge('runs/one', 'main')
    const before = await snapshot(store)
    await expect(rig.merge('runs/two', 'main')).rejects.toMatchObject(TWINS)
    expect(await snapshot(store)).toEqual(before)
  })

  test('do not come back from the recycle area', async () => {
    const { store, home } = await openHome()
    const rig = await openRig(store, home)
    await rig.write('runs/one', 'README', 'one')
    await rig.merge('runs/one', 'main')
    await rig.write('runs/two', 'README', null)
    await rig.merge('runs/two', 'main')
    await rig.write('runs/three', 'readme', 'three')
    const before = await snapshot(store)
    const restoring = store.transact((tx) =>
      restoreRecycled(tx, {
        ...WORDS,
        home: home.id,
        branch: 'runs/three',
        path: 'README',
        now: NOW + 60_000,
        clearance: { level: 'sealed', tags: ['*'] },
      }),
    )
    await expect(restoring).rejects.toMatchObject(TWINS)
    expect(await snapshot(store)).toEqual(before)
  })
})
