/** A lease for some paths, through git: what is cloned is those paths alone, and what is pushed lands on the whole. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '@csb/core'
import { leaseFor, openOwner } from '@csb/node'
import { HAS_GIT, SKIPPED, commitIn, gitIn, openGitNode, ran, type GitNode } from './git-rig.ts'

let rig: GitNode
let count = 0
beforeAll(async () => {
  if (HAS_GIT) rig = await openGitNode('sha256')
})
afterAll(() => rig?.close())

type Members = { paths: string[]; deny_paths?: string[]; branches?: string[]; labels_max?: 'private' | 'sealed' }

const leaseOf = async (members: Members): Promise<string> => {
  const owner = await openOwner(rig.folder, undefined)
  const desk = { directory: rig.folder, client: rig.client, owner, now: systemClock.now() }
  const lease = {
    actions: ['list', 'read', 'write', 'propose'] as ('list' | 'read' | 'write' | 'propose')[],
    branches: ['*'],
    labels_max: 'sealed' as const,
    label_tags: ['*'],
    ...members,
  }
  return (await leaseFor(desk, { name: 'writer', lease, ttlMs: 600_000 })).token
}

const write = (branch: string, path: string, text: string, label?: string) =>
  rig.client.call('PUT', '/v1/files/file', { branch, path, text, ...(label === undefined ? {} : { label }) })

const clone = async (token: string, branch: string) => {
  const folder = join(rig.work, `clone-${count++}`)
  await gitIn(rig.work)('clone', '-q', '--branch', branch, rig.url(token), folder)
  const git = gitIn(folder)
  expect(await git('fsck', '--strict', '--full', '--no-dangling')).toBe('')
  return { folder, git }
}

/** Path to mode and id of all that is on a branch, as the owner has it. */
const filesOf = async (branch: string): Promise<Map<string, string>> => {
  const { git } = await clone(rig.token, branch)
  const lines = (await git('ls-tree', '-r', '-z', 'HEAD')).split('\0').filter((line) => line !== '')
  return new Map(lines.map((line) => [line.slice(line.indexOf('\t') + 1), line.slice(0, line.indexOf('\t'))]))
}

/** What no lease for `docs` is told. Whole words: two letters alone come about in the bytes of an id. */
const HIDDEN = /zz(?:room|secret|tag|denied|plain)/

/** A branch with files in and beside `docs`. */
const seeded = async (): Promise<string> => {
  const branch = `runs/seeded-${count++}`
  await write(branch, 'docs/a.md', 'a\n', 'trusted:owner')
  await write(branch, 'zzroom/in.md', 'zzsecret words\n', 'trusted:owner:zztag')
  await write(branch, 'docs/deep/b.md', 'b\n')
  await write(branch, 'docs/zzdenied/c.md', 'zzdenied words\n', 'sealed:owner')
  await write(branch, 'zzplain.md', 'zzplain words\n')
  return branch
}

