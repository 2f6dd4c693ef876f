/** What a session pushes is taken with its own ids, and is still no more than an agent's word, under the floor of its lease. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { formatLabel, type Label, type Lease } from '@csb/core'
import { HAS_GIT, SKIPPED, commitIn, gitIn, openGitNode, ran, sessionOn as sessionIn, type GitNode } from './git-rig.ts'

let rig: GitNode
beforeAll(async () => {
  rig = await openGitNode('sha256')
  for (const path of ['open.md', 'kept.md'])
    await rig.client.call('PUT', '/v1/files/file', {
      branch: 'runs/base',
      path,
      text: `${path} of the owner`,
      label: 'public:owner',
    })
  await rig.client.call('POST', '/v1/files/branches', { branch: 'runs/other', from: 'runs/base' })
})
afterAll(() => rig.close())

/** A session of its own that has cloned `runs/base`. */
const sessionOn = (more: Partial<Lease> = {}) => sessionIn(rig, 'runs/base', more)

const file = (branch: string, path: string) => `/v1/files/file?branch=${encodeURIComponent(branch)}&path=${path}`
const labelOf = async (branch: string, path: string) =>
  formatLabel((await rig.client.call<{ label: Label }>('GET', file(branch, path))).label)
const headOf = async (branch: string) =>
  (await rig.client.call<{ refs: { branch: string; commit: string }[] }>('GET', '/v1/files/refs')).refs.find(
    (ref) => ref.branch === branch,
  )?.commit

describe('L3.2 what a session pushes by git', () => {
  test('L3.2 keeps its ids and is an agent\u2019s word where it lies, where it is copied and where it is merged', async ({
    skip,
  }) => {
    skip(!HAS_GIT, SKIPPED)
    const { folder, git } = await sessionOn()
    await commitIn(folder, { 'open.md': 'as an agent says', 'new.md': 'new' }, 'work')
    await git('push', '-q', 'origin', 'HEAD:refs/heads/runs/work')
    expect(await headOf('runs/work')).toBe((await git('rev-parse', 'HEAD')).trim())
    // goes on without fetching first
    await commitIn(folder, { 'more.md': 'more' }, 'more')
    await git('push', '-q', 'origin', 'HEAD:refs/heads/runs/work')
    await git('push', '-q', 'origin', 'HEAD:refs/heads/runs/again')
    await rig.client.call('POST', '/v1/files/branches', { branch: 'runs/copy', from: 'runs/work' })
    for (const branch of ['runs/work', 'runs/again', 'runs/copy']) {
      expect([branch, await labelOf(branch, 'open.md')]).toEqual([branch, 'public:agent'])
      expect([branch, await labelOf(branch, 'new.md')]).toEqual([branch, 'private:agent'])
    }
    const diff = await rig.client.call<{ items: { path: string; label_new: string }[] }>(
      'GET',
      `/v1/files/diff?from=main&to=${encodeURIComponent('runs/work')}`,
    )
    expect(diff.items.find(({ path }) => path === 'open.md')).toMatchObject({ label_new: 'public:agent' })

    const merged = await rig.client.call<{ manifest: { path: string; label_new: string }[] }>(
      'POST',
      '/v1/files/merge',
      { from: 'runs/work', into: 'runs/other' },
    )
    expect(merged.manifest.find(({ path }) => path === 'open.md')).toMatchObject({ label_new: 'public:agent' })
    expect(await labelOf('runs/other', 'open.md')).toBe('public:agent')
    expect(await labelOf('runs/other', 'more.md')).toBe('private:agent')
    expect(await labelOf('runs/other', 'kept.md')).toBe('public:owner')
  })

  test('L3.2 is an agent\u2019s word as a proposal too', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const { folder, git } = await sessionOn()
    await commitIn(folder, { 'proposed.md': 'as an agent says' }, 'work')
    await git('push', '-q', 'origin', 'HEAD:refs/for/main')
    const head = (await git('rev-parse', 'HEAD')).trim()
    const { refs } = await rig.client.call<{ refs: { branch: string; commit: string }[] }>('GET', '/v1/files/refs')
    const branch = refs.find((ref) => ref.commit === head)?.branch ?? ''
    expect(branch).toMatch(/^proposals\//)
    expect(await labelOf(branch, 'proposed.md')).toBe('private:agent')
  })

  test('L3.2 by the owner stays the owner\u2019s word', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const folder = join(rig.work, 'owner')
    await gitIn(rig.work)('clone', '-q', '--branch', 'runs/base', rig.url(), folder)
    await commitIn(folder, { 'open.md': 'as I say' }, 'mine')
    await gitIn(folder)('push', '-q', 'origin', 'HEAD:refs/heads/runs/mine')
    expect(await labelOf('runs/mine', 'open.md')).toBe('public:owner')
  })
})

describe('L1.2 under a floor', () => {
  test.each<[string, Partial<Lease>, string, string]>([
    ['that nothing has a label for', { label_floor: 'sealed' }, 'new.md', 'sealed:agent'],
    ['that what is there is below of', { label_floor: 'private' }, 'open.md', 'private:agent'],
  ])('L1.2 a push is refused %s, and taken with the label', async (name, more, path, label) => {
    if (!HAS_GIT) return
    const branch = `runs/${name.replaceAll(' ', '-')}`
    await rig.client.call('POST', '/v1/files/branches', { branch, from: 'runs/base' })
    const before = await headOf(branch)
    const { folder, git } = await sessionOn(more)
    await commitIn(folder, { [path]: 'below it' }, 'low')
    const refused = await ran(folder, ['push', 'origin', `HEAD:refs/heads/${branch}`])
    expect(refused.code).not.toBe(0)
    expect(refused.stderr).toContain('DENIED')
    expect(await headOf(branch)).toBe(before)
    const labels = JSON.stringify({ 'open.md': 'public:owner', 'kept.md': 'public:owner', [path]: label })
    await commitIn(folder, { '.csb/labels.json': labels }, 'labels')
    await git('push', '-q', 'origin', `HEAD:refs/heads/${branch}`)
    expect(await labelOf(branch, path)).toBe(label)
  })

  test('L1.2 what a lease for some paths pushes gets the label as it lands', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const { folder } = await sessionOn({ label_floor: 'sealed', paths: ['/open.md', '/new.md'] })
    // words of its own: the same commit, made in the same second for another branch, would be shown to it as its own
    await commitIn(folder, { 'new.md': 'of a part' }, 'part')
    expect(await ran(folder, ['push', 'origin', 'HEAD:refs/heads/runs/part'])).toMatchObject({ code: 0 })
    expect(await labelOf('runs/part', 'new.md')).toBe('sealed:agent')
  })
})
