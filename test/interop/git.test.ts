/** The git program of this machine against a running node: what a person does with a home who knows nothing but git. */
import { execFileSync } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HAS_GIT, SKIPPED, commitIn, gitIn, newRepository, openGitNode, ran, type GitNode } from './git-rig.ts'

const ROOT = new URL('../..', import.meta.url).pathname

describe.each(['sha256', 'sha1'] as const)('a %s home', (hash) => {
  let rig: GitNode
  beforeAll(async () => {
    if (HAS_GIT) rig = await openGitNode(hash)
  })
  afterAll(() => rig?.close())

  const clone = async (name: string, ...args: string[]) => {
    const folder = join(rig.work, name)
    await gitIn(rig.work)('clone', '-q', ...args, rig.url(), folder)
    return { folder, git: gitIn(folder) }
  }

  test('L0.5 partial: what was pushed by one clone is fetched by another, with old protocol and new', async ({
    skip,
  }) => {
    skip(!HAS_GIT, SKIPPED)
    const one = await clone('one')
    await one.git('checkout', '-q', '-b', 'runs/one')
    let tip = await commitIn(one.folder, { 'a.txt': 'a\n', '筆記/記憶.md': '茶\n' }, 'first')
    await one.git('push', '-q', 'origin', 'runs/one')
    for (const protocol of ['2', '1', '0']) {
      const two = await clone(`two-${protocol}`, '-c', `protocol.version=${protocol}`, '--branch', 'runs/one')
      expect((await two.git('rev-parse', 'HEAD')).trim()).toBe(tip)
      expect(await readFile(join(two.folder, '筆記/記憶.md'), 'utf8')).toBe('茶\n')
      expect(await two.git('fsck', '--strict', '--full', '--no-dangling')).toBe('')
      const next = await commitIn(one.folder, { 'a.txt': `a\nfor ${protocol}\n` }, `next ${protocol}`)
      await one.git('push', '-q', 'origin', 'runs/one')
      await two.git('fetch', '-q')
      expect((await two.git('rev-parse', 'origin/runs/one')).trim()).toBe(next)
      await two.git('merge', '-q', '--ff-only', 'origin/runs/one')
      tip = await commitIn(two.folder, { [`from-${protocol}`]: 'x' }, `from two ${protocol}`)
      await two.git('push', '-q', 'origin', 'HEAD:runs/one')
      await one.git('pull', '-q', '--ff-only', 'origin', 'runs/one')
      expect(await two.git('fsck', '--strict', '--full', '--no-dangling')).toBe('')
    }
    const { refs } = await rig.client.call<{ refs: { branch: string; commit: string }[] }>(
      'GET',
      `/v1/files/refs?home=${rig.home}`,
    )
    expect(refs.find(({ branch }) => branch === 'runs/one')?.commit).toBe((await one.git('rev-parse', 'HEAD')).trim())
  })

  test.each(['2', '0'])(
    'a shallow clone is deepened, step by step and by date, and made whole: protocol %s',
    async (protocol) => {
      if (!HAS_GIT) return
      const source = join(rig.work, `deep-${protocol}`)
      const git = await newRepository(source, hash)
      for (let i = 1; i <= 12; i++) {
        await commitIn(source, { 'n.txt': `${i}\n`, [`f${i}`]: `file ${i}` }, `c${i}`)
      }
      await git('push', '-q', rig.url(), `HEAD:runs/deep-${protocol}`)
      const config = ['-c', `protocol.version=${protocol}`]
      const { git: shallow } = await clone(
        `shallow-${protocol}`,
        ...config,
        '--depth',
        '2',
        '--branch',
        `runs/deep-${protocol}`,
      )
      const count = async () => Number(await shallow('rev-list', '--count', 'HEAD'))
      expect(await count()).toBe(2)
      await shallow(...config, 'fetch', '-q', '--depth', '5')
      expect(await count()).toBe(5)
      await shallow(...config, 'fetch', '-q', '--deepen', '3')
      expect(await count()).toBe(8)
      expect(await shallow('fsck', '--strict', '--full', '--no-dangling')).toBe('')
      await shallow(...config, 'fetch', '-q', '--unshallow')
      expect(await count()).toBe(12)
      expect(await shallow('rev-parse', '--is-shallow-repository')).toBe('false\n')
      expect(await shallow('fsck', '--strict', '--full', '--no-dangling')).toBe('')
      const { git: since } = await clone(
        `since-${protocol}`,
        ...config,
        '--shallow-exclude',
        'runs/none',
        '--branch',
        `runs/deep-${protocol}`,
      ).catch(() => ({ git: undefined }))
      expect(since).toBeUndefined()
      await commitIn(join(rig.work, `shallow-${protocol}`), { 'more.txt': 'more' }, 'more')
      await shallow(...config, 'push', '-q', 'origin', `HEAD:runs/deep-${protocol}`)
    },
  )

  test('L0.2 a push to the protected main line is rejected with a hint, and the refusal is in the record', async ({
    skip,
  }) => {
    skip(!HAS_GIT, SKIPPED)
    const { folder, git } = await clone('protected')
    const before = (await git('rev-parse', 'origin/main')).trim()
    await commitIn(folder, { 'x.txt': 'straight in\n' }, 'straight in')
    const refused = await ran(folder, ['push', 'origin', 'HEAD:main'])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toMatch(/! \[remote rejected\] HEAD -> main \(.*\[PROTECTED\]\)/)
    expect(refused.stderr).toContain('remote: refs/heads/main: git push <remote> HEAD:refs/for/main')
    const forced = await ran(folder, ['push', '--force', 'origin', 'HEAD:main', ':memory'])
    expect(forced.stderr).toMatch(/remote rejected.*main/)
    expect(forced.stderr).toMatch(/remote rejected.*memory/)
    await git('fetch', '-q')
    expect((await git('rev-parse', 'origin/main')).trim()).toBe(before)
    const { items } = await rig.client.call<{ items: { header: { operation: string; code: string | null } }[] }>(
      'GET',
      '/v1/record?limit=10',
    )
    expect(items.some(({ header }) => header.operation === 'git.push' && header.code === 'PROTECTED')).toBe(true)
  })

  test('a push to refs/for/main becomes a proposal, says where it is reviewed, and main stays', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const { folder, git } = await clone('proposal')
    const tip = await commitIn(folder, { 'plan.md': 'a plan\n' }, 'a plan')
    const pushed = await ran(folder, ['push', 'origin', 'HEAD:refs/for/main'])
    expect(pushed).toMatchObject({ code: 0 })
    const [, branch = ''] =
      /remote: proposed as (proposals\/\S+); the owner decides: csb gate show gate_/.exec(pushed.stderr) ?? []
    await git('fetch', '-q')
    expect((await git('rev-parse', `origin/${branch}`)).trim()).toBe(tip)
    expect((await git('rev-parse', 'origin/main')).trim()).not.toBe(tip)
  })

  test('tags come and go with git, one name for one commit', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const { folder, git } = await clone('tags')
    await git('checkout', '-q', '-b', 'runs/tags')
    await commitIn(folder, { t: 't' }, 't')
    await git('tag', '-a', 'v1', '-m', 'one')
    await git('tag', 'light')
    await git('push', '-q', 'origin', 'runs/tags', 'v1', 'light')
    const other = await clone('tags-2', '--branch', 'v1')
    expect(await other.git('tag')).toBe('light\nv1\n')
    expect(await other.git('cat-file', '-t', 'v1')).toBe('tag\n')
    expect(await other.git('fsck', '--strict', '--full', '--no-dangling')).toBe('')
    await commitIn(folder, { t: 'u' }, 'u')
    await git('tag', '-f', 'light')
    expect(await ran(folder, ['push', '--force', 'origin', 'light'])).toMatchObject({ code: 1 })
    await git('push', '-q', 'origin', ':light')
    await other.git('fetch', '-q', '--prune', '--prune-tags')
    expect(await other.git('tag')).toBe('v1\n')
  })

  test('L0.3 what a forced push or a deletion leaves behind is restored, also under another name', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const { folder, git } = await clone('forced')
    await git('checkout', '-q', '-b', 'runs/forced')
    const first = await commitIn(folder, { f: 'first\n' }, 'first')
    await git('push', '-q', 'origin', 'runs/forced')
    await git('commit', '-q', '--amend', '-m', 'again')
    await git('push', '-q', '--force', 'origin', 'runs/forced')
    const restore = (body: object) =>
      rig.client.call<{ head: string }>('POST', '/v1/files/restore', { home: rig.home, branch: 'runs/forced', ...body })
    expect(await restore({ as: 'runs/forced-before' })).toMatchObject({ head: first, branch: 'runs/forced-before' })
    expect(await git('ls-remote', 'origin', 'refs/heads/runs/forced-before')).toContain(first)
    const second = (await git('rev-parse', 'HEAD')).trim()
    await git('push', '-q', 'origin', ':runs/forced', ':runs/forced-before')
    expect(await restore({})).toMatchObject({ head: second })
    expect(await git('ls-remote', 'origin', 'refs/heads/runs/forced')).toContain(second)
  })

  test('L1.4 partial: a snapshot is seen and neither moved nor deleted by a push', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const { folder, git } = await clone('snapshots')
    await commitIn(folder, { s: 's' }, 's')
    for (const spec of ['HEAD:refs/snapshots/new', ':refs/snapshots/new', 'HEAD:refs/heads/snapshots/new']) {
      const refused = await ran(folder, ['push', 'origin', spec])
      expect(refused.stderr).toMatch(/remote rejected|remote ref does not exist/)
      expect(refused.code).toBe(1)
    }
    expect(await git('ls-remote', 'origin', 'refs/snapshots/*')).toBe('')
  })

  test('the repository of this project goes in and comes out as it was', async ({ skip }) => {
    skip(!HAS_GIT || hash !== 'sha1', SKIPPED)
    const refs = ['-C', ROOT, 'rev-parse', '--verify', '-q', 'HEAD']
    const tip = execFileSync('git', refs, { encoding: 'utf8' }).trim()
    await gitIn(ROOT)('push', '-q', rig.url(), `${tip}:refs/heads/runs/project`)
    const { git } = await clone('project', '--branch', 'runs/project')
    expect((await git('rev-parse', 'HEAD')).trim()).toBe(tip)
    const listed = async (run: (...args: string[]) => Promise<string>) =>
      (await run('rev-list', '--objects', tip)).split('\n').sort()
    expect(await listed(git)).toEqual(await listed(gitIn(ROOT)))
    expect(await git('fsck', '--strict', '--full', '--no-dangling')).toBe('')
    expect(await git('status', '--porcelain')).toBe('')
    await rm(join(rig.work, 'project'), { recursive: true })
  })

  test('who has no lease, or one that does not reach, gets nothing', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    for (const url of [rig.url('csb_none'), `${rig.node.url}/git/${rig.home}.git`]) {
      const refused = await ran(rig.work, ['clone', '-q', url, join(rig.work, 'none')])
      expect(refused.code).toBe(128)
      expect(refused.stderr).toMatch(/Authentication failed|could not read Username/)
    }
    const other = rig.url().replace(rig.home, `home_${'a'.repeat(26)}`)
    expect((await ran(rig.work, ['ls-remote', other])).stderr).toContain('[NOT_FOUND]')
  })
})