describe('a lease for some paths', () => {
  test('L1.2 clones these and nothing else, and no object says what is beside them', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const branch = await seeded()
    const { git } = await clone(await leaseOf({ paths: ['/docs/'], deny_paths: ['/docs/zzdenied'] }), branch)
    expect(await git('ls-tree', '-r', '--name-only', 'HEAD')).toBe('.csb/labels.json\ndocs/a.md\ndocs/deep/b.md\n')
    expect(JSON.parse(await git('show', 'HEAD:.csb/labels.json'))).toEqual({ 'docs/a.md': 'trusted:owner' })
    expect((await git('cat-file', '--batch-all-objects', '--batch')).match(HIDDEN)).toBeNull()
    expect((await git('log', '--format=%s')).split('\n')).not.toContain('write zzplain.md')
    // another lease of the same clearance sees other paths, whoever came first
    const other = await clone(await leaseOf({ paths: ['/zzplain.md'] }), branch)
    expect(await other.git('ls-tree', '-r', '--name-only', 'HEAD')).toBe('zzplain.md\n')
    const again = await clone(await leaseOf({ paths: ['/docs'], deny_paths: ['/docs/zzdenied'] }), branch)
    expect(await again.git('rev-parse', 'HEAD')).toBe(await git('rev-parse', 'HEAD'))
  })

  test('L1.2 pushes into these, on the full tree; beside them nothing is taken, and nothing goes', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const branch = await seeded()
    const before = await filesOf(branch)
    const { folder, git } = await clone(await leaseOf({ paths: ['/docs'], deny_paths: ['/docs/zzdenied'] }), branch)
    await commitIn(folder, { 'docs/a.md': 'changed\n', 'docs/new/n.md': 'new\n' }, 'change docs')
    await rm(join(folder, 'docs/deep/b.md'))
    await git('add', '-A')
    await git('commit', '-q', '-m', 'remove one')
    const pushed = await ran(folder, ['push', 'origin', `HEAD:${branch}`])
    expect(pushed).toMatchObject({ code: 0 })
    expect(pushed.stderr).not.toMatch(HIDDEN)
    const after = await filesOf(branch)
    for (const path of ['zzroom/in.md', 'docs/zzdenied/c.md', 'zzplain.md'])
      expect(after.get(path)).toBe(before.get(path))
    expect([...after.keys()].filter((path) => path.startsWith('docs/')).sort()).toEqual([
      'docs/a.md',
      'docs/new/n.md',
      'docs/zzdenied/c.md',
    ])
    await git('pull', '-q', '--rebase', 'origin', branch)
    const [head, made] = [(await git('rev-parse', 'HEAD')).trim(), await filesOf(branch)]
    for (const path of ['beside.md', 'docs/zzdenied/mine.md', 'zzroom/in.md', '.gitignore']) {
      await commitIn(folder, { [path]: 'mine\n' }, 'beside')
      const refused = await ran(folder, ['push', 'origin', `HEAD:${branch}`])
      expect(refused.code).toBe(1)
      expect(refused.stderr).toMatch(/remote rejected.*SCOPE_EXCEEDED/)
      await git('reset', '-q', '--hard', head)
    }
    // the branch is not its own to remove or to put elsewhere
    expect((await ran(folder, ['push', 'origin', `:${branch}`])).stderr).toMatch(/remote rejected.*SCOPE_EXCEEDED/)
    expect((await ran(folder, ['push', '-f', 'origin', `HEAD~1:${branch}`])).code).toBe(1)
    expect(await filesOf(branch)).toEqual(made)
  })

  test('L1.2 begins a branch of its own and proposes from it, with all that is beside them', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const branch = await seeded()
    const before = await filesOf(branch)
    const { folder } = await clone(await leaseOf({ paths: ['/docs/deep'] }), branch)
    await commitIn(folder, { 'docs/deep/b.md': 'better\n' }, 'better')
    expect(await ran(folder, ['push', 'origin', 'HEAD:runs/own'])).toMatchObject({ code: 0 })
    const after = await filesOf('runs/own')
    expect([...after.keys()]).toEqual([...before.keys()])
    // an agent's word is not the owner's
    expect([...after].filter(([path, side]) => before.get(path) !== side).map(([path]) => path)).toEqual([
      '.csb/labels.json',
      'docs/deep/b.md',
    ])
    const proposed = await ran(folder, ['push', 'origin', 'HEAD:refs/for/main'])
    expect(proposed).toMatchObject({ code: 0 })
    expect(proposed.stderr).toMatch(/csb gate show gate_/)
  })

  test('that can not have a file where something hidden stands is told to name it otherwise', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const branch = `runs/taken-${count++}`
    await write(branch, 'docs/a.md', 'a\n')
    await write(branch, 'docs/mine/zzsecret.md', 'zzsecret words\n', 'sealed:owner')
    const token = await leaseOf({ paths: ['/docs/a.md', '/docs/mine'], labels_max: 'private' })
    const before = await filesOf(branch)
    const { folder } = await clone(token, branch)
    await commitIn(folder, { 'docs/mine': 'mine\n' }, 'mine')
    const refused = await ran(folder, ['push', 'origin', `HEAD:${branch}`])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toMatch(/remote: .*git mv/)
    expect(refused.stderr).not.toMatch(/git pull/)
    expect(refused.stderr).not.toMatch(HIDDEN)
    expect(await filesOf(branch)).toEqual(before)
  })

  test('that names no path gets nothing', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const branch = await seeded()
    const token = await leaseOf({ paths: [] })
    const refused = await ran(rig.work, ['clone', '-q', '--branch', branch, rig.url(token), join(rig.work, 'none')])
    expect(refused.stderr).toContain('[SCOPE_EXCEEDED]')
  })
})
