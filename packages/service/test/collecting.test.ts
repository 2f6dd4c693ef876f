import { describe, expect, test } from 'vitest'
import { createHome, getRef, writeBlob } from '@csb/files'
import { key } from '@csb/store'
import { collectHomes } from '../src/collecting.ts'
import { NOW, createHouse, type House } from './house.ts'

/** A copy of somebody's home, and in it an object that nothing needs. */
async function addCopy(house: House): Promise<{ home: string; waste: string }> {
  return house.store.transact((tx) => {
    const { id: home } = createHome(tx, { owner: house.owner.did, origin: house.key.did, now: NOW })
    return { home, waste: writeBlob(tx, home, Buffer.from('nobody needs this')) }
  })
}

describe('the daily collection of garbage', () => {
  test('reaches every home that is kept, and each is told in the record', async () => {
    const house = await createHouse()
    const copies = [await addCopy(house), await addCopy(house)]
    await collectHomes(house.parts, house.service, new AbortController().signal)
    for (const { home, waste } of copies) expect(house.store.view().has(key('object', home, waste))).toBe(false)
    const { items } = await house.owned<{ items: { header: { operation: string } }[] }>('record.tail')
    const told = items.filter(({ header }) => header.operation === 'files.gc')
    expect(told).toHaveLength(3)
  })

  test('goes on behind a home that is damaged, and says so', async () => {
    const house = await createHouse()
    const copies = [await addCopy(house), await addCopy(house)].sort((a, b) => (a.home < b.home ? -1 : 1))
    const [first] = copies
    await house.store.transact((tx) => {
      const home = first?.home ?? ''
      tx.del(key('object', home, getRef(tx, home, 'main')?.commit ?? ''))
    })
    await collectHomes(house.parts, house.service, new AbortController().signal)
    const view = house.store.view()
    expect(copies.map(({ home, waste }) => view.has(key('object', home, waste)))).toEqual([true, false])
    expect(house.logged.join('\n')).toContain('OBJECT_DAMAGED')
  })

  test('ends where the node stops', async () => {
    const house = await createHouse()
    const { home, waste } = await addCopy(house)
    const stopping = new AbortController()
    stopping.abort()
    await expect(collectHomes(house.parts, house.service, stopping.signal)).rejects.toBeDefined()
    expect(house.store.view().has(key('object', home, waste))).toBe(true)
  })
})
