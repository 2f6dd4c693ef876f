/** What is read under a lease that was handed out: each request is one of many, and a commit rests on all before it. */
import { describe, expect, test } from 'vitest'
import { LIMITS, NodeError, createFakeClock, until, type Lease } from '@csb/core'
import { prefix } from '@csb/store'
import { collectRows } from '../src/collecting.ts'
import { HOUR, NOW, codeOf, createHouse, holdingIn, type Holder, type House } from './house.ts'

const LEASE: Partial<Lease> = {
  actions: ['list', 'read', 'write'],
  paths: ['/'],
  branches: ['*'],
  labels_max: 'sealed',
  label_tags: ['*'],
  capabilities: ['B', 'C'],
}

type Session = Holder & { readonly hash: string }

const remember = async (house: House, content: string) =>
  (await house.owned<{ id: string }>('memory.create', { entry: { content, type: 'other' } })).id
const read = (house: House, session: Session, id: string) => house.service.perform(session, 'memory.get', { id })
const write = async (house: House, session: Session, path: string) =>
  (await house.service.perform(session, 'files.write', { branch: 'runs/x', path, text: path })) as { commit: string }
const explained = (house: House, commit: string) => house.owned<Told>('record.explain', { commit })
type Read = { readonly path: string }
type Earlier = { readonly reads: Read[]; readonly erased: number; readonly more: number }
type Told = {
  readonly reads: Read[]
  readonly readCount: number
  readonly earlier: Earlier
}

const idsIn = (reads: readonly Read[]): string[] => reads.map(({ path }) => /mem_[^.]*/.exec(path)?.[0] ?? path).sort()
const unlisted = async (house: House) =>
  Object.keys(await house.dump((fullKey) => !fullKey.startsWith(prefix('unlisted'))))

