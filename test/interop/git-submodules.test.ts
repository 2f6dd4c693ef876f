/** Repositories as they are found: with submodules and with modes of an early git. What harms who clones is refused. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '@csb/core'
import { leaseFor, openOwner } from '@csb/node'
import { HAS_GIT, SKIPPED, commitIn, gitIn, newRepository, openGitNode, ran, type GitNode } from './git-rig.ts'

describe.each(['sha256', 'sha1'] as const)('a %s home', (hash) => {
  let rig: GitNode
  let count = 0
  beforeAll(async () => {
    if (HAS_GIT) rig = await openGitNode(hash)
  })
  afterAll(() => rig?.close())

  const elsewhere = 'ab'.repeat(hash === 'sha1' ? 20 : 32)
  const moved = 'cd'.repeat(hash === 'sha1' ? 20 : 32)

  /** A work tree with a submodule at `lib`, and a file that its first commit has with mode 100664. */
  const repository = async (modules = '[submodule "lib"]\n\tpath = lib\n\turl = ../lib.git\n') => {
    const folder = join(rig.work, `repository-${count++}`)
    const git = await newRepository(folder, hash)
    await commitIn(folder, { '.gitmodules': modules, 'old.txt': 'old\n' }, 'first')
    // git itself spells that mode no more, but takes and carries it
    const early = made(folder, ['mktree'], (await git('ls-tree', 'HEAD')).replace('100644 blob', '100664 blob'))
    expect(await git('cat-file', 'tree', early)).toContain('100664 .gitmodules')
    const first = made(folder, ['commit-tree', early], 'early\n')
    await git('update-index', '--add', '--cacheinfo', `160000,${elsewhere},lib`)
    const second = made(folder, ['commit-tree', (await git('write-tree')).trim(), '-p', first], 'with lib\n')
    await git('update-ref', 'refs/heads/main', second)
    return { folder, git, head: second }
  }

  test('L0.5 partial: submodules and early modes go in and come out as they were, and fsck is clean', async ({
    skip,
  }) => {
    skip(!HAS_GIT, SKIPPED)
    const { folder, git, head } = await repository()
    expect((await ran(folder, ['fsck', '--strict'])).code).toBe(0)
    await git('push', '-q', rig.url(), 'main:runs/one')
    const copy = join(rig.work, `copy-${count++}`)
    await gitIn(rig.work)('clone', '-q', '--branch', 'runs/one', rig.url(), copy)
    const there = gitIn(copy)
    expect((await there('rev-parse', 'HEAD')).trim()).toBe(head)
    expect(await there('ls-tree', '-r', 'HEAD')).toBe(await git('ls-tree', '-r', 'main'))
    expect(await there('ls-tree', '-r', 'HEAD~1')).toBe(await git('ls-tree', '-r', 'main~1'))
    expect(await ran(copy, ['fsck', '--strict', '--full'])).toMatchObject({ code: 0 })
    const { items } = await rig.client.call<{ items: { path: string; kind: string; oid: string }[] }>(
      'GET',
      `/v1/files/tree?branch=runs/one&home=${rig.home}`,
    )
    expect(items.find(({ path }) => path === 'lib')).toMatchObject({ kind: 'submodule', oid: elsewhere })
    // moved on in the clone, fetched as a thin pack, proposed for main
    await there('update-index', '--cacheinfo', `160000,${moved},lib`)
    await there('commit', '-q', '-m', 'move lib')
    await there('push', '-q', 'origin', 'HEAD:runs/one')
    await git('fetch', '-q', '--no-recurse-submodules', rig.url(), 'runs/one')
    expect(await git('ls-tree', 'FETCH_HEAD', 'lib')).toContain(moved)
    const proposed = await ran(copy, ['push', 'origin', 'HEAD:refs/for/main'])
    expect(proposed).toMatchObject({ code: 0 })
    expect(proposed.stderr).toContain('csb gate show')
    await expect(rig.client.call('GET', `/v1/files/fsck?home=${rig.home}`)).resolves.toMatchObject({ damaged: [] })
  })

  test('a .gitmodules that would run a command, and a submodule of that name, are refused and say why', async ({
    skip,
  }) => {
    skip(!HAS_GIT, SKIPPED)
    const harmful = await repository('[submodule "x"]\n\tpath = lib\n\turl = --upload-pack=touch${IFS}here\n')
    const pushed = await ran(harmful.folder, ['push', rig.url(), 'main:runs/bad'])
    expect(pushed.code).toBe(1)
    expect(pushed.stderr).toContain('address of a submodule')
    const link = await repository()
    await link.git('update-index', '--cacheinfo', `160000,${elsewhere},.gitmodules`)
    await link.git('commit', '-q', '-m', 'no file')
    const second = await ran(link.folder, ['push', rig.url(), 'main:runs/bad'])
    expect(second.code).toBe(1)
    expect(second.stderr).toContain('.gitmodules has to be a plain file')
    const { refs } = await rig.client.call<{ refs: { branch: string }[] }>('GET', `/v1/files/refs?home=${rig.home}`)
    expect(refs.map(({ branch }) => branch)).not.toContain('runs/bad')
  })

  test('L4.2 who sees a part sees the submodule, and moves it on the full tree', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    skip(hash === 'sha1', 'a lease is for the home of the node')
    const { folder } = await repository()
    const branch = 'runs/part'
    await gitIn(folder)('push', '-q', rig.url(), `main:${branch}`)
    const hidden = { home: rig.home, branch, path: 'zz.md', text: 'hidden\n', label: 'sealed:owner' }
    await rig.client.call('PUT', '/v1/files/file', hidden)
    const owner = await openOwner(rig.folder, undefined)
    const desk = { directory: rig.folder, client: rig.client, owner, now: systemClock.now() }
    const actions = ['list', 'read', 'write'] as const
    const lease = { actions: [...actions], paths: ['/'], branches: ['*'], labels_max: 'private' as const }
    const { token } = await leaseFor(desk, { name: 'friend', lease, ttlMs: 600_000 })
    const copy = join(rig.work, `copy-${count++}`)
    await gitIn(rig.work)('clone', '-q', '--branch', branch, rig.url(token), copy)
    const git = gitIn(copy)
    expect(await git('ls-tree', '--name-only', 'HEAD')).not.toContain('zz')
    expect(await git('ls-tree', 'HEAD', 'lib')).toContain(elsewhere)
    expect(await ran(copy, ['fsck', '--strict', '--full'])).toMatchObject({ code: 0 })
    await git('update-index', '--cacheinfo', `160000,${moved},lib`)
    await git('commit', '-q', '-m', 'move lib')
    expect(await ran(copy, ['push', 'origin', `HEAD:${branch}`])).toMatchObject({ code: 0 })
    await gitIn(folder)('fetch', '-q', '--no-recurse-submodules', rig.url(), branch)
    const whole = await gitIn(folder)('ls-tree', 'FETCH_HEAD')
    expect(whole).toContain('zz.md')
    expect(whole).toContain(`160000 commit ${moved}\tlib`)
  })
})

/** What git answers to input, without the line end. */
const made = (cwd: string, args: readonly string[], input: string): string =>
  spawnSync('git', ['-C', cwd, ...args], { input, encoding: 'utf8', env: { ...process.env, ...WHO } }).stdout.trim()

const WHO = {
  GIT_AUTHOR_NAME: 'Ada',
  GIT_AUTHOR_EMAIL: 'ada@example.org',
  GIT_COMMITTER_NAME: 'Ada',
  GIT_COMMITTER_EMAIL: 'ada@example.org',
}
