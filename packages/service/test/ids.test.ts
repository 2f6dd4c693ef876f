/** Ids of commits and folders are digests of all that lies behind them: who sees a part is told those of its part. */
import { describe, expect, test } from 'vitest'
import { LIMITS, createFakeClock, toNodeError, until, type Label, type Lease } from '@csb/core'
import { commitFiles, listRefs, readCommit, readTree, recycledOf } from '@csb/files'
import type { Caller } from '../src/index.ts'
import { NOW, codeOf, createHouse, holdingIn, type House } from './house.ts'

const LEASE: Partial<Lease> = {
  actions: ['list', 'read', 'write', 'snapshot', 'propose'],
  branches: ['*'],
}
/** Two ways to see a part. */
const PARTS: readonly [string, Partial<Lease>][] = [
  ['limited in paths', { ...LEASE, paths: ['/docs'], labels_max: 'sealed', label_tags: ['*'] }],
  ['limited in labels', { ...LEASE, paths: ['/'], labels_max: 'private' }],
  ['denied a path', { ...LEASE, paths: ['/'], deny_paths: ['/deep'], labels_max: 'sealed', label_tags: ['*'] }],
]
const FULL: Partial<Lease> = { ...LEASE, paths: ['/'], labels_max: 'sealed', label_tags: ['*'] }

type Done = Readonly<Record<string, unknown>> & { readonly commit?: string; readonly head?: string }

async function stand(lease: Partial<Lease>) {
  const clock = createFakeClock(NOW)
  const house = await createHouse({ clock })
  const write = (branch: string, path: string, text: string, label?: string) =>
    house.owned<Done>('files.write', { branch, path, text, ...(label === undefined ? {} : { label }) })
  await write('runs/one', 'docs/a.md', 'a')
  await write('runs/one', 'docs/b.md', 'b')
  await write('runs/one', 'deep/secret.md', 'the code is 4711', 'sealed:owner')
  await write('runs/two', 'docs/c.md', 'c')
  const reader = await holdingIn(house, lease)
  const ask = async (operation: string, input: object = {}): Promise<Done> =>
    (await house.service.perform(reader, operation, input)) as Done
  return { house, clock, write, reader, ask }
}

/** Ids of commits and folders that lead to more than the reader sees. */
async function hiddenIds(house: House, reader: Caller): Promise<Set<string>> {
  const view = house.store.view()
  const idsOf = (heads: readonly string[]): Set<string> => {
    const seen = new Set<string>()
    const tree = (oid: string): void => {
      if (seen.has(oid)) return
      seen.add(oid)
      for (const entry of readTree(view, house.home, oid)) if (entry.mode === '40000') tree(entry.oid)
    }
    const commit = (oid: string): void => {
      if (seen.has(oid)) return
      seen.add(oid)
      const { tree: root, parents } = readCommit(view, house.home, oid)
      tree(root)
      for (const parent of parents) commit(parent)
    }
    for (const head of heads) commit(head)
    return seen
  }
  const { refs } = (await house.service.perform(reader, 'git.refs', {})) as { refs: { oid: string }[] }
  const shown = idsOf(refs.map(({ oid }) => oid))
  const all = [
    ...(await listRefs(view, house.home)).map(({ commit }) => commit),
    ...(await recycledOf(view, house.home)).map(({ commit }) => commit),
  ]
  return new Set([...idsOf(all)].filter((oid) => !shown.has(oid)))
}

const idsIn = (value: unknown): string[] => JSON.stringify(value).match(/[0-9a-f]{64}/g) ?? []