describe('L1.5 the read list of a lease', () => {
  test('L1.5 stands in the entry of the next commit, and what is read again is not told again', async () => {
    const house = await createHouse()
    const [a, b, c] = [await remember(house, 'a'), await remember(house, 'b'), await remember(house, 'c')]
    const session = await holdingIn(house, LEASE)
    for (const id of [a, b, a, a]) await read(house, session, id)
    expect(await unlisted(house)).toHaveLength(2)
    const first = await write(house, session, 'one.md')
    expect(idsIn((await explained(house, first.commit)).reads)).toEqual([a, b].sort())
    expect(await unlisted(house)).toEqual([])

    await read(house, session, c)
    const second = await explained(house, (await write(house, session, 'two.md')).commit)
    expect(idsIn(second.reads)).toEqual([c])
    expect(idsIn(second.earlier.reads)).toEqual([a, b].sort())
  })

  test('L1.5 outlives a restart', async () => {
    const house = await createHouse()
    const id = await remember(house, 'a')
    const session = await holdingIn(house, LEASE)
    await read(house, session, id)
    const again = await house.reopen()
    expect(idsIn((await explained(again, (await write(again, session, 'one.md')).commit)).reads)).toEqual([id])
  })

  test("L1.5 is nobody else's", async () => {
    const house = await createHouse()
    const [a, b] = [await remember(house, 'a'), await remember(house, 'b')]
    const [one, other] = [await holdingIn(house, LEASE), await holdingIn(house, LEASE)]
    await read(house, one, a)
    await read(house, other, b)
    await house.owned('memory.get', { id: b })
    expect(idsIn((await explained(house, (await write(house, one, 'one.md')).commit)).reads)).toEqual([a])
    expect(idsIn((await explained(house, (await write(house, other, 'two.md')).commit)).reads)).toEqual([b])
  })

  test('L1.5 stands in the entry of a refusal as well, and not twice', async () => {
    const house = await createHouse()
    const id = await remember(house, 'a')
    const session = await holdingIn(house, LEASE)
    await read(house, session, id)
    const merging = house.service.perform(session, 'files.write', { branch: 'main', path: 'a.md', text: 'x' })
    expect(await codeOf(merging)).toBe('PROTECTED')
    const { commit } = await write(house, session, 'one.md')
    expect(idsIn((await explained(house, commit)).reads)).toEqual([id])
  })

  test('L1.5 is written down in an entry of its own where it grows long, and reading goes on', async () => {
    const clock = createFakeClock(NOW)
    const house = await createHouse({ clock })
    const items = Array.from({ length: 100 }, (_, at) => ({ entry: { content: `note ${at}`, type: 'other' } }))
    const session = await holdingIn(house, LEASE)
    const made: string[] = []
    for (let round = 0; round < 42; round++) {
      const batch = await house.owned<{ items: { id: string }[] }>('memory.batch', { items })
      made.push(...batch.items.map(({ id }) => id))
      clock.advance(1)
    }
    for (let after: string | null | undefined; after !== null;) {
      const page = (await house.service.perform(session, 'memory.list', {
        limit: 200,
        ...(after === undefined ? {} : { cursor: after }),
      })) as { next_cursor: string | null }
      after = page.next_cursor
    }
    await house.dump()
    const listing = (await house.records()).filter(({ operation }) => operation === 'memory.list')
    expect(listing).toHaveLength(1)
    const { commit } = await write(house, session, 'one.md')
    const { reads, earlier } = await explained(house, commit)
    // of so many the newest are named, and how many more there are
    expect(earlier.reads).toHaveLength(LIMITS.earlierReads)
    expect(reads.length + earlier.reads.length + earlier.more).toBe(made.length)
    const all = new Set(made)
    expect(idsIn([...reads, ...earlier.reads]).every((id) => all.delete(id))).toBe(true)
    expect(clock.now()).toBeLessThan(NOW + HOUR)
  })

  test("L1.5 has no part of what the owner's command line read for other requests", async () => {
    const house = await createHouse()
    for (const name of ['a', 'b', 'c']) {
      const id = await remember(house, name)
      await house.owned('memory.get', { id })
      await house.owned('memory.delete', { id })
    }
    const { commit } = await house.owned<{ commit: string }>('files.write', {
      branch: 'runs/z',
      path: 'z.md',
      text: 'z',
    })
    expect((await explained(house, commit)).earlier).toEqual({ reads: [], erased: 0, more: 0 })
  })

  test('L1.5 is kept when it is read again, where it could not be kept before', async () => {
    const house = await createHouse()
    const id = await remember(house, 'a')
    const session = await holdingIn(house, LEASE)
    const { transact } = house.store
    Object.assign(house.store, { transact: () => Promise.reject(new NodeError('DISK_FULL')) })
    await read(house, session, id)
    await until(async () => house.parts.runs.unlisted.size === 0 || undefined, 30_000, 'it is known as not kept')
    Object.assign(house.store, { transact })
    await read(house, session, id)
    const { commit } = await write(house, session, 'one.md')
    expect(idsIn((await explained(house, commit)).reads)).toEqual([id])
  })

  test('L1.5 names each branch that a clone brought, as it was, and what only reads is in the record in the end', async () => {
    const clock = createFakeClock(NOW)
    const house = await createHouse({ clock })
    const at = { branch: 'runs/plan', path: 'plan.md', text: 'plan' }
    const { commit: head } = await house.owned<{ commit: string }>('files.write', at)
    const cloned = async (session: Session) => {
      for await (const part of house.service.open(session, 'git.fetch', { wants: [head], haves: [], done: true }))
        expect(part).toBeDefined()
    }
    const [one, spy] = [await holdingIn(house, LEASE), await holdingIn(house, LEASE)]
    await cloned(one)
    const { reads } = await explained(house, (await write(house, one, 'copy.md')).commit)
    expect(reads).toContainEqual(expect.objectContaining({ path: 'runs/plan:', oid: head }))

    await cloned(spy)
    // what is kept behind the answer is on the disk
    expect(await unlisted(house)).toHaveLength(1)
    clock.advance(HOUR)
    await collectRows(house.parts, new AbortController().signal)
    const listing = (await house.records()).find(({ lease }) => lease === spy.hash)
    expect(listing?.reads).toContainEqual(expect.objectContaining({ path: 'runs/plan:', oid: head }))
  })

  test('L3.4 names nothing that was forgotten', async () => {
    const house = await createHouse()
    const [a, b] = [await remember(house, 'a'), await remember(house, 'b')]
    const session = await holdingIn(house, LEASE)
    await read(house, session, a)
    await read(house, session, b)
    await house.forget([a])
    const { commit } = await write(house, session, 'one.md')
    expect(idsIn((await explained(house, commit)).reads)).toEqual([b])
  })
})
