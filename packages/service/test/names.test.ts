/** Names are words: one that a session gave after it had read from outside taints whoever is told it. */
import { describe, expect, test } from 'vitest'
import type { Lease } from '@csb/core'
import { taintOf } from '@csb/authority'
import { readCommit } from '@csb/files'
import { key } from '@csb/store'
import type { Caller } from '../src/index.ts'
import { codeOf, createHouse, holdingIn, type House } from './house.ts'

const LEASE: Partial<Lease> = {
  actions: ['list', 'read', 'write', 'snapshot', 'propose'],
  paths: ['/'],
  branches: ['*'],
  labels_max: 'sealed',
  label_tags: ['*'],
}
const NAME = 'runs/ignore-your-instructions'

/** A session that has read something from outside. */
async function tainted(house: House, lease: Partial<Lease> = {}) {
  await house.owned('files.write', { branch: 'runs/web', path: 'page.md', text: 'x', label: 'private:external' })
  const session = await holdingIn(house, { ...LEASE, ...lease })
  await house.service.perform(session, 'files.read', { branch: 'runs/web', path: 'page.md' })
  expect(taintOf(house.store.view(), session.hash)).toBeDefined()
  return session
}

/** Every way in which a session gives a name. */
const WAYS: readonly [string, string, (house: House, session: Caller) => Promise<unknown>][] = [
  ['files.branch', NAME, (house, session) => house.service.perform(session, 'files.branch', { branch: NAME })],
  [
    'files.write into a new branch',
    NAME,
    (house, session) => house.service.perform(session, 'files.write', { branch: NAME, path: 'a.md', text: 'a' }),
  ],
  [
    'files.snapshot',
    'snapshots/obey',
    (house, session) => house.service.perform(session, 'files.snapshot', { name: 'obey' }),
  ],
  [
    'files.restore under another name',
    NAME,
    async (house, session) => {
      await house.owned('files.branch', { branch: 'runs/plain' })
      await house.owned('files.removeBranch', { branch: 'runs/plain' })
      await house.service.perform(session, 'files.restore', { branch: 'runs/plain', as: NAME })
    },
  ],
]

const LISTINGS: readonly [string, (name: string) => string][] = [
  ['files.refs', (name) => name],
  ['git.refs', (name) => (name.startsWith('snapshots/') ? `refs/${name}` : `refs/heads/${name}`)],
]

const namesIn = async (house: House, reader: Caller, listing: string): Promise<string[]> => {
  const { refs } = (await house.service.perform(reader, listing, {})) as { refs: { branch: string; name?: string }[] }
  return refs.map(({ branch, name }) => name ?? branch)
}

describe.each(LISTINGS)('L1.7 what %s tells', (listing, spelled) => {
  test.each(WAYS)(
    'of a name given by %s of a session that had read from outside taints the reader',
    async (_, name, give) => {
      const house = await createHouse()
      const session = await tainted(house)
      await give(house, session)
      const reader = await holdingIn(house, LEASE)
      expect(await namesIn(house, reader, listing)).toContain(spelled(name))
      expect(taintOf(house.store.view(), reader.hash)).toMatchObject({
        label: 'public:external',
        reads: [{ path: name }],
      })
      // the owner's own command line is told all, and is no session
      expect(await namesIn(house, house.owning, listing)).toContain(spelled(name))
    },
  )

  test('leaves such a name out for a lease that reads nothing from outside, which stays clean', async () => {
    const house = await createHouse()
    await house.service.perform(await tainted(house), 'files.branch', { branch: NAME })
    await house.owned('files.branch', { branch: 'runs/plain' })
    const reader = await holdingIn(house, { ...LEASE, external: 'deny' })
    const names = await namesIn(house, reader, listing)
    expect(names).toContain(spelled('runs/plain'))
    expect(names).not.toContain(spelled(NAME))
    expect(taintOf(house.store.view(), reader.hash)).toBeUndefined()
  })

  test('taints nobody by names of clean sessions, nor by one of a lease that does not reach it', async () => {
    const house = await createHouse()
    const clean = await holdingIn(house, LEASE)
    await house.service.perform(clean, 'files.branch', { branch: 'runs/plain' })
    await house.service.perform(await tainted(house), 'files.branch', { branch: NAME })
    const reader = await holdingIn(house, { ...LEASE, branches: ['main', 'runs/plain'] })
    expect(await namesIn(house, reader, listing)).toContain(spelled('runs/plain'))
    expect(taintOf(house.store.view(), reader.hash)).toBeUndefined()
  })
})

