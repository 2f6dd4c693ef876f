import { describe, expect, test } from 'vitest'
import { createFakeClock } from '@csb/core'
import { createHome, getRef, receivePack } from '@csb/files'
import { NOW, createHouse, type House } from './house.ts'

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
