import { verify as cryptoVerify, createPublicKey } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createKeyPair, publicKeyFromDid, sha256, utf8, verifySignature, type KeyPair } from '@csb/core'
import type { Store } from '@csb/store'
import {
  addCheckpoint,
  addCheckpointBody,
  addCosignatures,
  checkCheckpoints,
  contradict,
  cosignedBy,
  heldOf,
  holdRecord,
  listContradictions,
  listWitnessed,
  proveConsistency,
  readCheckpoint,
  resumeRecord,
  rootAt,
  signedHead,
  witnessState,
} from '@csb/authority'
import { cosign, signCheckpoint, withCosignatures } from '../src/checkpoint.ts'
import { noteKeyId, noteText, parseNote, parseNoteLines } from '../src/note.ts'
import { NOW, node, otherNode, reopened, stranger, testStore, thrownBy } from './cast.ts'
import { grow, headOf, noteOf, recorded } from './recorded.ts'

const VECTORS = new URL('../../../../shared/vectors/authority-example.json', import.meta.url)

const show = (witness: Store, body: string, from = node.did, key: KeyPair = otherNode) =>
  witness.transact((tx) => addCheckpoint(tx, { body, from, now: NOW + 5000 }, key))

/** Show the record as it stands, with a proof from `old`. */
async function showAll(log: Store, witness: Store, old: number) {
  const shown = await headOf(log)
  const { size = 0, note = '' } = shown ?? {}
  const { proof } = proveConsistency(log.view(), old, size)
  return show(witness, addCheckpointBody({ old, proof, checkpoint: note }))
}

