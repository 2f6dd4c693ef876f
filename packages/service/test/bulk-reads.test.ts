/** A session that is given whole branches at once, by a clone or an export, is tainted by what lies there from outside. */
import { describe, expect, test } from 'vitest'
import type { Lease } from '@csb/core'
import { taintOf } from '@csb/authority'
import { changeRef, getRef } from '@csb/files'
import { prefix } from '@csb/store'
import type { Caller } from '../src/index.ts'
import { NOW, codeOf, createHouse, holdingIn, type House } from './house.ts'

const LEASE: Partial<Lease> = {
  actions: ['list', 'read', 'write', 'send'],
  paths: ['/'],
  branches: ['memory', 'runs/*'],
  labels_max: 'private',
  capabilities: ['C'],
  max_children: 4,
}

const remember = async (house: House, content: string) =>
  house.owned('memory.create', { entry: { content, level: 'warm', type: 'lesson' }, label: 'private:external' })

/** What only a clean session is given at once. */
const attenuate = (house: House, parent: Caller) =>
  house.service.perform(parent, 'authority.attenuate', { name: 'child', lease: {} })

describe('a session is tainted by', () => {
  test.each<[string, Partial<Lease>, (house: House, session: Caller) => AsyncIterable<unknown>]>([
    [
      'a clone by git',
      {},
      (house, session) => {
        const wants = [getRef(house.store.view(), house.home, 'memory')?.commit ?? '']
        return house.service.open(session, 'git.fetch', { wants, done: true })
      },
    ],
    [
      'an export',
      { branches: ['*'], labels_max: 'sealed', label_tags: ['*'] },
      (house, session) => house.service.open(session, 'files.export', {}),
    ],
  ])('%s, before its first byte is there', async (_, lease, open) => {
    const house = await createHouse()
    await remember(house, 'from outside')
    const session = await holdingIn(house, { ...LEASE, branches: ['*'], ...lease })
    expect(await codeOf(attenuate(house, session))).toBe('done')
    const stream = open(house, session)[Symbol.asyncIterator]()
    await stream.next()
    await stream.return?.()
    expect(taintOf(house.store.view(), session.hash)).toMatchObject({ label: 'private:external' })
    expect(await codeOf(attenuate(house, session))).toBe('GATE_REQUIRED')
  })

  test.each(['snapshots/kept', 'tags/kept'])('a clone of %s, whose branch is gone', async (name) => {
    const house = await createHouse()
    const file = { branch: 'runs/one', path: 'a.md', text: 'from outside', label: 'private:external' }
    const { commit } = await house.owned<{ commit: string }>('files.write', file)
    if (name.startsWith('tags/'))
      await house.store.transact((tx) =>
        changeRef(tx, house.home, { name: `refs/${name}`, from: null, to: commit }, { now: NOW, outside: false }),
      )
    else await house.owned('files.snapshot', { name: 'kept', of: 'runs/one' })
    await house.owned('files.removeBranch', { branch: 'runs/one' })
    const session = await holdingIn(house, { ...LEASE, branches: ['*'], labels_max: 'sealed', label_tags: ['*'] })
    for await (const _ of house.service.open(session, 'git.fetch', { wants: [commit], done: true })) continue
    expect(await codeOf(attenuate(house, session))).toBe('GATE_REQUIRED')
  })

  test('an export of a branch that can be restored', async () => {
    const house = await createHouse()
    await house.owned('files.write', { branch: 'runs/one', path: 'a.md', text: 'x', label: 'private:external' })
    await house.owned('files.removeBranch', { branch: 'runs/one' })
    const session = await holdingIn(house, { ...LEASE, branches: ['*'], labels_max: 'sealed', label_tags: ['*'] })
    for await (const _ of house.service.open(session, 'files.export', {})) continue
    expect(await codeOf(attenuate(house, session))).toBe('GATE_REQUIRED')
  })

  test('an export that is gone on with, by what was there when it began', async () => {
    const house = await createHouse()
    await house.owned('files.write', { branch: 'runs/one', path: 'a.md', text: 'x', label: 'private:external' })
    const begun = async (caller: Caller, input: object): Promise<{ export: string }> => {
      for await (const event of house.service.open(caller, 'files.export', input)) return event as { export: string }
      return { export: '' }
    }
    const { export: id } = await begun(house.owning, {})
    await house.owned('files.removeBranch', { branch: 'runs/one' })
    await house.store.transact(async (tx) => {
      for await (const [row] of tx.range({ prefix: prefix('recycle', house.home) })) tx.del(row)
    })
    const lease = { ...LEASE, branches: ['*'], labels_max: 'sealed' as const, label_tags: ['*'] }
    const other = await holdingIn(house, lease)
    await begun(other, {})
    expect(await codeOf(attenuate(house, other))).toBe('done')
    const session = await holdingIn(house, lease)
    await begun(session, { export: id })
    expect(await codeOf(attenuate(house, session))).toBe('GATE_REQUIRED')
  })

  test('a clone of another branch does not', async () => {
    const house = await createHouse()
    await remember(house, 'from outside')
    const session = await holdingIn(house, { ...LEASE, branches: ['*'], labels_max: 'sealed', label_tags: ['*'] })
    const wants = [getRef(house.store.view(), house.home, 'main')?.commit ?? '']
    for await (const _ of house.service.open(session, 'git.fetch', { wants, done: true })) continue
    expect(await codeOf(attenuate(house, session))).toBe('done')
  })

  test.each([
    ['files.diff', { from: 'main', to: 'runs/one' }],
    ['files.preview', { from: 'runs/one', into: 'runs/two' }],
    ['files.recycle', {}],
  ])('the names that %s tells', async (operation, input) => {
    const house = await createHouse()
    const file = { path: 'do as I say.md', text: 'x', label: 'private:external' }
    await house.owned('files.branch', { branch: 'runs/two' })
    await house.owned('files.write', { branch: 'runs/one', ...file })
    if (operation === 'files.recycle') {
      await house.owned('files.merge', { from: 'runs/one', into: 'runs/two' })
      await house.owned('files.write', { branch: 'runs/one', path: file.path, delete: true })
      await house.owned('files.merge', { from: 'runs/one', into: 'runs/two' })
    }
    const session = await holdingIn(house, { ...LEASE, branches: ['*'] })
    await house.service.perform(session, operation, input)
    expect(await codeOf(attenuate(house, session))).toBe('GATE_REQUIRED')
  })
})

test('L0.4 an export that is refused where it would begin holds nothing', async () => {
  const house = await createHouse()
  const before = await house.dump()
  const exported = async () => {
    for await (const _ of house.service.open(house.owning, 'files.export', { offset: 10_000_000 })) break
  }
  expect(await codeOf(exported())).toBe('INVALID_INPUT')
  expect(await house.dump()).toEqual(before)
})
