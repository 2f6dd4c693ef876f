import { describe, expect, test } from 'vitest'
import { createKeyPair, newId, parseLabel } from '@csb/core'
import { commitFiles, getRef } from '@csb/files'
import { notePath } from '@csb/memory'
import { NOW, attach, codeOf, createHouse, type House } from './house.ts'

type Shown = { readonly id: string; readonly content: string; readonly label: string; readonly commit: string }

const noteOf = (content: string, more: object = {}) => ({ entry: { content, level: 'warm', type: 'lesson', ...more } })
const write = (house: House, content: string, label?: string) =>
  house.owned<Shown>('memory.create', { ...noteOf(content), ...(label === undefined ? {} : { label }) })

describe('notes', () => {
  test('are made, read, listed, deleted, restored and forgotten', async () => {
    const house = await createHouse()
    const { id } = await write(house, 'tea is hot')
    await expect(house.owned('memory.get', { id })).resolves.toMatchObject({ content: 'tea is hot' })
    await house.owned('memory.delete', { id })
    expect(await codeOf(house.owned('memory.get', { id }))).toBe('NOT_FOUND')
    await house.owned('memory.restore', { id })
    await expect(house.owned('memory.list')).resolves.toMatchObject({ items: [{ id }] })
    const forgotten = await house.forget([id], 'asked to')
    expect(forgotten.report).toMatchObject([{ id, remains: [] }])
    expect(await codeOf(house.owned('memory.get', { id }))).toBe('NOT_FOUND')
    expect(await codeOf(house.owned('memory.create', noteOf('again', { id })))).toBe('FORGOTTEN')
    expect(await codeOf(house.owned('memory.restore', { id }))).toBe('NOT_FOUND')
  })

  test('L0.1 are written by nobody as files, and leave the protected branch as it was', async () => {
    const house = await createHouse()
    const main = getRef(house.store.view(), house.home, 'main')
    const { id } = await write(house, 'tea is hot')
    const path = notePath(id)
    expect(await codeOf(house.owned('files.write', { branch: 'memory', path, text: 'x' }))).toBe('PROTECTED')
    expect(await codeOf(house.owned('files.write', { branch: 'memory', path, delete: true }))).toBe('PROTECTED')
    expect(getRef(house.store.view(), house.home, 'main')).toEqual(main)
  })

  test('L4.2 above the lease are not there, in whatever way they are asked for', async () => {
    const house = await createHouse()
    const { id } = await write(house, 'secret', 'sealed:owner')
    const { id: tagged } = await write(house, 'health', 'public:owner:health')
    const { id: shown } = await write(house, 'for the agent', 'private:owner')
    const agent = await house.leased({ labels_max: 'private', label_tags: [] })
    const ask = (operation: string, input: object) => house.service.perform(agent, operation, input)
    for (const hidden of [id, tagged]) {
      for (const operation of ['memory.get', 'memory.delete', 'memory.restore'])
        expect(await codeOf(ask(operation, { id: hidden }))).toBe('NOT_FOUND')
      expect(await codeOf(ask('memory.forget', { ids: [shown, hidden] }))).toBe('NOT_FOUND')
      expect(await codeOf(ask('files.read', { branch: 'memory', path: notePath(hidden) }))).toBe('NOT_FOUND')
    }
    await expect(ask('memory.list', {})).resolves.toMatchObject({ items: [{ id: shown }], next_cursor: null })
    const listed = JSON.stringify(await ask('files.list', { branch: 'memory' }))
    expect(listed).toContain(shown)
    for (const hidden of [id, tagged]) expect(listed).not.toContain(hidden)
  })

  test('L4.2 hidden ones leave no folder to be seen', async () => {
    const house = await createHouse()
    await write(house, 'secret', 'sealed:owner')
    const agent = await house.leased({ labels_max: 'private' })
    await expect(house.service.perform(agent, 'files.list', { branch: 'memory' })).resolves.toEqual({ items: [] })
  })

  test('L1.2 in a path that a lease leaves out are not reached through it', async () => {
    const house = await createHouse()
    const { id } = await write(house, 'out', 'public:owner')
    const folder = `/${notePath(id).split('/').slice(0, 3).join('/')}`
    const agent = await house.leased({ deny_paths: [folder] })
    for (const operation of ['memory.get', 'memory.delete', 'memory.forget']) {
      const named = operation === 'memory.forget' ? { ids: [id] } : { id }
      await expect(house.service.perform(agent, operation, named)).rejects.toMatchObject({
        code: 'SCOPE_EXCEEDED',
        details: { field: 'deny_paths' },
      })
    }
    await expect(house.service.perform(agent, 'memory.list', {})).resolves.toMatchObject({ items: [] })
    await expect(house.service.perform(agent, 'files.list', { branch: 'memory' })).resolves.toMatchObject({ items: [] })
    // nor by what speaks of all files at once
    expect(await codeOf(house.service.perform(agent, 'files.log', { branch: 'memory' }))).toBe('SCOPE_EXCEEDED')
    // nor by a new one, which would lie there
    const before = await house.dump()
    const asked = house.service.perform(agent, 'memory.create', noteOf('another'))
    await expect(asked).rejects.toMatchObject({ code: 'SCOPE_EXCEEDED', details: { field: 'deny_paths' } })
    expect(await house.dump()).toEqual(before)
  })

  test('L1.2 take the right to read, not only to list', async () => {
    const house = await createHouse()
    const agent = await house.leased({ actions: ['list'] })
    expect(await codeOf(house.service.perform(agent, 'memory.list', {}))).toBe('SCOPE_EXCEEDED')
  })

  test("L3.2 of an agent are an agent's, whatever it says", async () => {
    const house = await createHouse()
    const agent = await house.leased()
    const made = (await house.service.perform(agent, 'memory.create', {
      ...noteOf('x'),
      label: 'private:owner',
    })) as Shown
    expect(parseLabel(made.label)).toMatchObject({ level: 'private', integrity: 'agent' })
  })

  test('L1.2 keep to the floor of the lease, each of a batch', async () => {
    const house = await createHouse()
    const agent = await house.leased({ label_floor: 'private' })
    const batch = (labels: readonly string[]) =>
      house.service.perform(agent, 'memory.batch', { items: labels.map((label) => ({ ...noteOf(label), label })) })
    expect(await codeOf(batch(['private:owner', 'sealed:owner']))).toBe('done')
    expect(await codeOf(batch(['sealed:owner', 'public:owner']))).toBe('SCOPE_EXCEEDED')
    expect(await codeOf(house.service.perform(agent, 'memory.create', noteOf('default is private')))).toBe('done')
  })

  test('a batch is all or nothing, and a second import makes no twins', async () => {
    const house = await createHouse()
    const id = newId('memory', NOW)
    await house.owned('memory.batch', { items: [noteOf('one', { id })] })
    const again = { items: [noteOf('two'), noteOf('one', { id })] }
    expect(await codeOf(house.owned('memory.batch', again))).toBe('CONFLICT')
    await expect(house.owned('memory.list')).resolves.toMatchObject({ items: [{ id }] })
    await expect(house.owned('memory.batch', { ...again, existing: 'keep' })).resolves.toMatchObject({ kept: [id] })
  })

  test('with an entry that can not be one are refused', async () => {
    const house = await createHouse()
    for (const entry of [
      {},
      { content: { a: 1 }, level: 'warm', type: 'lesson' },
      { content: 'x'.repeat(5000), level: 'warm', type: 'lesson' },
    ]) {
      expect(['INVALID_INPUT', 'TOO_LARGE']).toContain(await codeOf(house.owned('memory.create', { entry })))
    }
    await expect(house.owned('memory.list')).resolves.toMatchObject({ items: [] })
  })
})