describe('checkpoints', () => {
  test('L1.6 a checkpoint is a C2SP note: origin, size, root in base64, signed under a key id of name and key', async () => {
    const log = await recorded(3)
    const [origin, size, root, empty, line] = (await noteOf(log)).split('\n')
    expect([origin, size, empty]).toEqual([`${node.did}/record`, '3', ''])
    expect(Buffer.from(root ?? '', 'base64').toString('hex')).toBe(rootAt(log.view(), 3))
    const [, name, encoded] = /^— (\S+) (\S+)$/.exec(line ?? '') ?? []
    expect(name).toBe(origin)
    const bytes = Buffer.from(encoded ?? '', 'base64')
    const id = sha256(utf8(`${origin}\n`), Uint8Array.of(1), node.publicKey).subarray(0, 4)
    expect(bytes.subarray(0, 4)).toEqual(Buffer.from(id))
    const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), node.publicKey])
    const key = createPublicKey({ key: spki, format: 'der', type: 'spki' })
    expect(cryptoVerify(null, utf8(`${origin}\n${size}\n${root}\n`), key, bytes.subarray(4))).toBe(true)
  })

  test('L1.6 a cosignature signs its time and the whole body, in the form of cosignature/v1', async () => {
    const note = await noteOf(await recorded(2))
    const line = cosign(note, otherNode, NOW + 1999)
    const [, name, encoded] = /^— (\S+) (\S+)\n$/.exec(line) ?? []
    expect(name).toBe(otherNode.did)
    const bytes = Buffer.from(encoded ?? '', 'base64')
    expect(bytes.byteLength).toBe(4 + 8 + 64)
    expect(Number(bytes.readBigUInt64BE(4))).toBe(NOW / 1000 + 1)
    const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), otherNode.publicKey])
    const key = createPublicKey({ key: spki, format: 'der', type: 'spki' })
    const { body } = parseNote(note)
    const signed = utf8(`cosignature/v1\ntime ${NOW / 1000 + 1}\n${body}`)
    expect(cryptoVerify(null, signed, key, bytes.subarray(12))).toBe(true)
    expect(readCheckpoint(note + line).cosignatures).toEqual([{ did: otherNode.did, at: NOW + 1000 }])
  })

  test('L1.6 lines of unknown keys are passed over, a line of the log that does not verify is not', async () => {
    const note = await noteOf(await recorded(2))
    const foreign = '— example.com/w Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5\n'
    expect(readCheckpoint(note + foreign)).toMatchObject({ size: 2, cosignatures: [] })
    const { body, lines } = parseNote(note)
    const spoiled = lines.map((line) => ({ ...line, signature: new Uint8Array(64) }))
    expect(thrownBy(() => readCheckpoint(noteText({ body, lines: [...lines, ...spoiled] })))).toMatchObject({
      code: 'GRANT_INVALID',
      details: { reason: 'bad_signature' },
    })
    expect(thrownBy(() => readCheckpoint(`${body}\n${foreign}`))).toMatchObject({ code: 'GRANT_INVALID' })
  })

  test('L1.6 a cosignature over another checkpoint, of the log itself, or with another time is not counted', async () => {
    const log = await recorded(2)
    const note = await noteOf(log)
    await grow(log, 1)
    const later = await noteOf(log)
    const line = cosign(note, otherNode, NOW)
    expect(readCheckpoint(later + line).cosignatures).toEqual([])
    expect(readCheckpoint(note + cosign(note, node, NOW)).cosignatures).toEqual([])
    const [parsed] = parseNoteLines(line)
    if (parsed === undefined) throw new Error('no line')
    const signature = Uint8Array.from(parsed.signature)
    signature[7] = (signature[7] ?? 0) ^ 1
    expect(
      readCheckpoint(noteText({ ...parseNote(note), lines: [...parseNote(note).lines, { ...parsed, signature }] }))
        .cosignatures,
    ).toEqual([])
    expect(withCosignatures(note, [{ ...parsed, signature }], () => true)).toBe(note)
  })

  test('L1.6 what is no note is MALFORMED, and any note reads back as it was written', () => {
    for (const text of [
      '',
      '\n',
      'a\n\n',
      'a\nb\n\n— x\n',
      'a\n\n— x !!!!\n',
      'a\u0007\n\n— x AAAAAAA=\n',
      'a\n\n— x AAAAAAA=',
    ]) {
      expect(
        thrownBy(() => parseNote(text)),
        JSON.stringify(text),
      ).toMatchObject({ code: 'MALFORMED' })
    }
    const line = fc.record({
      name: fc.stringMatching(/^[^\s+\p{C}]{1,20}$/u),
      keyId: fc.constant('0a0b0c0d'),
      signature: fc.uint8Array({ minLength: 1, maxLength: 80 }),
    })
    const body = fc.stringMatching(/^[a-z0-9 /:+=]{1,40}\n$/)
    fc.assert(
      fc.property(body, fc.array(line, { minLength: 1, maxLength: 5 }), (text, lines) => {
        expect(parseNote(noteText({ body: text, lines }))).toEqual({ body: text, lines })
      }),
      { numRuns: 200 },
    )
  })

  test('L1.6 sizes and roots are read in their one spelling', () => {
    const note = signCheckpoint(0, { size: 7, root: 'ab'.repeat(32) }, node)
    expect(readCheckpoint(note)).toMatchObject({ size: 7, root: 'ab'.repeat(32), log: { did: node.did, number: 0 } })
    expect(readCheckpoint(signCheckpoint(3, { size: 7, root: 'ab'.repeat(32) }, node)).log.number).toBe(3)
    for (const [from, to] of [
      ['\n7\n', '\n07\n'],
      ['\n7\n', '\n-7\n'],
      ['\n7\n', '\n9007199254740993\n'],
      ['=\n\n', '\n\n'],
      ['/record\n', '/record/0\n'],
      ['/record\n', '/records\n'],
    ] as const) {
      expect(
        thrownBy(() => readCheckpoint(note.replace(from, to))),
        to,
      ).toMatchObject({ code: 'MALFORMED' })
    }
  })

  test('L1.6 checkpoint and cosignature that another implementation wrote have our key ids and verify', async ({
    skip,
  }) => {
    const text = await readFile(VECTORS, 'utf8').catch(() => undefined)
    if (text === undefined) {
      skip('the vectors of the design are not here')
      return
    }
    const { keys, log } = JSON.parse(text) as {
      keys: { did: string; peer: string }[]
      log: { checkpoint: string }
    }
    const { body, lines } = parseNote(log.checkpoint)
    expect(noteText({ body, lines })).toBe(log.checkpoint)
    const kinds = ['log', 'cosignature'] as const
    lines.forEach(({ name, keyId, signature }, at) => {
      const kind = kinds[at] ?? 'log'
      const { did = '' } = keys.find(({ peer }) => name.includes(peer)) ?? {}
      expect(keyId).toBe(noteKeyId(name, kind, publicKeyFromDid(did) ?? new Uint8Array()))
      const seconds = kind === 'log' ? '' : Buffer.from(signature).readBigUInt64BE(0).toString()
      const signed = kind === 'log' ? body : `cosignature/v1\ntime ${seconds}\n${body}`
      expect(verifySignature(did, utf8(signed), signature.subarray(kind === 'log' ? 0 : 8)), kind).toBe(true)
    })
    expect(lines).toHaveLength(2)
  })

  test('a checkpoint covers the record once, and those that nobody cosigned go', async () => {
    const log = await recorded(2)
    const first = await noteOf(log)
    expect(await noteOf(log)).toBe(first)
    await grow(log, 1)
    await noteOf(log)
    expect(witnessState(log.view())).toMatchObject({ size: 3, latest: { size: 3 }, settled: null })
    expect(await log.transact((tx) => addCosignatures(tx, readCheckpoint(first), '', otherNode.did, 1))).toBe(0)
    checkCheckpoints(log.view())
  })

  test('L1.6 a checkpoint settles with as many witnesses as were asked for', async () => {
    const log = await recorded(4)
    const shown = await headOf(log)
    if (shown === undefined) throw new Error('no checkpoint')
    const add = (key: KeyPair, quorum = 2, asked = key.did) =>
      log.transact((tx) => addCosignatures(tx, shown, cosign(shown.note, key, NOW), asked, quorum))
    expect(await add(otherNode)).toBe(1)
    expect(await add(otherNode)).toBe(1)
    expect(witnessState(log.view()).settled).toBeNull()
    // a line of somebody who was not asked counts for nothing
    expect(await add(createKeyPair(), 2, otherNode.did)).toBe(1)
    expect(await add(stranger)).toBe(2)
    expect(witnessState(log.view()).settled).toMatchObject({
      size: 4,
      cosigners: [{ did: otherNode.did }, { did: stranger.did }],
    })
    expect(cosignedBy(log.view(), stranger.did)).toEqual({ number: 0, size: 4 })
    expect(witnessState((await reopened(log)).view()).settled?.size).toBe(4)
  })
})

