import { describe, expect, test } from 'vitest'
import { addCosignatures, verifyProof, writeProof } from '@csb/authority'
import { cosign } from '../src/checkpoint.ts'
import { NOW, node, otherNode, thrownBy } from './cast.ts'
import { grow, headOf, recorded } from './recorded.ts'

describe('a proof in a file', () => {
  test('L1.6 proves an entry with nothing but itself, and names log and cosigners', async () => {
    const log = await recorded(9)
    const shown = await headOf(log)
    if (shown === undefined) throw new Error('no checkpoint')
    await log.transact((tx) => addCosignatures(tx, shown, cosign(shown.note, otherNode, NOW), otherNode.did, 1))
    await grow(log, 3)
    for (const seq of [0, 4, 8, 11]) {
      const proved = verifyProof(writeProof(log.view(), seq, node))
      expect(proved.header.seq).toBe(seq)
      expect(proved.checkpoint).toMatchObject({ log: { did: node.did }, size: seq > 8 ? 12 : 9 })
      expect(proved.checkpoint.cosignatures.map(({ did }) => did)).toEqual(seq > 8 ? [] : [otherNode.did])
    }
    expect(thrownBy(() => writeProof(log.view(), 12, node))).toMatchObject({ code: 'NOT_FOUND' })
  })

  test('L1.6 any changed line is refused', async () => {
    const log = await recorded(7)
    const good = writeProof(log.view(), 3, node)
    verifyProof(good)
    const lines = good.split('\n')
    lines.forEach((line, at) => {
      if (line === '') return
      const middle = Math.floor(line.length / 2)
      const changed = line[middle] === 'A' ? 'B' : 'A'
      const bad = lines.with(at, line.slice(0, middle) + changed + line.slice(middle + 1)).join('\n')
      expect(() => verifyProof(bad), `line ${at}`).toThrow()
    })
    for (const bad of ['', good.replace('index 3', 'index 2'), good.replace(/\n[^\n]+\n\n/, '\n\n')]) {
      expect(() => verifyProof(bad)).toThrow()
    }
  })

  test('attack 18: a hash, or the entry, in another spelling of the same bytes is not taken', async () => {
    const good = writeProof((await recorded(5)).view(), 2, node)
    const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
    const respelled = (line: string) => {
      const [, body = '', pad = ''] = /^(.*[^=])(=+)$/.exec(line) ?? []
      const last = digits.indexOf(body.slice(-1))
      return `${body.slice(0, -1)}${digits[last + 1] ?? ''}${pad}`
    }
    const lines = good.split('\n')
    const at = lines.findIndex((line, number) => number > 2 && line.endsWith('='))
    const bad = lines.map((line, number) => (number === at ? respelled(line) : line)).join('\n')
    expect(Buffer.from(lines[at] ?? '', 'base64')).toEqual(Buffer.from(bad.split('\n')[at] ?? '', 'base64'))
    expect(() => verifyProof(good)).not.toThrow()
    expect(() => verifyProof(bad)).toThrow(expect.objectContaining({ code: 'MALFORMED' }))
  })
})