describe('files', () => {
  const put = (house: House, branch: string, path: string, text = 'x', more: object = {}) =>
    house.owned<{ commit: string }>('files.write', { branch, path, text, ...more })

  test('L0.1 written to a run branch leave the protected one as it was', async () => {
    const house = await createHouse()
    const main = getRef(house.store.view(), house.home, 'main')
    const { commit } = await put(house, 'runs/a', 'a.md')
    expect(getRef(house.store.view(), house.home, 'runs/a')?.commit).toBe(commit)
    expect(getRef(house.store.view(), house.home, 'main')).toEqual(main)
  })

  test('L1.2 a commit id in the place of a branch goes round no lease', async () => {
    const house = await createHouse()
    const { commit } = await put(house, 'runs/a', 'a.md')
    for (const [operation, more] of [
      ['files.read', { path: 'a.md' }],
      ['files.list', {}],
      ['files.log', {}],
    ] as const) {
      expect(await codeOf(house.owned(operation, { branch: commit, ...more }))).toBe('NOT_FOUND')
    }
    const agent = await house.leased({ branches: ['runs/b'] })
    expect(await codeOf(house.service.perform(agent, 'files.read', { branch: commit, path: 'a.md' }))).toBe(
      'SCOPE_EXCEEDED',
    )
  })

  test('L1.2 what lies beyond the lease is in no list', async () => {
    const house = await createHouse()
    await put(house, 'runs/a', 'mine/a.md')
    await put(house, 'runs/a', 'other/deep/b.md')
    await put(house, 'runs/b', 'c.md')
    const agent = await house.leased({ branches: ['runs/a'], paths: ['/mine'] })
    const { items } = (await house.service.perform(agent, 'files.list', { branch: 'runs/a' })) as {
      items: { path: string }[]
    }
    expect(items.map(({ path }) => path)).toEqual(['mine', 'mine/a.md'])
    const { refs } = (await house.service.perform(agent, 'files.refs', {})) as { refs: { branch: string }[] }
    expect(refs.map(({ branch }) => branch)).toEqual(['runs/a'])
  })

  test('L4.2 above the lease look like what is not there', async () => {
    const house = await createHouse()
    await put(house, 'runs/a', 'plan.md', 'secret', { label: 'private:owner' })
    const agent = await house.leased({ labels_max: 'trusted' })
    const there = house.service.perform(agent, 'files.read', { branch: 'runs/a', path: 'plan.md' })
    const absent = house.service.perform(agent, 'files.read', { branch: 'runs/a', path: 'plant.md' })
    expect([await codeOf(there), await codeOf(absent)]).toEqual(['NOT_FOUND', 'NOT_FOUND'])
  })

  test('L3.2 a label that is raised is not lowered by a write that was asked for at the same time', async () => {
    const { owned } = await createHouse()
    const file = { branch: 'runs/one', path: 'docs/a.md' }
    await owned('files.write', { ...file, text: 'one' })
    const raised = owned('files.write', { ...file, text: 'two', label: 'sealed:owner' })
    const lowered = codeOf(owned('files.write', { ...file, text: 'three', label: 'private:owner' }))
    await raised
    expect(await lowered).toBe('DENIED')
    expect(await owned('files.read', file)).toMatchObject({ text: 'two', label: { level: 'sealed' } })
  })

  test('L3.2 a label is not lowered by writing, nor on a new branch', async () => {
    const house = await createHouse()
    await put(house, 'runs/a', 'plan.md', 'secret', { label: 'private:owner' })
    expect(await codeOf(put(house, 'runs/a', 'plan.md', 'x', { label: 'public:owner' }))).toBe('DENIED')
    await expect(house.owned('files.read', { branch: 'runs/a', path: 'plan.md' })).resolves.toMatchObject({
      text: 'secret',
    })
  })

  test.each(['../a', 'a/../b', '.git/config', 'a//b', '/a', 'a\u0000b', '.csb/labels.json', 'a\u202Eb'])(
    'a path that is none is refused: %j',
    async (path) => {
      const house = await createHouse()
      await expect(put(house, 'runs/a', path)).rejects.toMatchObject({
        code: 'INVALID_INPUT',
        details: { reason: expect.any(String) as string },
      })
      const label = { branch: 'runs/a', path, label: 'sealed' }
      expect(await codeOf(house.owned('files.label', label))).toBe('INVALID_INPUT')
      expect(getRef(house.store.view(), house.home, 'runs/a')).toBeUndefined()
    },
  )

  test('a head that moved meanwhile is a conflict, and the other change stands', async () => {
    const house = await createHouse()
    const { commit } = await put(house, 'runs/a', 'a.md', 'one')
    await put(house, 'runs/a', 'a.md', 'two')
    expect(await codeOf(put(house, 'runs/a', 'a.md', 'three', { expect: commit }))).toBe('CONFLICT')
    await expect(house.owned('files.read', { branch: 'runs/a', path: 'a.md' })).resolves.toMatchObject({ text: 'two' })
  })

  test('of a home that is not kept here are not found, not made', async () => {
    const house = await createHouse()
    const home = 'home_bbbbbbbbbbbbbbbbbbbbbbbbbb'
    expect(await codeOf(house.owned('files.refs', { home }))).toBe('NOT_FOUND')
    expect(await codeOf(put(house, 'runs/a', 'a.md', 'x', { home }))).toBe('NOT_FOUND')
  })

  test('L1.5 a commit names its author, its run and its lease in a bare clone', async () => {
    const house = await createHouse()
    const agent = await house.leased()
    await house.service.perform(agent, 'files.write', { branch: 'runs/a', path: 'a.md', text: 'x' })
    const { items } = await house.owned<{ items: { author: { did: string }; trailers: Record<string, string> }[] }>(
      'files.log',
      {
        branch: 'runs/a',
      },
    )
    expect(items[0]?.trailers).toMatchObject({ 'Csb-Lease': agent.hash })
    expect(items[0]?.author.did).not.toBe(house.owner.did)
  })

  test('L1.5 what a request read before it wrote stands in the record of its commit', async () => {
    const house = await createHouse()
    const author = { name: 'Ada', did: createKeyPair().did }
    await house.store.transact((tx) =>
      commitFiles(tx, {
        home: house.home,
        branch: 'runs/t',
        changes: [{ path: 'source.md', bytes: Buffer.from('s') }],
        author,
        message: 'm',
        trailers: {},
        now: NOW,
      }),
    )
    const { id } = await write(house, 'tea', 'public:owner')
    await house.owned('memory.delete', { id })
    const told = (await house.records()).findLast(({ operation }) => operation === 'memory.delete')
    expect(told?.reads.map(({ path }) => path)).toEqual([notePath(id)])
  })
})