describe.each(PARTS)('L1.2 a lease that is %s', (_, lease) => {
  test('is told no id of what it does not see, by any operation or refusal', async () => {
    const { house, reader, ask, write } = await stand(lease)
    const answers: (readonly [string, unknown])[] = []
    const say = async (operation: string, input: object = {}) => {
      const answer = await ask(operation, input).catch((error: unknown) => toNodeError(error).toJSON())
      answers.push([operation, answer])
      return answer as Done
    }
    const other = 'f'.repeat(64)
    await say('files.refs')
    await say('files.list', { branch: 'runs/one' })
    await say('files.list', { branch: 'memory' })
    await say('files.read', { branch: 'runs/one', path: 'docs/a.md' })
    await say('files.log', { branch: 'runs/one' })
    await say('files.diff', { from: 'main', to: 'runs/one' })
    await say('files.branch', { branch: 'runs/mine', from: 'runs/one' })
    await say('files.write', { branch: 'runs/mine', path: 'docs/new.md', text: 'new' })
    await say('files.write', { branch: 'runs/mine', path: 'docs/new.md', text: 'newer', expect: other })
    await say('files.write', { branch: 'runs/mine', path: 'docs/new.md', text: 'newer', expect: null })
    await say('files.label', { branch: 'runs/mine', path: 'docs/new.md', label: 'private:agent:work' })
    await say('files.write', { branch: 'runs/two', path: 'docs/c.md', delete: true })
    await say('files.preview', { from: 'runs/two', into: 'runs/mine' })
    await say('files.preview', { from: 'runs/one', into: 'runs/two' })
    await say('files.merge', { from: 'runs/two', into: 'runs/mine' })
    await say('files.merge', { from: 'runs/one', into: 'runs/two' })
    await say('files.snapshot', { name: 'kept', of: 'runs/one' })
    await say('files.snapshot', { name: 'kept', of: 'runs/one' })
    await write('runs/three', 'docs/gone.md', 'x')
    await house.owned('files.merge', { from: 'runs/three', into: 'runs/mine' })
    await house.owned('files.write', { branch: 'runs/three', path: 'docs/gone.md', delete: true })
    await house.owned('files.merge', { from: 'runs/three', into: 'runs/mine' })
    await house.owned('files.branch', { branch: 'runs/old', from: 'runs/one' })
    await house.owned('files.removeBranch', { branch: 'runs/old' })
    await say('files.recycle')
    await say('files.recycle', { limit: 1 })
    await say('files.restore', { branch: 'runs/mine', path: 'docs/gone.md' })
    await say('files.restore', { branch: 'runs/old' })
    await say('files.removeBranch', { branch: 'runs/two', expect: other })
    await say('files.removeBranch', { branch: 'runs/two' })
    const entry = { content: 'mine', level: 'warm', type: 'lesson' }
    const note = await say('memory.create', { entry })
    await say('memory.batch', { items: [{ entry: { ...entry, content: 'more' } }] })
    await say('memory.label', { id: note['id'], label: 'private:agent:work' })
    await say('memory.delete', { id: note['id'] })
    await say('git.refs')
    const hidden = await hiddenIds(house, reader)
    expect(hidden.size).toBeGreaterThan(4)
    for (const [operation, answer] of answers)
      expect([operation, ...idsIn(answer).filter((id) => hidden.has(id))]).toEqual([operation])
    // what it may do it did: an answer is no refusal for want of an id
    const done = answers.filter(([, answer]) => (answer as { code?: string }).code === undefined)
    expect(done.map(([operation]) => operation)).toEqual(
      expect.arrayContaining([
        'files.refs',
        'files.list',
        'files.write',
        'files.branch',
        'files.snapshot',
        'files.recycle',
      ]),
    )
  })

  test('is told by REST what its clone has, and hands it back', async () => {
    const { house, ask } = await stand(lease)
    const heads = async () => {
      const rest = (await ask('files.refs'))['refs'] as { branch: string; commit: string; tree: string }[]
      const git = (await ask('git.refs'))['refs'] as { branch: string; oid: string }[]
      for (const { branch, commit, tree } of rest.filter((ref) => ref.branch !== 'memory')) {
        expect(git.find((ref) => ref.branch === branch)?.oid).toBe(commit)
        expect(readCommit(house.store.view(), house.home, commit).tree).toBe(tree)
      }
      return new Map(rest.map(({ branch, commit }) => [branch, commit]))
    }
    const before = await heads()
    const made = await ask('files.branch', { branch: 'runs/mine', from: 'runs/one' })
    expect(made.head).toBe(before.get('runs/one'))
    const at = { branch: 'runs/mine', path: 'docs/new.md' }
    const first = await ask('files.write', { ...at, text: '1', expect: made.head })
    expect(first['parent']).toBe(made.head)
    expect((await heads()).get('runs/mine')).toBe(first.commit)
    await expect(ask('files.write', { ...at, text: '2', expect: made.head })).rejects.toMatchObject({
      code: 'CONFLICT',
    })
    const second = await ask('files.write', { ...at, text: '2', expect: first.commit })
    expect(second['changed']).toEqual([{ path: at.path, before: expect.any(String), after: expect.any(String) }])
    // a branch goes with all that is in it, so paths do not reach that
    const removing = ask('files.removeBranch', { branch: at.branch, expect: first.commit })
    expect(await codeOf(removing)).toBe(lease.labels_max === 'private' ? 'CONFLICT' : 'SCOPE_EXCEEDED')
    // what changes beside it is no reason to refuse
    await house.owned('files.write', { branch: at.branch, path: 'deep/more.md', text: 'x', label: 'sealed:owner' })
    const third = await ask('files.write', { ...at, text: '3', expect: second.commit })
    expect(third['parent']).toBe(second.commit)
  })

  test('names a deletion by what it was told', async () => {
    const { house, clock, write, ask } = await stand(lease)
    await write('runs/mine', 'docs/gone.md', 'first')
    for (const text of ['first', 'second']) {
      await write('runs/three', 'docs/gone.md', text)
      await house.owned('files.merge', { from: 'runs/three', into: 'runs/mine' })
      await house.owned('files.write', { branch: 'runs/three', path: 'docs/gone.md', delete: true })
      await house.owned('files.merge', { from: 'runs/three', into: 'runs/mine' })
      clock.advance(1000)
    }
    const items = (await ask('files.recycle'))['items'] as { path: string; commit: string; oid: string }[]
    const [latest, first] = items.filter(({ path }) => path === 'docs/gone.md')
    expect(first?.oid).not.toBe(latest?.oid)
    const wanted = { branch: 'runs/back', path: 'docs/gone.md', deleted_by: first?.commit }
    expect((await ask('files.restore', wanted))['deleted_by']).toBe(first?.commit)
    expect(await ask('files.read', { branch: 'runs/back', path: 'docs/gone.md' })).toMatchObject({ text: 'first' })
    await expect(ask('files.restore', { ...wanted, deleted_by: 'f'.repeat(64) })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    })
  })
})

