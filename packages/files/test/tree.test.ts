import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toHex, utf8 } from '@csb/core'
import { problemOfName } from '../src/paths.ts'
import { MODES, decodeTree, encodeTree, entriesNamed, spelledOf, type TreeEntry } from '../src/tree.ts'

const oidOf = (oidBytes: number) => fc.uint8Array({ minLength: oidBytes, maxLength: oidBytes }).map(toHex)
const name = fc
  .oneof(
    fc.constantFrom('a', 'a.b', 'a-b', 'a0', 'ab', 'é', '筆記', '🙂', '\uffee'),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 6 }),
  )
  .filter((text) => problemOfName(text) === undefined)
const entriesOf = (oidBytes: number) =>
  fc.uniqueArray(fc.record({ mode: fc.constantFrom(...MODES), name, oid: oidOf(oidBytes) }), {
    selector: (entry) => entry.name,
    maxLength: 12,
  })

/** git's base_name_compare, written down on its own. */
function gitOrder(a: TreeEntry, b: TreeEntry): number {
  const [x, y] = [a, b].map((entry) => Buffer.from(entry.name + (entry.mode === '40000' ? '/' : '\0')))
  return Buffer.compare(x ?? Buffer.alloc(0), y ?? Buffer.alloc(0))
}

describe.each([20, 32])('trees with ids of %i bytes', (oidBytes) => {
  test('a tree reads back as the same entries, in the order git sorts them', () => {
    fc.assert(
      fc.property(entriesOf(oidBytes), (entries) => {
        const decoded = decodeTree(encodeTree(entries, oidBytes), oidBytes)
        expect(decoded).toEqual(entries.toSorted(gitOrder))
      }),
      { numRuns: 500 },
    )
  })

  test('entries of certain names are those of the whole tree', () => {
    fc.assert(
      fc.property(entriesOf(oidBytes), fc.array(name), fc.nat(11), (entries, others, few) => {
        const bytes = Buffer.from(encodeTree(entries, oidBytes))
        const names = [...others, ...entries.slice(0, few).map((entry) => entry.name)]
        const wanted = new Map(names.map((one) => [spelledOf(one), one]))
        const expected = decodeTree(bytes, oidBytes).filter((entry) => names.includes(entry.name))
        const found = [...entriesNamed(bytes, oidBytes, wanted)].map(({ mode, oid, as }) => ({ mode, name: as, oid }))
        expect(found).toEqual(expected)
      }),
    )
  })

  test('the order in which entries are given does not matter', () => {
    fc.assert(
      fc.property(entriesOf(oidBytes), (entries) => {
        expect(encodeTree(entries.toReversed(), oidBytes)).toEqual(encodeTree(entries, oidBytes))
      }),
    )
  })

  test('whatever bytes can be read are the bytes that would be written', () => {
    const changed = fc.tuple(entriesOf(oidBytes), fc.nat(), fc.nat(255)).map(([entries, at, value]) => {
      const bytes = Uint8Array.from(encodeTree(entries, oidBytes))
      if (bytes.byteLength > 0) bytes[at % bytes.byteLength] = value
      return bytes
    })
    fc.assert(
      fc.property(fc.oneof(changed, fc.uint8Array({ maxLength: 80 })), (bytes) => {
        let entries: TreeEntry[]
        try {
          entries = decodeTree(bytes, oidBytes)
        } catch (error) {
          expect(error).toMatchObject({ code: 'MALFORMED' })
          return
        }
        expect(Buffer.from(encodeTree(entries, oidBytes))).toEqual(Buffer.from(bytes))
      }),
      { numRuns: 1000 },
    )
  })
})

const oid = '0'.repeat(63) + '1'
const line = (text: string) => Buffer.concat([utf8(`${text}\0`), Buffer.from(oid, 'hex')])

test.each([
  ['two entries of one name', [line('100644 a'), line('100644 a')]],
  ['a file and a folder of one name', [line('100644 a'), line('40000 a')]],
  ['entries out of order', [line('100644 b'), line('100644 a')]],
  ['a mode with a leading zero', [line('040000 a')]],
  ['a mode that git has not', [line('100600 a')]],
  ['.git', [line('40000 .git')]],
  ['a slash in a name', [line('100644 a/b')]],
  ['an id cut short', [line('100644 a').subarray(0, 20)]],
])('%s is refused when read', (_, parts) => {
  expect(() => decodeTree(Buffer.concat(parts), 32)).toThrow(expect.objectContaining({ code: 'MALFORMED' }))
})

test.each([
  [
    'two entries of one name',
    [
      { mode: '100644', name: 'a', oid },
      { mode: '40000', name: 'a', oid },
    ],
  ],
  ['a name with a slash', [{ mode: '100644', name: 'a/b', oid }]],
  ['an id of the other hash', [{ mode: '100644', name: 'a', oid: oid.slice(0, 40) }]],
] as const)('%s is refused when written', (_, entries) => {
  expect(() => encodeTree(entries, 32)).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }))
})
