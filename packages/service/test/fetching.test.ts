import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { deflateSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { createFakeClock, type Lease } from '@csb/core'
import {
  changeRef,
  createHome,
  epochOf,
  eraseVersions,
  getRef,
  packBytes,
  packFor,
  planFetch,
  receivePack,
} from '@csb/files'
import { NOW, createHouse, holdingIn, type House } from './house.ts'

const DAY = 24 * 3_600_000
type Event = { readonly kind: string; readonly bytes?: Uint8Array; readonly text?: string }

const write = (house: House, text: string) =>
  house.owned<{ commit: string }>('files.write', { branch: 'runs/one', path: 'docs/a.md', text })

/** The pack of a branch, with something that happens before its first byte. */
async function fetchWhile(house: House, want: string, meanwhile: () => Promise<unknown>): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  const input = { home: house.home, wants: [want], done: true }
  for await (const event of house.service.open(house.owning, 'git.fetch', input) as AsyncIterable<Event>) {
    if (event.kind === 'progress') await meanwhile()
    if (event.bytes !== undefined) parts.push(Uint8Array.from(event.bytes))
  }
  return Buffer.concat(parts)
}

const tagOid = (body: Buffer): string =>
  createHash('sha256').update(`tag ${body.byteLength}\0`).update(body).digest('hex')

const tagEntry = (body: Buffer): Uint8Array =>
  Buffer.concat([Buffer.from([0x80 | (4 << 4) | (body.byteLength & 15), body.byteLength >> 4]), deflateSync(body)])

/** Objects of a pack that stands by itself. */
async function objectsOf(house: House, pack: Uint8Array): Promise<number> {
  const { did } = house.key
  const { id } = await house.store.transact((tx) => createHome(tx, { owner: did, origin: did, now: 1 }))
  const source = (async function* () {
    yield await Promise.resolve(pack)
  })()
  const incoming = await receivePack(house.store, { home: id, source, standsAlone: true })
  await incoming.close()
  return incoming.count
}

