import { describe, expect, test } from 'vitest'
import { readHouse, type House } from './house.ts'
import {
  FLOORS,
  checkCircles,
  checkDoors,
  checkImportArrows,
  checkManifestArrows,
  checkOwnIndex,
  checkOwners,
  checkTestArrows,
} from './layers.ts'

const house = await readHouse()

const manifest = (room: string, ...names: string[]) => ({
  path: `packages/${room}/package.json`,
  name: `@csb/${room}`,
  dependencies: Object.fromEntries(names.map((name) => [name, '0.1.0'])),
})
const file = (path: string, text: string) => ({ path, text })
const small = (parts: Partial<House>): House => ({ files: [], manifests: [], ...parts })

describe('the table of arrows', () => {
  test('points down only', () => {
    const seen = new Set<string>()
    for (const rooms of FLOORS) {
      for (const [room, targets] of rooms) expect([room, targets.filter((name) => !seen.has(name))]).toEqual([room, []])
      for (const [room] of rooms) seen.add(room)
    }
  })

  test('names every package and no other', () => {
    const rooms = house.manifests.filter(({ path }) => path.startsWith('packages/')).map(({ name }) => name)
    expect(rooms.sort()).toEqual(
      FLOORS.flat()
        .map(([room]) => `@csb/${room}`)
        .sort(),
    )
  })
})

describe('manifests depend on lower floors only', () => {
  test('in this house', () => expect(checkManifestArrows(house)).toEqual([]))
  test('an arrow up is found', () => {
    expect(checkManifestArrows(small({ manifests: [manifest('store', '@csb/files')] }))).toHaveLength(1)
    expect(checkManifestArrows(small({ manifests: [manifest('http', '@csb/core', '@csb/store')] }))).toHaveLength(1)
  })
})

describe('sources import what an arrow allows', () => {
  test('in this house', () => expect(checkImportArrows(house)).toEqual([]))
  test('an import of a neighbour, of an unnamed room and of a foreign file is found', () => {
    const bad = small({
      manifests: [manifest('memory', '@csb/core')],
      files: [
        file('packages/memory/src/a.ts', "import type { Grant } from '@csb/authority'\n"),
        file('packages/memory/src/b.ts', "export { key } from '@csb/store'\n"),
        file('packages/memory/src/c.ts', "const core = await import('../../core/src/ids.ts')\n"),
        file('packages/memory/src/d.ts', "import { fail } from '@csb/core'\n// from '@csb/wire'\n"),
      ],
    })
    expect(checkImportArrows(bad).map((line) => line.slice(0, 24))).toEqual([
      'packages/memory/src/a.ts',
      'packages/memory/src/b.ts',
      'packages/memory/src/c.ts',
    ])
  })
})

describe('tests of a package know lower floors only', () => {
  test('in this house', () => expect(checkTestArrows(house)).toEqual([]))
  test('a test that uses a higher room is found', () => {
    const files = [
      file(
        'packages/files/test/a.test.ts',
        "import { openStore } from '@csb/store'\nimport { x } from '../src/tree.ts'\n",
      ),
      file('packages/files/test/b.test.ts', "import { serve } from '@csb/http'\n"),
    ]
    expect(checkTestArrows(small({ files }))).toHaveLength(1)
  })
})

describe('doors import core and service only', () => {
  test('in this house', () => expect(checkDoors(house)).toEqual([]))
  test('a door that opens the store is found', () => {
    const files = [file('packages/wire/src/host.ts', "import {\n  openStore,\n} from '@csb/store'\n")]
    expect(checkDoors(small({ files }))).toHaveLength(1)
  })
})

describe('each outside library has one owner', () => {
  test('in this house', () => expect(checkOwners(house)).toEqual([]))
  test('a second owner and a stranger are found', () => {
    const bad = small({
      manifests: [manifest('memory', 'yaml'), manifest('node', 'pino', 'yaml')],
      files: [
        file(
          'packages/guard/src/a.ts',
          "import pino from 'pino'\nimport { join } from 'node:path'\nimport 'left/pad'\n",
        ),
      ],
    })
    expect(checkOwners(bad)).toHaveLength(3)
  })
})

describe('nothing runs in circles', () => {
  test('in this house', () => expect(checkCircles(house)).toEqual([]))
  test('a circle of types and a circle of rooms are found', () => {
    const bad = small({
      manifests: [manifest('a', '@csb/b'), manifest('b', '@csb/a')],
      files: [
        file('packages/core/src/a.ts', "import type { B } from './deep/b.ts'\n"),
        file('packages/core/src/deep/b.ts', "import type { A } from '../a.ts'\n"),
        file('packages/core/src/c.ts', "import { a } from './a.ts'\n"),
      ],
    })
    expect(checkCircles(bad)).toHaveLength(2)
  })
})

describe('no file imports the index of its own room', () => {
  test('in this house', () => expect(checkOwnIndex(house)).toEqual([]))
  test('both ways round are found', () => {
    const bad = small({
      manifests: [manifest('core')],
      files: [
        file('packages/core/src/a.ts', "import { b } from './index.ts'\n"),
        file('packages/core/src/b.ts', "import { a } from '@csb/core'\n"),
      ],
    })
    expect(checkOwnIndex(bad)).toHaveLength(2)
  })
})
