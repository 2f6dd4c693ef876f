import { describe, expect, test } from 'vitest'
import type { NodeError } from '@csb/core'
import { commitFiles, eraseVersions, listFiles, setLabel } from '../src/index.ts'
import { deltaOf } from './deltas.ts'
import { WORDS, openHome, text } from './open-home.ts'
import { make, push, refuses, simple, type Entry } from './packs.ts'

describe('what a push may not bring', () => {
  const treeWith = (...entries: Entry[]) => {
    const blob = make.blob('x')
    const inner = make.tree(['100644', 'x', blob.oid])
    const given = { '40000': inner.oid } as Readonly<Record<string, string>>
    const tree = make.tree(
      ...entries.map(([mode, name, oid]): Entry => [mode, name, oid === '' ? (given[mode] ?? blob.oid) : oid]),
    )
    const commit = make.commit(tree.oid)
    return { pack: make.pack([blob, inner, tree, commit].map(make.whole)), tip: commit.oid }
  }

  test.each([
    ['..', '100644'],
    ['.', '40000'],
    ['.git', '40000'],
    ['.GIT', '100644'],
    ['git~1', '40000'],
    ['.g\u200cit', '40000'],
    ['a/b', '100644'],
    ['a\\b', '100644'],
    ['', '100644'],
    ['a\u0007', '100644'],
    ['\u202egnp.exe', '100644'],
    ['cafe\u0301', '100644'],
    ['x'.repeat(300), '100644'],
    ['.git', '160000'],
    ['.GIT ', '160000'],
    ['git~1', '160000'],
    ['a/../b', '160000'],
    ['odd', '100600'],
  ])('a tree with an entry named %j of mode %s', async (name, mode) => {
    const { store, home } = await openHome()
    const { pack, tip } = treeWith([mode, name, ''])
    await refuses(store, home, pack, tip, 'MALFORMED')
  })

  test('names with a NUL or bytes that are no UTF-8, entries twice or out of order', async () => {
    const { store, home } = await openHome()
    for (const entries of [
      [['100644', 'a\0b', '']],
      [['100644', Buffer.from([0x66, 0xff, 0x6f]), '']],
      [
        ['100644', 'b', ''],
        ['100644', 'a', ''],
      ],
      [
        ['100644', 'a', ''],
        ['100644', 'a', ''],
      ],
      [
        ['40000', 'a', ''],
        ['100644', 'a.b', ''],
      ],
    ] as Entry[][]) {
      const { pack, tip } = treeWith(...entries)
      await refuses(store, home, pack, tip, 'MALFORMED')
    }
  })

  test.each([
    ['README', 'readme'],
    ['Straße', 'STRASSE'],
    ['file', 'ﬁle'],
    ['Ａ', 'a'],
  ])('two names that some system takes for one: %s and %s', async (one, other) => {
    const { store, home } = await openHome()
    const names = [one, other].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    const { pack, tip } = treeWith(...names.map((name) => ['100644', name, ''] as const))
    await refuses(store, home, pack, tip, 'INVALID_INPUT')
  })

  test('attack 29: symbolic links out of the tree at any depth; within it they are taken', async () => {
    const { store, home } = await openHome()
    const linked = (target: string | Uint8Array, depth: number) => {
      const link = make.blob(target)
      let tree = make.tree(['120000', 'l', link.oid])
      const trees = [tree]
      for (let i = 0; i < depth; i++) trees.push((tree = make.tree(['40000', `d${i}`, tree.oid])))
      const commit = make.commit(tree.oid)
      return { pack: make.pack([link, ...trees, commit].map(make.whole)), tip: commit.oid }
    }
    for (const [target, depth] of [
      ['/etc/passwd', 0],
      ['../x', 0],
      ['a/../../x', 0],
      ['../../../x', 2],
      ['C:\\x', 0],
      ['.git/hooks', 0],
      ['', 0],
      ['a\nb', 0],
      ['x'.repeat(5000), 0],
      [Buffer.from([0xff]), 0],
    ] as const) {
      const { pack, tip } = linked(target, depth)
      await refuses(store, home, pack, tip, 'INVALID_INPUT')
    }
    for (const [index, [target, depth]] of (
      [
        ['x', 0],
        ['../x', 1],
        ['../../a/b', 2],
        ['d/../x', 0],
      ] as const
    ).entries()) {
      const { pack, tip } = linked(target, depth)
      await push(store, home, pack, tip, { branch: `runs/link-${index}` })
    }
  })

  test('a link that stays within its folder is looked at again where the folder is put', async () => {
    const { store, home } = await openHome()
    const link = make.blob('../x')
    const inner = make.tree(['120000', 'l', link.oid])
    const outer = make.tree(['40000', 'd', inner.oid])
    const commit = make.commit(outer.oid)
    await push(store, home, make.pack([link, inner, outer, commit].map(make.whole)), commit.oid)
    const moved = make.commit(inner.oid, [commit.oid])
    await refuses(store, home, make.pack([make.whole(moved)]), moved.oid, 'INVALID_INPUT')
  })

  test('words of a node, unless the owner brings them', async () => {
    const { store, home } = await openHome()
    const { blob, tree } = simple()
    const forged = make.commit(tree.oid, [], 'a commit\n\nCsb-Run: run_1\n')
    const pack = make.pack([blob, tree, forged].map(make.whole))
    await refuses(store, home, pack, forged.oid, 'DENIED', { mayCarryTrailers: false })
    await push(store, home, pack, forged.oid, { mayCarryTrailers: true })
  })

  test('L3.2 a lower label, in any of the commits; a higher one is taken', async () => {
    const { store, home } = await openHome()
    const words = { ...WORDS, home: home.id, branch: 'runs/one' }
    const label = { level: 'private', integrity: 'owner', tags: ['health'] } as const
    await store.transact((tx) => commitFiles(tx, { ...words, changes: [{ path: 'a', bytes: text('a') }] }))
    const { commit } = await store.transact((tx) => setLabel(tx, { ...words, path: 'a', label }))
    const a =
      listFiles(store.view(), { home: home.id, at: 'runs/one', path: '' }).find(({ path }) => path === 'a')?.oid ?? ''
    const labelled = (labels: unknown, parents = [commit]) => {
      const file = make.blob(typeof labels === 'string' ? labels : JSON.stringify(labels))
      const folder = make.tree(['100644', 'labels.json', file.oid])
      const tree = make.tree(['40000', '.csb', folder.oid], ['100644', 'a', a])
      const next = make.commit(tree.oid, parents)
      return { objects: [file, folder, tree, next], tip: next.oid }
    }
    const bare = make.tree(['100644', 'a', a])
    const without = make.commit(bare.oid, [commit])
    await refuses(store, home, make.pack([bare, without].map(make.whole)), without.oid, 'DENIED')
    for (const labels of [
      { a: 'public:owner' },
      { a: 'private:owner' },
      { a: 'private:owner:health', b: 'public:owner' },
    ]) {
      const { objects, tip } = labelled(labels)
      await refuses(store, home, make.pack(objects.map(make.whole)), tip, 'DENIED')
      const back = labelled({ a: 'private:owner:health' }, [tip])
      await refuses(store, home, make.pack([...objects, ...back.objects].map(make.whole)), back.tip, 'DENIED')
    }
    const unread = labelled('no json')
    await refuses(store, home, make.pack(unread.objects.map(make.whole)), unread.tip, 'INVALID_INPUT')
    const higher = labelled({ a: 'sealed:owner:health' })
    await push(store, home, make.pack(higher.objects.map(make.whole)), higher.tip)
    const { tip, objects } = labelled({ a: 'public:owner' }, [])
    await refuses(store, home, make.pack(objects.map(make.whole)), tip, 'DENIED')
  })

  test('other files in the folder that is the node’s own', async () => {
    const { store, home } = await openHome()
    const blob = make.blob('x')
    const folder = make.tree(['100644', 'hook', blob.oid])
    const tree = make.tree(['40000', '.csb', folder.oid])
    const commit = make.commit(tree.oid)
    await refuses(store, home, make.pack([blob, folder, tree, commit].map(make.whole)), commit.oid, 'INVALID_INPUT')
  })

  test('L3.4 partial: what was forgotten, by its bytes or its path', async () => {
    const { store, home } = await openHome()
    const words = { ...WORDS, home: home.id, branch: 'runs/one' }
    await store.transact((tx) => commitFiles(tx, { ...words, changes: [{ path: 's', bytes: text('secret') }] }))
    await store.transact((tx) => eraseVersions(tx, home.id, ['s']))
    for (const [path, content] of [
      ['other', 'secret'],
      ['s', 'something else'],
    ] as const) {
      const blob = make.blob(content)
      const tree = make.tree(['100644', path, blob.oid])
      const commit = make.commit(tree.oid)
      await refuses(store, home, make.pack([blob, tree, commit].map(make.whole)), commit.oid, 'FORGOTTEN')
    }
  })

  test('each path that is written or taken away is asked for, and no other', async () => {
    const { store, home } = await openHome()
    const blobs = ['1', '2', '3'].map((content) => make.blob(content))
    const [one = '', two = '', three = ''] = blobs.map(({ oid }) => oid)
    const d = make.tree(['100644', 'gone', one], ['100644', 'kept', two])
    const first = make.tree(['100644', 'a', one], ['40000', 'd', d.oid])
    const commit = make.commit(first.oid)
    await push(store, home, make.pack([...blobs, d, first, commit].map(make.whole)), commit.oid)
    const d2 = make.tree(['100644', 'kept', two], ['100644', 'new', three])
    const second = make.tree(['100755', 'a', one], ['40000', 'd', d2.oid])
    const next = make.commit(second.oid, [commit.oid])
    const asked: string[] = []
    const pack = make.pack([...blobs, d2, second, next].map(make.whole))
    const deny = () => {
      throw new Error('not that path')
    }
    await expect(push(store, home, pack, next.oid, { onPath: deny })).rejects.toThrow('not that path')
    await push(store, home, pack, next.oid, { onPath: (path) => asked.push(path) })
    expect(asked.sort()).toEqual(['a', 'd/gone', 'd/new'])
  })

  test('an id alone opens nothing: what is named must come along or be in what the commits build on', async () => {
    const { store, home } = await openHome()
    const words = { ...WORDS, home: home.id, branch: 'runs/hidden' }
    const hidden = await store.transact((tx) =>
      commitFiles(tx, { ...words, changes: [{ path: 'h', bytes: text('hidden') }] }),
    )
    const tree = make.tree(['100644', 'mine', hidden.changed[0]?.after ?? ''])
    const commit = make.commit(tree.oid)
    const pack = make.pack([tree, commit].map(make.whole))
    await refuses(store, home, pack, commit.oid, 'NOT_FOUND', { onlySeen: true })
    const onto = make.commit(tree.oid, [hidden.commit])
    await push(store, home, make.pack([tree, onto].map(make.whole)), onto.oid, { onlySeen: true, branch: 'runs/seen' })
    await push(store, home, pack, commit.oid)
  })

  test('nor does the id of a base: a delta on what is hidden is answered like one on nothing', async () => {
    const { store, home } = await openHome()
    const secret = text('what is hidden from who pushes this')
    const hidden = await store.transact((tx) =>
      commitFiles(tx, { ...WORDS, home: home.id, branch: 'runs/hidden', changes: [{ path: 'h', bytes: secret }] }),
    )
    const copy = make.blob(secret)
    const tree = make.tree(['100644', 'mine', copy.oid])
    const commit = make.commit(tree.oid)
    const details = async (base: string) => {
      const pack = make.pack([make.onId(base, deltaOf(secret, copy.body)), make.whole(tree), make.whole(commit)])
      const failed: unknown = await push(store, home, pack, commit.oid, { onlySeen: true }).catch(
        (error: unknown) => error,
      )
      return { code: (failed as NodeError).code, reason: (failed as NodeError).details['reason'] }
    }
    const answer = { code: 'MALFORMED', reason: 'delta without a base' }
    expect(await details(hidden.changed[0]?.after ?? '')).toEqual(answer)
    expect(await details('0'.repeat(64))).toEqual(answer)
  })

  test('nor does the id of a parent: a commit on one that is not shown is answered like one on nothing', async () => {
    const { store, home } = await openHome()
    const hidden = await store.transact((tx) =>
      commitFiles(tx, {
        ...WORDS,
        home: home.id,
        branch: 'runs/hidden',
        changes: [{ path: 'h', bytes: text('hidden') }],
      }),
    )
    const answer = async (parent: string) => {
      const { blob, tree } = simple()
      const commit = make.commit(tree.oid, [parent])
      const pack = make.pack([blob, tree, commit].map(make.whole))
      const failed: unknown = await push(store, home, pack, commit.oid, { onlySeen: true, heads: [] }).catch(
        (error: unknown) => error,
      )
      const { code, details } = failed as NodeError
      return { code, details: { ...details, oid: undefined } }
    }
    expect(await answer(hidden.commit)).toEqual(await answer('0'.repeat(64)))
  })

  test('a tree that comes again from before is not sent, and is found in what the commits build on', async () => {
    const { store, home } = await openHome()
    const { commit, entries, tree } = simple()
    await push(store, home, make.pack(entries), commit.oid)
    const other = make.blob('other\n')
    const changed = make.tree(['100644', 'a', other.oid])
    const there = make.commit(changed.oid, [commit.oid])
    const back = make.commit(tree.oid, [there.oid])
    const pack = make.pack([other, changed, there, back].map(make.whole))
    await push(store, home, pack, back.oid, { onlySeen: true, heads: [commit.oid] })
  })
})
