/** Who may import whom. Each rule takes the house and gives one sentence per break. */
import { posix } from 'node:path'
import { importsOf } from './code.ts'
import { roomOf, sourcesOf, type House, type SourceFile } from './house.ts'

/** The arrows between rooms, in floor order: a room and the rooms it may import. Rooms on one floor share a line. */
export const FLOORS: readonly (readonly (readonly [room: string, mayImport: readonly string[]])[])[] = [
  [['core', []]],
  [['store', ['core']]],
  [
    ['files', ['core', 'store']],
    ['agents', ['core', 'store']],
  ],
  [
    ['authority', ['core', 'store', 'files']],
    ['memory', ['core', 'store', 'files']],
  ],
  [['guard', ['core', 'store', 'files', 'memory']]],
  [['sync', ['core', 'store', 'files', 'authority', 'memory', 'guard']]],
  [['service', ['core', 'store', 'files', 'agents', 'authority', 'memory', 'guard', 'sync']]],
  [
    ['wire', ['core', 'service']],
    ['http', ['core', 'service']],
  ],
  // files and authority: a home and its first grants are made before there is a service; memory: it reads vaults
  [['node', ['core', 'store', 'files', 'authority', 'memory', 'service', 'wire', 'http']]],
]

/** What every process may import. */
const APP_MAY_IMPORT = ['core', 'node']

const ARROWS = new Map(FLOORS.flat())
const FLOOR_OF = new Map(FLOORS.flatMap((rooms, floor) => rooms.map(([room]) => [room, floor] as const)))

/** Manifests name only rooms that an arrow allows. */
export function checkManifestArrows({ manifests }: House): string[] {
  return manifests.flatMap(({ path, dependencies }) => {
    const allowed = mayImport(roomOf(path) ?? '')
    return ourNames(Object.keys(dependencies))
      .filter((room) => !allowed.includes(room))
      .map((room) => `${path} depends on @csb/${room}, and no arrow allows it`)
  })
}

/** Sources import only rooms that an arrow allows and the manifest names, by the name of the room, never by path. */
export function checkImportArrows({ files, manifests }: House): string[] {
  return sourcesOf(files).flatMap((file) => {
    const room = roomOf(file.path) ?? ''
    const named = manifestOf(manifests, room)
    return importsOf(file.text).flatMap(({ from, line }) => {
      const at = `${file.path}:${line}`
      if (from.startsWith('.')) return leavesRoom(file, from) ? [`${at} reaches into another room: ${from}`] : []
      if (!from.startsWith('@csb/')) return []
      const target = from.slice('@csb/'.length)
      if (!mayImport(room).includes(target)) return [`${at} imports ${from}, and no arrow allows it`]
      return named.includes(from) ? [] : [`${at} imports ${from}, and the manifest does not name it`]
    })
  })
}

/** Tests of a package know their own package and lower floors only. */
export function checkTestArrows({ files }: House): string[] {
  return files.flatMap((file) => {
    const room = /^packages\/([^/]+)\/test\//.exec(file.path)?.[1]
    if (room === undefined) return []
    const floor = FLOOR_OF.get(room) ?? -1
    return importsOf(file.text).flatMap(({ from, line }) => {
      if (from.startsWith('.')) return leavesRoom(file, from) ? [`${file.path}:${line} reaches out: ${from}`] : []
      const target = from.startsWith('@csb/') ? from.slice('@csb/'.length) : room
      const isLower = target === room || (FLOOR_OF.get(target) ?? Infinity) < floor
      return isLower ? [] : [`${file.path}:${line} imports ${from} from a floor that is not lower`]
    })
  })
}