describe('a label of a note', () => {
  test('L3.2 that is raised is not lowered by another one that was asked for at the same time', async () => {
    const house = await createHouse()
    const { id } = await write(house, 'tea', 'trusted:owner')
    const codes = await Promise.all([
      codeOf(house.owned('memory.label', { id, label: 'sealed:owner' })),
      codeOf(house.owned('memory.label', { id, label: 'private:owner' })),
    ])
    expect(codes).toEqual(['done', 'CONFLICT'])
    await expect(house.owned('memory.get', { id })).resolves.toMatchObject({ label: 'sealed:owner' })
  })
})

test('L4.2 what may not be seen is not named by the file of labels either', async () => {
  const house = await createHouse()
  const [branch, path] = ['runs/t', '.csb/labels.json']
  await house.owned('files.write', { branch, path: 'diagnosis.md', text: 'a', label: 'sealed:owner' })
  const agent = await house.leased({ actions: ['list', 'read'], labels_max: 'private' })
  const ask = (operation: string, input: object) => house.service.perform(agent, operation, input)
  expect(await codeOf(ask('files.read', { branch, path }))).toBe('NOT_FOUND')
  for (const [operation, input] of [
    ['files.diff', { from: 'main', to: branch }],
    ['files.preview', { from: branch, into: 'main' }],
    ['files.list', { branch }],
  ] as const)
    expect(JSON.stringify(await ask(operation, input))).not.toMatch(/diagnosis|labels\.json/)
  await expect(house.owned('files.read', { branch, path })).resolves.toMatchObject({ label: { level: 'sealed' } })
})

describe('agents', () => {
  test('L1.2 who may list them is not told how they are started', async () => {
    const house = await createHouse()
    await attach(house, { cwd: '/tmp' })
    await expect(house.owned('agents.list')).resolves.toMatchObject({ items: [{ id: 'clerk', cwd: '/tmp' }] })
    const agent = await house.leased({ actions: ['list'] })
    const listed = JSON.stringify(await house.service.perform(agent, 'agents.list', {}))
    expect(listed).toContain('report.write')
    for (const word of ['command', 'cwd', process.execPath]) expect(listed).not.toContain(word)
  })
})