describe('a witness', () => {
  test('L1.6 cosigns what follows from what it knows, after it is on the disk', async () => {
    const [log, witness] = [await recorded(3), await testStore()]
    const first = await showAll(log, witness, 0)
    expect(first).toMatchObject({ answer: { status: 200 }, found: null })
    const note = await noteOf(log)
    expect(readCheckpoint(note + first.answer.body).cosignatures).toMatchObject([{ did: otherNode.did }])
    await grow(log, 4)
    expect((await showAll(log, witness, 3)).answer.status).toBe(200)
    expect(await listWitnessed((await reopened(witness)).view())).toMatchObject([
      { origin: `${node.did}/record`, size: 7, root: rootAt(log.view(), 7), shorter: null },
    ])
  })

  test('L1.6 a wrong old size is 409 with the known size and the log own word for it', async () => {
    const [log, witness] = [await recorded(3), await testStore()]
    expect((await showAll(log, witness, 2)).answer).toEqual({ status: 409, body: '0\n', checkpoint: '' })
    await showAll(log, witness, 0)
    const known = await noteOf(log)
    await grow(log, 2)
    for (const old of [0, 1, 4]) {
      expect((await showAll(log, witness, old)).answer).toEqual({ status: 409, body: '3\n', checkpoint: known })
    }
  })

  test('what is not of the log itself is 403, what is no body 400', async () => {
    const [log, witness] = [await recorded(2), await testStore()]
    const checkpoint = await noteOf(log)
    const body = addCheckpointBody({ old: 0, proof: [], checkpoint })
    expect((await show(witness, body, stranger.did)).answer.status).toBe(403)
    const { body: text } = parseNote(checkpoint)
    const forged = noteText({
      body: text,
      lines: parseNote(signCheckpoint(0, { size: 9, root: 'ab'.repeat(32) }, node)).lines,
    })
    expect((await show(witness, addCheckpointBody({ old: 0, proof: [], checkpoint: forged }))).answer.status).toBe(403)
    for (const bad of [
      '',
      'old 0',
      checkpoint,
      body.replace('old 0', 'old 00'),
      body.replace('old 0', 'old 3'),
      body.replace('old 0', 'old 0\nAAAA'),
      addCheckpointBody({ old: 0, proof: ['ab'.repeat(32)], checkpoint }),
      addCheckpointBody({ old: 0, proof: Array.from({ length: 64 }, () => 'ab'.repeat(32)), checkpoint }),
    ]) {
      expect((await show(witness, bad)).answer.status, bad.slice(0, 30)).toBe(400)
    }
    expect(await listWitnessed(witness.view())).toEqual([])
  })

  test('L1.6 attack 36: a rewritten log is found: no proof from what was signed, and two signatures for one size', async () => {
    const [log, other, witness] = [await recorded(5), await recorded(8, 'two'), await testStore()]
    await showAll(log, witness, 0)
    const known = await noteOf(log)
    const { answer, found } = await showAll(other, witness, 5)
    expect(answer).toMatchObject({ status: 422, checkpoint: known })
    expect(found).toMatchObject({ kind: 'no-proof', first: known })
    const own = signedHead(other.view(), node, 5)
    const told = await show(witness, addCheckpointBody({ old: 5, proof: [], checkpoint: own }))
    expect(told).toMatchObject({ answer: { status: 409 }, found: { kind: 'same-size', first: known, second: own } })
    const kept = await listContradictions(witness.view())
    expect(kept.map(({ kind }) => kind).sort()).toEqual(['no-proof', 'same-size'])
    expect(contradict(known, own)).toBe(true)
    expect(contradict(known, known)).toBe(false)
    expect(contradict(known, await noteOf(other))).toBe(false)
    // what is known stays known, and the same again is told once
    expect(await listWitnessed(witness.view())).toMatchObject([{ size: 5, root: rootAt(log.view(), 5) }])
    expect((await showAll(other, witness, 5)).found).toBeNull()
    expect(await listContradictions((await reopened(witness)).view())).toEqual(kept)
  })

  test('L1.6 a shorter log is told the larger size, and that it came shorter is kept until it grows', async () => {
    const [log, cut, witness] = [await recorded(6), await recorded(4), await testStore()]
    await showAll(log, witness, 0)
    expect((await showAll(cut, witness, 4)).answer).toMatchObject({ status: 409, body: '6\n' })
    expect(await listWitnessed(witness.view())).toMatchObject([{ size: 6, shorter: { size: 4 } }])
    await grow(log, 1)
    await showAll(log, witness, 6)
    expect(await listWitnessed(witness.view())).toMatchObject([{ size: 7, shorter: null }])
  })

  test('L1.6 attack 37: two checkpoints at once never roll the known size back', async () => {
    const [log, witness] = [await recorded(3), await testStore()]
    await showAll(log, witness, 0)
    const bodyAt = async () => {
      const shown = await headOf(log)
      const { proof } = proveConsistency(log.view(), 3, shown?.size)
      return addCheckpointBody({ old: 3, proof, checkpoint: shown?.note ?? '' })
    }
    await grow(log, 1)
    const near = await bodyAt()
    await grow(log, 5)
    const far = await bodyAt()
    const answers = await Promise.all([far, near].map((body) => show(witness, body)))
    expect(answers.map(({ answer }) => answer.status)).toEqual([200, 409])
    expect(await listWitnessed(witness.view())).toMatchObject([{ size: 9 }])
  })

  test('L1.6 a log that was begun anew is known as another, and the old one no longer grows', async () => {
    const [log, witness] = [await recorded(6), await testStore()]
    await showAll(log, witness, 0)
    const known = await noteOf(log)
    const restored = await recorded(4)
    await restored.transact((tx) =>
      holdRecord(tx, { reason: 'shorter', checkpoint: known, witness: otherNode.did, size: 4, at: NOW }),
    )
    await expect(grow(restored, 1)).rejects.toMatchObject({ code: 'RECORD_HELD', details: { reason: 'shorter' } })
    expect(await headOf(restored)).toBeUndefined()
    const resumed = await restored.transact((tx) => resumeRecord(tx))
    expect(resumed).toMatchObject({ log: 1, from: 4, after: { origin: `${node.did}/record`, size: 6 } })
    expect(heldOf(restored.view())).toBeUndefined()
    await expect(restored.transact((tx) => resumeRecord(tx))).rejects.toMatchObject({ code: 'CONFLICT' })
    await grow(restored, 1)
    expect((await showAll(restored, witness, 0)).answer.status).toBe(200)
    expect(await listWitnessed(witness.view())).toMatchObject([{ number: 0 }, { number: 1, size: 5 }])
    // the node from before is told that its record went on elsewhere
    const late = await showAll(log, witness, 6)
    expect(late.answer.status).toBe(409)
    expect(readCheckpoint('checkpoint' in late.answer ? late.answer.checkpoint : '').log.number).toBe(1)
  })
})