/** The doors know `core` and `service` and nothing else of ours. */
export function checkDoors({ files }: House): string[] {
  return sourcesOf(files)
    .filter(({ path }) => /^packages\/(?:wire|http)\//.test(path))
    .flatMap(({ path, text }) =>
      importsOf(text)
        .filter(({ from }) => from.startsWith('@csb/') && from !== '@csb/core' && from !== '@csb/service')
        .map(({ from, line }) => `${path}:${line} is a door and imports ${from}`),
    )
}

/** An outside library stands in one manifest, and only the sources beside that manifest import it. */
export function checkOwners({ files, manifests }: House): string[] {
  const owners = new Map<string, string[]>()
  for (const { path, dependencies } of manifests) {
    for (const name of Object.keys(dependencies)) {
      if (name.startsWith('@csb/')) continue
      owners.set(name, [...(owners.get(name) ?? []), roomOf(path) ?? path])
    }
  }
  const shared = [...owners]
    .filter(([, rooms]) => rooms.length > 1)
    .map(([name, rooms]) => `${name} has more than one owner: ${rooms.join(', ')}`)
  const strangers = sourcesOf(files).flatMap(({ path, text }) =>
    importsOf(text).flatMap(({ from, line }) => {
      if (/^(?:\.|node:|@csb\/)/.test(from)) return []
      const owner = owners.get(packageName(from))?.[0]
      if (owner === roomOf(path)) return []
      return [`${path}:${line} imports ${from}, which ${owner === undefined ? 'nobody owns' : `${owner} owns`}`]
    }),
  )
  return [...shared, ...strangers]
}

/** No file reaches itself through its imports, types included, and no room does. */
export function checkCircles({ files, manifests }: House): string[] {
  const ofFiles = new Map<string, readonly string[]>(
    sourcesOf(files).map((file) => [
      file.path,
      importsOf(file.text)
        .filter(({ from }) => from.startsWith('.'))
        .map(({ from }) => posix.join(posix.dirname(file.path), from)),
    ]),
  )
  const ofRooms = new Map<string, readonly string[]>(
    manifests.map(({ name, dependencies }) => [name, Object.keys(dependencies)]),
  )
  return [...circlesIn(ofFiles), ...circlesIn(ofRooms)]
}

/** Nobody imports an `index.ts` of the room he lives in, nor the room by its name. */
export function checkOwnIndex({ files, manifests }: House): string[] {
  return sourcesOf(files).flatMap(({ path, text }) => {
    const own = manifests.find((manifest) => roomOf(manifest.path) === roomOf(path))?.name
    return importsOf(text)
      .filter(({ from }) => /^\.{1,2}\/(?:.*\/)?index\.ts$/.test(from) || from === own)
      .map(({ from, line }) => `${path}:${line} imports its own index: ${from}`)
  })
}

function mayImport(room: string): readonly string[] {
  if (room.startsWith('apps/')) return APP_MAY_IMPORT
  return ARROWS.get(room.slice('packages/'.length)) ?? []
}

function manifestOf(manifests: House['manifests'], room: string): readonly string[] {
  return Object.keys(manifests.find(({ path }) => roomOf(path) === room)?.dependencies ?? {})
}

function ourNames(names: readonly string[]): string[] {
  return names.filter((name) => name.startsWith('@csb/')).map((name) => name.slice('@csb/'.length))
}

function packageName(from: string): string {
  return from
    .split('/')
    .slice(0, from.startsWith('@') ? 2 : 1)
    .join('/')
}

function leavesRoom(file: SourceFile, from: string): boolean {
  return roomOf(posix.join(posix.dirname(file.path), from)) !== roomOf(file.path)
}

function circlesIn(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const found: string[] = []
  const finished = new Set<string>()
  const visit = (node: string, trail: readonly string[]): void => {
    if (finished.has(node)) return
    const begin = trail.indexOf(node)
    if (begin !== -1) {
      found.push(`circle: ${[...trail.slice(begin), node].join(' -> ')}`)
      return
    }
    for (const next of graph.get(node) ?? []) visit(next, [...trail, node])
    finished.add(node)
  }
  for (const node of graph.keys()) visit(node, [])
  return found
}
