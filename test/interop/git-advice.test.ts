/** What somebody who knows git alone reads on the screen when a push is refused, and that it helps. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HAS_GIT, SKIPPED, commitIn, gitIn, newRepository, openGitNode, ran, type GitNode } from './git-rig.ts'

const MiB = 1024 * 1024

let rig: GitNode
beforeAll(async () => {
  if (HAS_GIT) rig = await openGitNode('sha256')
})
afterAll(() => rig?.close())

const fresh = async (name: string) => {
  const folder = join(rig.work, name)
  const git = await newRepository(folder, 'sha256')
  await git('remote', 'add', 'origin', rig.url())
  return { folder, git }
}

describe('a push that is refused', () => {
  test.each([
    [
      'two names that some systems take for one',
      { 'Read.md': 'a', 'read.md': 'b' },
      'read.md',
      /mend it in every commit/,
    ],
    ['a file in the folder of the node', { '.csb/other': 'a' }, '.csb/other', /mend it in every commit/],
    ['a label below the owner’s', { '.csb/labels.json': '{"a":"public:owner"}', a: 'a' }, 'a', /the owner can do it/],
  ])('for %s tells what to do', async (name, files, path, advice) => {
    if (!HAS_GIT) return
    const { folder, git } = await fresh(name.replaceAll(/\W/g, '-'))
    const first = await commitIn(folder, { sound: 'sound' }, 'sound')
    await commitIn(folder, files, 'not sound')
    const refused = await ran(folder, ['push', '--force', 'origin', 'HEAD:runs/advice'])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toMatch(/remote: refs\/heads\/runs\/advice: /)
    expect(refused.stderr).toMatch(advice)
    // the screen names the path, so that it can be found
    expect(refused.stderr).toContain(`path ${path}`)
    await git('reset', '-q', '--hard', first)
    await git('push', '-q', '--force', 'origin', 'HEAD:runs/advice')
  })

  test('because somebody was quicker tells how to go on, and that works', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const { folder, git } = await fresh('slower')
    await commitIn(folder, { a: 'a' }, 'a')
    await git('push', '-q', 'origin', 'HEAD:runs/race')
    await gitIn(rig.work)('clone', '-q', '--branch', 'runs/race', rig.url(), join(rig.work, 'quicker'))
    const quicker = join(rig.work, 'quicker')
    await commitIn(quicker, { b: 'b' }, 'b')
    await gitIn(quicker)('push', '-q', 'origin', 'HEAD:runs/race')
    await commitIn(folder, { c: 'c' }, 'c')
    expect((await ran(folder, ['push', 'origin', 'HEAD:runs/race'])).stderr).toMatch(/git pull/)
    await git('pull', '-q', '--rebase', 'origin', 'runs/race')
    await git('push', '-q', 'origin', 'HEAD:runs/race')
  })

  test('since there is nothing to propose says so, and no card is opened', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    await gitIn(rig.work)('clone', '-q', rig.url(), join(rig.work, 'nothing'))
    const folder = join(rig.work, 'nothing')
    const before = await rig.client.call('GET', '/v1/files/refs')
    const refused = await ran(folder, ['push', 'origin', 'HEAD:refs/for/main'])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toMatch(/remote: refs\/for\/main: commit what is to be proposed/)
    expect(refused.stderr).not.toMatch(/rebase/)
    expect(await rig.client.call('GET', '/v1/files/refs')).toEqual(before)
    expect(await rig.client.call('GET', '/v1/gate')).toEqual({ items: [] })
    await commitIn(folder, { 'plan.md': 'a plan' }, 'plan')
    expect(await ran(folder, ['push', 'origin', 'HEAD:refs/for/main'])).toMatchObject({ code: 0 })
  })

  test('for a delta between files above the limit tells how to send them whole, and that works', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const { folder, git } = await fresh('large')
    const large = randomBytes(33 * MiB)
    await git('config', 'core.compression', '0')
    await commitIn(folder, { 'large.bin': large }, 'large')
    large.write('changed', MiB)
    await commitIn(folder, { 'large.bin': large }, 'changed')
    await git('repack', '-adfq')
    const refused = await ran(folder, ['push', 'origin', 'HEAD:runs/large'])
    expect(refused.stderr).toMatch(/remote rejected.*\[TOO_LARGE\]/)
    const [, advised = ''] = /send large files whole: git (-c \S+) push/.exec(refused.stderr) ?? []
    const [, anew = ''] = /packed: git (-c \S+ repack -adF) first/.exec(refused.stderr) ?? []
    await git(...anew.split(' '), '-q')
    await git(...advised.split(' '), 'push', '-q', 'origin', 'HEAD:runs/large')
  })
})