test('L1.2 who sees everything is told the ids that are there', async () => {
  const { house, ask } = await stand(FULL)
  const { refs } = (await ask('files.refs')) as unknown as { refs: { branch: string; commit: string }[] }
  const real = new Map((await listRefs(house.store.view(), house.home)).map(({ branch, commit }) => [branch, commit]))
  expect(new Map(refs.map(({ branch, commit }) => [branch, commit]))).toEqual(real)
})

test('L1.2 the file of labels is in no comparison that a reader of a part is shown', async () => {
  const { house, ask } = await stand({ ...LEASE, paths: ['/'], labels_max: 'private' })
  await house.owned('files.label', { branch: 'runs/two', path: 'docs/c.md', label: 'private:agent' })
  const paths = ({ items, manifest }: Done) => ((items ?? manifest) as { path: string }[]).map(({ path }) => path)
  expect(paths(await ask('files.diff', { from: 'main', to: 'runs/one' }))).toEqual(['docs/a.md', 'docs/b.md'])
  expect(paths(await ask('files.preview', { from: 'runs/two', into: 'runs/one' }))).toEqual(['docs/c.md'])
})

test('L1.2 a cursor of the recycle area tells nothing of what a lease does not reach', async () => {
  const { house, ask } = await stand({ ...FULL, paths: ['/docs'], branches: ['runs/one', 'runs/shown/*'] })
  for (const name of ['shown/1', 'hidden-words', 'shown/2', 'shown/3']) {
    await house.owned('files.branch', { branch: `runs/${name}` })
    await house.owned('files.removeBranch', { branch: `runs/${name}` })
  }
  const told: unknown[] = []
  for (let cursor: unknown = undefined; cursor !== null;) {
    const page = await ask('files.recycle', { limit: 1, ...(cursor === undefined ? {} : { cursor }) })
    told.push(page)
    cursor = page['next_cursor']
  }
  expect(
    told.flatMap((page) => (page as { items: { branch: string }[] }).items.map(({ branch }) => branch)).sort(),
  ).toEqual(['runs/shown/1', 'runs/shown/2', 'runs/shown/3'])
  expect(JSON.stringify(told)).not.toContain('hidden-words')
  await expect(ask('files.recycle', { cursor: 'no such thing' })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
})

test('L1.2 a lease for some paths merges and proposes what it wrote there, labels and all, and nothing beside it', async () => {
  const { house, write, ask } = await stand({ ...FULL, paths: ['/docs'] })
  await ask('files.write', { branch: 'runs/mine', path: 'docs/new.md', text: 'new' })
  const merged = await ask('files.merge', { from: 'runs/mine', into: 'runs/two' })
  expect((merged['manifest'] as { path: string }[]).map(({ path }) => path)).toEqual(['docs/new.md'])
  const { label } = await house.owned<{ label: Label }>('files.read', { branch: 'runs/two', path: 'docs/new.md' })
  expect(label).toMatchObject({ integrity: 'agent' })
  expect(await codeOf(ask('files.merge', { from: 'runs/mine', into: 'main' }))).toBe('GATE_REQUIRED')
  // a label beside its paths is beside its paths
  await write('runs/one', 'beside.md', 'x')
  await house.owned('files.branch', { branch: 'runs/label', from: 'runs/one' })
  await house.owned('files.label', { branch: 'runs/label', path: 'beside.md', label: 'sealed:owner' })
  expect(await codeOf(ask('files.merge', { from: 'runs/label', into: 'runs/one' }))).toBe('SCOPE_EXCEEDED')
})

test('L1.2 of a long history no id is told before it is worked out, which nobody waits for', async () => {
  const { house, ask } = await stand({ ...FULL, paths: ['/docs'] })
  await house.store.transact((tx) => {
    for (let count = 0; count <= LIMITS.projectedAtOnce; count++)
      commitFiles(tx, {
        home: house.home,
        branch: 'runs/long',
        author: { name: 'Ada', did: house.owner.did },
        message: 'one more',
        trailers: {},
        now: NOW + count,
        changes: [{ path: `docs/${count % 9}.md`, bytes: Buffer.from(String(count)) }],
      })
  })
  const head = async () => {
    const { refs } = (await ask('files.refs')) as unknown as { refs: { branch: string; commit?: string }[] }
    return refs.find(({ branch }) => branch === 'runs/long')
  }
  expect(await head()).toEqual({ branch: 'runs/long', protected: false, updatedAt: expect.any(Number) as number })
  const shown = await until(async () => (await head())?.commit, 30_000, 'the history is worked out')
  const git = (await ask('git.refs'))['refs'] as { branch: string; oid: string }[]
  expect(git.find(({ branch }) => branch === 'runs/long')?.oid).toBe(shown)
})

test('L4.2 what is written where something hidden stands lands beside it, as a push does, and nothing hidden goes', async () => {
  const { house, write, ask } = await stand({ ...LEASE, paths: ['/'], labels_max: 'private' })
  const read = async (path: string) =>
    (await house.owned<{ text: string }>('files.read', { branch: 'runs/one', path })).text
  const at = { branch: 'runs/one', path: 'deep/secret.md' }
  const written = await ask('files.write', { ...at, text: 'mine' })
  expect(written['placed']).toEqual([{ path: at.path, at: 'deep/secret (copy).md' }])
  expect(await read('deep/secret.md')).toBe('the code is 4711')
  expect(await read('deep/secret (copy).md')).toBe('mine')
  // letters that some system takes for one and the same
  const twin = await ask('files.write', { ...at, path: 'deep/SECRET.md', text: 'mine too' })
  expect(twin['placed']).toEqual([{ path: 'deep/SECRET.md', at: 'deep/SECRET (copy 2).md' }])
  // and what stands in the way of a folder, which is none that it sees
  const below = await ask('files.write', { ...at, path: 'deep/secret.md/a.md', text: 'mine as well' })
  expect(below['placed']).toEqual([{ path: 'deep/secret.md/a.md', at: 'deep/secret.md (copy)/a.md' }])
  expect(await read('deep/secret.md (copy)/a.md')).toBe('mine as well')
  await write('runs/three', 'deep/secret.md', 'the code', 'sealed:owner')
  const folder = await ask('files.write', { branch: 'runs/three', path: 'DEEP/plan/a.md', text: 'mine' })
  expect(folder['placed'] ?? []).toEqual([{ path: 'DEEP/plan/a.md', at: 'DEEP (copy)/plan/a.md' }])
  // to delete below it is as to delete nothing
  expect(await ask('files.write', { ...at, path: 'deep/secret.md/b.md', delete: true })).toEqual(
    await ask('files.write', { ...at, path: 'deep/none.md/b.md', delete: true }),
  )
  // to delete it is as to delete nothing
  const [gone, none] = [
    await ask('files.write', { ...at, delete: true }),
    await ask('files.write', { ...at, path: 'deep/none.md', delete: true }),
  ]
  expect(gone).toEqual(none)
  expect(await read('deep/secret.md')).toBe('the code is 4711')
  await expect(ask('files.write', { branch: 'runs/one', path: 'docs/A.md', text: 'x' })).rejects.toMatchObject({
    code: 'INVALID_INPUT',
  })
})
