/** What a file bears at least by who writes it. */
import { describe, expect, test } from 'vitest'
import { formatLabel, type Label, type Lease } from '@csb/core'
import type { Caller } from '../src/index.ts'
import { codeOf, createHouse, holdingIn, type House } from './house.ts'

const LEASE: Partial<Lease> = {
  actions: ['list', 'read', 'write'],
  paths: ['/'],
  branches: ['*'],
  labels_max: 'sealed',
  label_tags: ['*'],
}

const labelOf = async (house: House, path: string): Promise<string> => {
  const { label } = await house.owned<{ label: Label }>('files.read', { branch: 'runs/one', path })
  return formatLabel(label)
}
const write = (house: House, who: Caller, path: string, label?: string) =>
  house.service.perform(who, 'files.write', {
    branch: 'runs/one',
    path,
    text: path,
    ...(label === undefined ? {} : { label }),
  })

describe('L3.2 what is written by files.write', () => {
  test('by a session is an agent\u2019s word, whatever it says, and the owner\u2019s stays the owner\u2019s', async () => {
    const house = await createHouse()
    const session = await holdingIn(house, LEASE)
    await write(house, session, 'own.md')
    await write(house, session, 'said.md', 'private:owner')
    await write(house, house.owning, 'mine.md')
    expect(await labelOf(house, 'own.md')).toBe('private:agent')
    expect(await labelOf(house, 'said.md')).toBe('private:agent')
    expect(await labelOf(house, 'mine.md')).toBe('private:owner')
    // written over by a session it is its word too
    await write(house, session, 'mine.md')
    expect(await labelOf(house, 'mine.md')).toBe('private:agent')
  })

  test('L1.2 bears the floor of the lease, and what is asked below it is refused', async () => {
    const house = await createHouse()
    await write(house, house.owning, 'open.md', 'public:owner')
    const session = await holdingIn(house, { ...LEASE, label_floor: 'private' })
    await write(house, session, 'open.md')
    expect(await labelOf(house, 'open.md')).toBe('private:agent')
    const sealed = await holdingIn(house, { ...LEASE, label_floor: 'sealed' })
    await write(house, sealed, 'new.md')
    expect(await labelOf(house, 'new.md')).toBe('sealed:agent')
    const before = await house.dump()
    expect(await codeOf(write(house, session, 'low.md', 'trusted:agent'))).toBe('SCOPE_EXCEEDED')
    await house.owned('files.write', { branch: 'runs/two', path: 'a.md', text: 'a', label: 'public:owner' })
    const label = { branch: 'runs/two', path: 'a.md', label: 'trusted:owner' }
    expect(await codeOf(house.service.perform(session, 'files.label', label))).toBe('SCOPE_EXCEEDED')
    expect(Object.keys(await house.dump()).length).toBeGreaterThan(Object.keys(before).length)
    expect(await labelOf(house, 'open.md')).toBe('private:agent')
  })
})
