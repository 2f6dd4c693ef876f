/** What others sign of a record is read in its one spelling, and what does not fit the tree that is there is damage. */
import { describe, expect, test } from 'vitest'
import type { Store } from '@csb/store'
import { key } from '@csb/store'
import {
  addCheckpoint,
  addCheckpointBody,
  appendRecord,
  checkCheckpoints,
  makeCheckpoint,
  proveConsistency,
  verifyProof,
  writeProof,
} from '@csb/authority'
import { parseNote, parseNoteLines } from '../src/note.ts'
import { NOW, node, otherNode, testStore, thrownBy } from './cast.ts'

const ENTRY = { operation: 'x', outcome: 'done', actor: null, door: 'timer', run: null, lease: null } as const

async function grow(store: Store, count: number): Promise<Store> {
  for (let i = 0; i < count; i++)
    await store.transact((tx) => appendRecord(tx, { ...ENTRY, reads: [], effect: { i } }, NOW + i))
  return store
}

const noteOf = async (store: Store) => (await store.transact((tx) => makeCheckpoint(tx, node, NOW)))?.note ?? ''

/** The same bytes, spelled as no encoder spells them: the bits that are left over are not zero. */
const respelled = (hash: string): string => {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
  const last = letters[letters.indexOf(hash.at(-2) ?? '') + 1] ?? ''
  return `${hash.slice(0, -2)}${last}=`
}

describe('L1.6 attack 18: in its one spelling is read', () => {
  test.each([
    ['without an empty line', 'a— x AAAAAAA=\n'],
    ['with more signatures than anybody gives', `a\n\n${'— x AAAAAAA=\n'.repeat(101)}`],
    ['whose last line does not end', 'a\n\n— x AAAAAAA='],
  ])('L1.6 no note %s', (_, text) => {
    expect(thrownBy(() => parseNote(text))).toMatchObject({ code: 'MALFORMED' })
  })

  test('L1.6 lines of signatures that break off are none, though each of them is whole', () => {
    expect(parseNoteLines('— x AAAAAAA=\n')).toHaveLength(1)
    expect(thrownBy(() => parseNoteLines('— x AAAAAAA=x'))).toMatchObject({
      code: 'MALFORMED',
      details: { reason: 'a note ends with a newline' },
    })
  })

  test('L1.6 a hash of a proof, in a file and before a witness, and no more of them than a tree has levels', async () => {
    const log = await grow(await testStore(), 4)
    const good = writeProof(log.view(), 1, node)
    verifyProof(good)
    const [first = ''] = /(?<=index 1\n)\S+/.exec(good) ?? []
    const bad = thrownBy(() => verifyProof(good.replace(first, first.slice(4))))
    expect(bad).toMatchObject({ code: 'MALFORMED', details: { reason: 'hashes' } })

    const witness = await testStore()
    const show = (body: string) =>
      witness.transact((tx) => addCheckpoint(tx, { body, from: node.did, now: NOW }, otherNode))
    expect(await show(addCheckpointBody({ old: 0, proof: [], checkpoint: await noteOf(log) }))).toMatchObject({
      answer: { status: 200 },
    })
    await grow(log, 1)
    const { proof } = proveConsistency(log.view(), 4, 5)
    const body = addCheckpointBody({ old: 4, proof, checkpoint: await noteOf(log) })
    const [, hash = ''] = body.split('\n')
    expect(Buffer.from(respelled(hash), 'base64')).toEqual(Buffer.from(hash, 'base64'))
    expect(await show(body.replace(hash, respelled(hash)))).toMatchObject({ answer: { status: 400 } })
    const many = `${hash}\n`.repeat(64)
    expect(await show(body.replace(`${hash}\n`, many))).toMatchObject({ answer: { status: 400 } })
    expect(await show(body)).toMatchObject({ answer: { status: 200 } })
  })
})

test('L1.6 attack 34: a record that is shorter than what was signed of it is damaged', async () => {
  const log = await grow(await testStore(), 3)
  await noteOf(log)
  checkCheckpoints(log.view())
  await log.transact((tx) => tx.putJson(key('meta', 'record'), { size: 2, ts: NOW }))
  expect(thrownBy(() => checkCheckpoints(log.view()))).toMatchObject({
    code: 'RECORD_DAMAGED',
    details: { seq: 2, reason: 'checkpoint' },
  })
})