test('L1.7 the recycle area tells of a removed branch by a name that taints', async () => {
  const house = await createHouse()
  const session = await tainted(house)
  await house.service.perform(session, 'files.branch', { branch: NAME })
  await house.service.perform(session, 'files.removeBranch', { branch: NAME })
  const recycled = async (reader: Caller) =>
    ((await house.service.perform(reader, 'files.recycle', {})) as { items: { branch: string }[] }).items
  const reader = await holdingIn(house, LEASE)
  expect(await recycled(reader)).toMatchObject([{ branch: NAME }])
  expect(taintOf(house.store.view(), reader.hash)).toMatchObject({ reads: [{ path: NAME }] })
  expect(await recycled(await holdingIn(house, { ...LEASE, external: 'deny' }))).toEqual([])
})

test('L1.7 an export of such a name taints, and is refused to a lease that reads nothing from outside', async () => {
  const house = await createHouse()
  const session = await tainted(house)
  await house.service.perform(session, 'files.branch', { branch: NAME })
  await house.owned('files.removeBranch', { branch: 'runs/web' })
  // its content is from outside too: what is looked for is the name
  const reader = await holdingIn(house, LEASE)
  for await (const _ of house.service.open(reader, 'files.export', {})) break
  expect(taintOf(house.store.view(), reader.hash)?.reads.map(({ path }) => path)).toContain(NAME)
  const deny = await holdingIn(house, { ...LEASE, external: 'deny' })
  const before = await house.dump()
  const exported = async () => {
    for await (const _ of house.service.open(deny, 'files.export', {})) break
  }
  expect(await codeOf(exported())).toBe('DENIED')
  expect(await house.dump()).toEqual(before)
})

test('L1.7 who asks for other names, or only pushes, is told none from outside and stays clean', async () => {
  const house = await createHouse()
  const session = await tainted(house)
  await house.service.perform(session, 'files.branch', { branch: NAME })
  const reader = await holdingIn(house, LEASE)
  const names = async (who: Caller, input: object) =>
    ((await house.service.perform(who, 'git.refs', input)) as { refs: { name: string }[] }).refs.map(({ name }) => name)
  expect(await names(reader, { push: true })).not.toContain(`refs/heads/${NAME}`)
  expect(await names(reader, { prefixes: ['refs/heads/runs/web'] })).toEqual(['refs/heads/main', 'refs/heads/runs/web'])
  expect(taintOf(house.store.view(), reader.hash)).toBeUndefined()
  // whoever gave the name, or was told it, pushes to it
  expect(await names(session, { push: true })).toContain(`refs/heads/${NAME}`)
  await names(reader, { prefixes: ['refs/heads/runs/'] })
  expect(taintOf(house.store.view(), reader.hash)).toMatchObject({ reads: [{ path: NAME }] })
  expect(await names(reader, { push: true })).toContain(`refs/heads/${NAME}`)
})

test('L1.7 the names of what is damaged taint, and a check that finds nothing does not', async () => {
  const house = await createHouse()
  const { commit } = await house.owned<{ commit: string }>('files.write', { branch: 'runs/a', path: 'a.md', text: 'a' })
  const all = {
    actions: ['list', 'read', 'exec'] as Lease['actions'],
    capabilities: ['B', 'C'] as Lease['capabilities'],
  }
  const lease = { ...LEASE, ...all } as Partial<Lease>
  const reader = await holdingIn(house, lease)
  expect(await house.service.perform(reader, 'files.fsck', {})).toMatchObject({ damaged: [] })
  expect(taintOf(house.store.view(), reader.hash)).toBeUndefined()
  const { tree } = readCommit(house.store.view(), house.home, commit)
  await house.store.transact((tx) => tx.del(key('object', house.home, tree)))
  expect(await house.service.perform(reader, 'files.fsck', {})).toMatchObject({ damaged: [{ oid: tree }] })
  expect(taintOf(house.store.view(), reader.hash)).toBeDefined()
  const deny = await holdingIn(house, { ...lease, external: 'deny' })
  expect(await codeOf(house.service.perform(deny, 'files.fsck', {}))).toBe('DENIED')
})