describe('a fetch', () => {
  test('gets all of what it asked for when its branch goes and everything else is collected meanwhile', async () => {
    const clock = createFakeClock(NOW)
    const house = await createHouse({ clock })
    for (let i = 0; i < 5; i++) await write(house, `${'text '.repeat(200)}${i}\n`)
    const head = getRef(house.store.view(), house.home, 'runs/one')?.commit ?? ''
    const collected: unknown[] = []
    const pack = await fetchWhile(house, head, async () => {
      await house.owned('files.removeBranch', { branch: 'runs/one' })
      clock.advance(31 * DAY)
      collected.push(await house.owned('files.gc'))
    })
    // five commits with two folders and a file each, and the root of the home
    expect(await objectsOf(house, pack)).toBe(5 * 4 + 2)
    expect(collected).toEqual([expect.objectContaining({ removed: 0, expired: 1 })])
    // and afterwards it goes
    expect(await house.owned('files.gc')).toMatchObject({ removed: 5 * 4 })
    expect(house.parts.runs.holds.of(house.home)).toEqual([])
  })

  test('of a branch that grew begins with what was sent before, and gets of another branch nothing', async () => {
    const house = await createHouse()
    const { home, store } = house
    /** What is sent, and what would be if nothing had been sent before. */
    const fetched = async (branch: string): Promise<readonly [number, number]> => {
      const want = getRef(store.view(), home, branch)?.commit ?? ''
      const pack = await fetchWhile(house, want, () => Promise.resolve())
      const plan = await planFetch(store.view(), home, { wants: [want], haves: [], shallow: [] })
      const { oids } = await packFor(store.view(), home, plan, { thin: false, includeTags: new Set<string>() })
      return [await objectsOf(house, pack), oids.size]
    }
    await write(house, 'first')
    await write(house, 'second')
    // two commits with two folders and a file each, and the root of the home
    expect(await fetched('runs/one')).toEqual([2 * 4 + 2, 2 * 4 + 2])
    // a commit whose folders and file were sent two commits ago, and one with new ones
    await write(house, 'first')
    await write(house, 'third')
    expect(await fetched('runs/one')).toEqual([10 + 1 + 4, 10 + 1 + 4])
    await house.owned('files.write', { branch: 'runs/two', path: 'docs/a.md', text: 'other' })
    expect(await fetched('runs/two')).toEqual([4 + 2, 4 + 2])
    // both begin with the main line
    const main = getRef(store.view(), home, 'main')?.commit ?? ''
    const start = house.parts.runs.packs.findBehind(home, epochOf(store.view(), home), (oid) => oid === main)
    expect(start).toMatchObject({ wants: [main], oids: { size: 2 } })
    // what was forgotten is not begun with
    await store.transact((tx) => eraseVersions(tx, home, ['docs/a.md']))
    await house.owned('files.write', { branch: 'runs/one', path: 'docs/a.md', delete: true })
    await house.owned('files.write', { branch: 'runs/one', path: 'docs/b.md', text: 'new' })
    const [sent, whole] = await fetched('runs/one')
    expect(sent).toBe(whole)
    expect(sent).toBeLessThan(8)
  })

  test('that is given what was kept ends where something of it is forgotten meanwhile, and only there', async () => {
    const house = await createHouse()
    const { home, store } = house
    const { commit } = await write(house, 'text')
    const whole = await fetchWhile(house, commit, () => Promise.resolve())
    const others = () => store.transact((tx) => eraseVersions(tx, home, ['docs/b.md']))
    expect(await fetchWhile(house, commit, others)).toEqual(whole)
    const same = () => store.transact((tx) => eraseVersions(tx, home, ['docs/a.md']))
    await expect(fetchWhile(house, commit, same)).rejects.toMatchObject({ code: 'FORGOTTEN' })
  })

  test('gets the tags that its lease reaches, and what they stand on, and no other', async () => {
    const house = await createHouse()
    const { home, store } = house
    const { commit } = await write(house, 'text')
    const bodyOf = (name: string, kind: string, oid: string) =>
      Buffer.from(`object ${oid}\ntype ${kind}\ntag ${name}\ntagger A <a@b> 1 +0000\n\n${name}\n`)
    const inner = bodyOf('inner', 'commit', commit)
    const outer = bodyOf('outer', 'tag', tagOid(inner))
    const source = packBytes('sha256', 2, [tagEntry(inner), tagEntry(outer)])
    const incoming = await receivePack(store, { home, source: Readable.from(source) })
    const stage = await incoming.store({ objects: new Set([tagOid(inner), tagOid(outer)]) })
    await store.transact(async (tx) => {
      await stage(tx)
      changeRef(tx, home, { name: 'refs/tags/outer', from: null, to: tagOid(outer) }, { now: NOW, outside: false })
    })
    await incoming.close()
    const lease = {
      actions: ['list', 'read'],
      paths: ['/'],
      labels_max: 'sealed',
      label_tags: ['*'],
    } satisfies Partial<Lease>
    const all = await holdingIn(house, { ...lease, branches: ['*'] })
    const some = await holdingIn(house, { ...lease, branches: ['runs/*'] })
    const sent: number[] = []
    for (const who of [all, some, all]) {
      const input = { home, wants: [commit], done: true, include_tags: true }
      const parts: Uint8Array[] = []
      for await (const event of house.service.open(who, 'git.fetch', input) as AsyncIterable<Event>)
        if (event.bytes !== undefined) parts.push(Uint8Array.from(event.bytes))
      sent.push(await objectsOf(house, Buffer.concat(parts)))
    }
    expect(sent).toEqual([4 + 2 + 2, 4 + 2, 4 + 2 + 2])
  })

  test('that is broken off, or asks for what is not here, holds nothing back', async () => {
    const house = await createHouse()
    const { commit } = await write(house, 'text')
    for await (const _ of house.service.open(house.owning, 'git.fetch', {
      home: house.home,
      wants: [commit],
      done: true,
    }))
      break
    const nothing = fetchWhile(house, 'f'.repeat(64), () => Promise.resolve())
    await expect(nothing).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(house.parts.runs.holds.of(house.home)).toEqual([])
  })

  test('what is held and is not here does not stop a collection', async () => {
    const house = await createHouse()
    const letGo = await house.parts.runs.holds.take(house.store, house.home, ['f'.repeat(64)])
    expect(await house.owned('files.gc')).toMatchObject({ removed: 0 })
    letGo()
  })
})

test('an export whose right ends, or that nobody wants any more, does not look as if it were whole', async () => {
  const house = await createHouse()
  const stopped = new AbortController()
  const events = house.service.open(house.owning, 'files.export', {}, { signal: stopped.signal })
  const took = async () => {
    for await (const _ of events) stopped.abort()
  }
  await expect(took()).rejects.toBeInstanceOf(Error)
})
