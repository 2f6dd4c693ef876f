/** Two leases on one home: one sees everything, the other clones what it may see, and what it pushes lands on the whole. */
import { chmod, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '@csb/core'
import { leaseFor, openOwner } from '@csb/node'
import { HAS_GIT, SKIPPED, commitIn, gitIn, openGitNode, ran, type GitNode } from './git-rig.ts'

let rig: GitNode
let friend = ''
let count = 0
beforeAll(async () => {
  if (!HAS_GIT) return
  rig = await openGitNode('sha256')
  friend = await leaseOf('trusted')
})
afterAll(() => rig?.close())

const leaseOf = async (labels_max: 'trusted' | 'private'): Promise<string> => {
  const desk = {
    directory: rig.folder,
    client: rig.client,
    owner: await openOwner(rig.folder, undefined),
    now: systemClock.now(),
  }
  const lease = {
    actions: ['list', 'read', 'write', 'propose'] as const,
    paths: ['/'],
    branches: ['*'],
    labels_max,
  }
  return (await leaseFor(desk, { name: 'friend', lease: { ...lease, actions: [...lease.actions] }, ttlMs: 600_000 }))
    .token
}

const write = (branch: string, path: string, text: string, label: string) =>
  rig.client.call('PUT', '/v1/files/file', { branch, path, text, label })

const clone = async (token: string, branch: string) => {
  const folder = join(rig.work, `clone-${count++}`)
  await gitIn(rig.work)('clone', '-q', '--branch', branch, rig.url(token), folder)
  return { folder, git: gitIn(folder) }
}

/** Path to mode and id of everything on a branch, as the owner clones it. */
const filesOf = async (branch: string): Promise<Map<string, string>> => {
  const { git } = await clone(rig.token, branch)
  const lines = (await git('ls-tree', '-r', '-z', 'HEAD')).split('\0').filter((line) => line !== '')
  expect(await git('fsck', '--strict', '--full', '--no-dangling')).toBe('')
  return new Map(lines.map((line) => [line.slice(line.indexOf('\t') + 1), line.slice(0, line.indexOf('\t'))]))
}

/** A branch with seen and hidden files. */
const seeded = async (): Promise<string> => {
  const branch = `runs/seeded-${count++}`
  await write(branch, 'seen.md', 'seen\n', 'trusted:owner')
  await write(branch, 'docs/open.md', 'open\n', 'trusted:owner')
  await write(branch, 'docs/zzsecret.md', 'hidden words\n', 'private:owner')
  await write(branch, 'zzroom/in.md', 'hidden room\n', 'private:owner')
  return branch
}

describe('a push of a reader of a part', () => {
  test('L4.2 lands on the full tree, hidden files stay, and what is answered names nothing hidden', async ({
    skip,
  }) => {
    skip(!HAS_GIT, SKIPPED)
    const branch = await seeded()
    const before = await filesOf(branch)
    const { folder, git } = await clone(friend, branch)
    await commitIn(folder, { 'seen.md': 'changed\n', 'new.md': 'new\n' }, 'change and add')
    await rm(join(folder, 'docs/open.md'))
    await mkdir(join(folder, 'docs'), { recursive: true })
    await writeFile(join(folder, 'docs/run.sh'), '#!/bin/sh\n')
    await chmod(join(folder, 'docs/run.sh'), 0o755)
    await symlink('run.sh', join(folder, 'docs/link'))
    await git('add', '-A')
    await git('commit', '-q', '-m', 'second\n\nwith a reason')
    const pushed = await ran(folder, ['push', 'origin', `HEAD:${branch}`])
    expect(pushed).toMatchObject({ code: 0 })
    expect(pushed.stderr).toMatch(/remote: .*changes of 2 commits were taken in under new ids.*git pull --rebase/)
    expect(pushed.stderr).not.toMatch(/zzsecret|zzroom|hidden|private/)
    const after = await filesOf(branch)
    for (const path of ['docs/zzsecret.md', 'zzroom/in.md']) expect(after.get(path)).toBe(before.get(path))
    expect([...after.keys()].sort()).toEqual(
      ['.csb/labels.json', 'docs/link', 'docs/run.sh', 'docs/zzsecret.md', 'new.md', 'seen.md', 'zzroom/in.md'].sort(),
    )
    expect(after.get('docs/run.sh')).toMatch(/^100755 /)
    expect(after.get('docs/link')).toMatch(/^120000 /)
    const full = await clone(rig.token, branch)
    const labels = JSON.parse(await full.git('show', 'HEAD:.csb/labels.json')) as Record<string, string>
    // what is new bears a label that its author sees, what it changed is its word, and no other label is touched
    expect(labels).toMatchObject({
      'docs/zzsecret.md': 'private:owner',
      'seen.md': 'trusted:agent',
      'new.md': 'trusted:agent',
    })
    expect(await full.git('log', '-2', '--format=%s|%an')).toBe('second|friend\nchange and add|friend\n')
    // what its author goes on with: the same files, its own new labels being the owner's
    await git('pull', '-q', '--rebase', 'origin', branch)
    expect(await readFile(join(folder, 'seen.md'), 'utf8')).toBe('changed\n')
    await commitIn(folder, { 'seen.md': 'again\n' }, 'third')
    expect(await ran(folder, ['push', 'origin', `HEAD:${branch}`])).toMatchObject({ code: 0 })
    expect((await filesOf(branch)).get('docs/zzsecret.md')).toBe(before.get('docs/zzsecret.md'))
    const all = await git('cat-file', '--batch-all-objects', '--batch')
    expect(all).not.toMatch(/hidden|zzsecret|zzroom/)
  })

  test('L4.2 what stands in the way of a hidden name gets another one, and the answer does not say why', async ({
    skip,
  }) => {
    skip(!HAS_GIT, SKIPPED)
    const branch = await seeded()
    const before = await filesOf(branch)
    const { folder, git } = await clone(friend, branch)
    await commitIn(folder, { 'docs/zzsecret.md': 'mine\n' }, 'first')
    await commitIn(folder, { 'docs/zzsecret.md': 'mine again\n', 'zzroom/mine.md': 'mine too\n' }, 'second')
    const pushed = await ran(folder, ['push', 'origin', `HEAD:${branch}`])
    expect(pushed.stderr).toContain('docs/zzsecret.md was taken in as docs/zzsecret (copy).md')
    expect(pushed.stderr).not.toMatch(/hidden|private|exist/)
    const after = await filesOf(branch)
    expect(after.get('docs/zzsecret.md')).toBe(before.get('docs/zzsecret.md'))
    expect(after.get('zzroom/in.md')).toBe(before.get('zzroom/in.md'))
    const full = await clone(rig.token, branch)
    expect(await readFile(join(full.folder, 'docs/zzsecret (copy).md'), 'utf8')).toBe('mine again\n')
    await git('fetch', '-q')
    expect(await git('ls-tree', '-r', '--name-only', `origin/${branch}`)).toBe(
      '.csb/labels.json\ndocs/open.md\ndocs/zzsecret (copy).md\nseen.md\nzzroom/mine.md\n',
    )
    // and gone again under the name it was given by its author
    await git('reset', '-q', '--hard', `origin/${branch}`)
    await commitIn(folder, { 'docs/zzsecret.md': 'third\n' }, 'third')
    await git('rm', '-q', 'docs/zzsecret.md')
    await git('commit', '-q', '-m', 'fourth')
    await git('push', '-q', 'origin', `HEAD:${branch}`)
    expect([...(await filesOf(branch)).keys()]).toEqual([...after.keys()])
  })

  test('L4.2 a new branch and a proposal start on the full history, a merge of both lines comes as one', async ({
    skip,
  }) => {
    skip(!HAS_GIT, SKIPPED)
    const branch = await seeded()
    const { folder, git } = await clone(friend, branch)
    await git('push', '-q', 'origin', `HEAD:${branch}-same`)
    expect(await filesOf(`${branch}-same`)).toEqual(await filesOf(branch))
    await commitIn(folder, { 'seen.md': 'on my own\n' }, 'mine')
    await write(branch, 'docs/open.md', 'changed meanwhile\n', 'trusted:owner')
    await write(branch, 'docs/zzsecret.md', 'hidden, changed meanwhile\n', 'private:owner')
    expect((await ran(folder, ['push', 'origin', `HEAD:${branch}`])).stderr).toMatch(/rejected/)
    const proposed = await ran(folder, ['push', 'origin', 'HEAD:refs/for/main'])
    expect(proposed.stderr).toMatch(/taken in under new ids[^]*csb gate show gate_/)
    const [, proposal = ''] = /proposed as (proposals\/\S+);/.exec(proposed.stderr) ?? []
    expect((await filesOf(proposal)).has('docs/zzsecret.md')).toBe(true)
    await git('fetch', '-q')
    await git('merge', '-q', '-m', 'both', `origin/${branch}`)
    await git('push', '-q', 'origin', `HEAD:${branch}`)
    const full = await clone(rig.token, branch)
    expect(await readFile(join(full.folder, 'docs/open.md'), 'utf8')).toBe('changed meanwhile\n')
    expect(await readFile(join(full.folder, 'docs/zzsecret.md'), 'utf8')).toBe('hidden, changed meanwhile\n')
    expect(await readFile(join(full.folder, 'seen.md'), 'utf8')).toBe('on my own\n')
    await git('push', '-q', 'origin', `:${branch}-same`)
    expect(await full.git('ls-remote', 'origin', `refs/heads/${branch}-same`)).toBe('')
  })

  test('what can not be taken as a change is refused, and nothing of it is there', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const branch = await seeded()
    const full = await clone(rig.token, branch)
    const secret = (await full.git('rev-parse', 'HEAD')).trim()
    const { folder, git } = await clone(friend, branch)
    const base = (await git('rev-parse', 'HEAD')).trim()
    const refused = async (commit: string, spec: string, code: RegExp) => {
      const said = (await ran(folder, ['push', '--force', '--atomic', 'origin', `${commit}:${spec}`])).stderr
      expect(said).toMatch(code)
      expect(said).not.toMatch(/zzsecret|zzroom|hidden/)
      expect((await full.git('ls-remote', 'origin', `refs/heads/${branch}`)).slice(0, 64)).toBe(secret)
    }
    const changed = await commitIn(folder, { 'seen.md': 'other\n' }, 'other')
    await git('tag', 'mine', changed)
    await refused('mine', 'refs/tags/mine', /CLEARANCE/)
    await git('checkout', '-q', '--orphan', 'anew')
    await refused(await commitIn(folder, { x: 'x' }, 'anew'), branch, /CONFLICT|DENIED/)
    await git('checkout', '-q', '--force', '-B', 'labels', base)
    const labels = await commitIn(folder, { '.csb/labels.json': '{"seen.md":"sealed:owner"}\n' }, 'labels')
    await refused(labels, branch, /INVALID_INPUT|DENIED/)
  })

  const paths = fc.constantFrom('seen.md', 'docs/open.md', 'fresh.md', 'docs/deep/x', 'two words.txt', 'run.sh')
  const commits = fc.array(
    fc.uniqueArray(fc.tuple(paths, fc.option(fc.nat(9)), fc.boolean()), { selector: ([path]) => path, minLength: 1 }),
    { minLength: 1, maxLength: 3 },
  )

  test('L4.2 whatever is pushed, the full tree is the hidden files as they were and the others as pushed', async ({
    skip,
  }) => {
    skip(!HAS_GIT, SKIPPED)
    const isHidden = (path: string) => path.includes('zz')
    await fc.assert(
      fc.asyncProperty(commits, async (steps) => {
        const branch = await seeded()
        const before = await filesOf(branch)
        const { folder, git } = await clone(friend, branch)
        for (const step of steps) {
          for (const [path, version, isScript] of step) {
            await rm(join(folder, path), { force: true })
            if (version === null) continue
            await mkdir(dirname(join(folder, path)), { recursive: true })
            await writeFile(join(folder, path), `version ${version}\n`, { mode: isScript ? 0o755 : 0o644 })
          }
          await git('add', '-A')
          await git('commit', '-q', '--allow-empty', '-m', 'step')
        }
        await git('push', '-q', 'origin', `HEAD:${branch}`)
        const pushed = (await git('ls-tree', '-r', '-z', 'HEAD')).split('\0').filter((line) => line !== '')
        const direct = new Map([...before].filter(([path]) => isHidden(path)))
        for (const line of pushed) direct.set(line.slice(line.indexOf('\t') + 1), line.slice(0, line.indexOf('\t')))
        const after = await filesOf(branch)
        for (const files of [direct, after]) files.delete('.csb/labels.json')
        expect(Object.fromEntries(after)).toEqual(Object.fromEntries(direct))
        await git('fetch', '-q')
        expect(await git('diff', '--stat', 'HEAD', `origin/${branch}`, '--', '.', ':!.csb')).toBe('')
      }),
      { numRuns: 8 },
    )
  })
})
