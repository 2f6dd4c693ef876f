/** The git view at its edges: what was forgotten, who sees or may write a part only, and requests no git would send. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '@csb/core'
import { forgetNotes, leaseFor, openOwner } from '@csb/node'
import { HAS_GIT, SKIPPED, commitIn, gitIn, openGitNode, ran, type GitNode } from './git-rig.ts'

type Note = { readonly id: string; readonly commit: string }

let rig: GitNode
let count = 0
beforeAll(async () => {
  rig = await openGitNode('sha256')
})
afterAll(() => rig.close())

const clone = async (args: readonly string[] = [], token = rig.token) => {
  const folder = join(rig.work, `clone-${count++}`)
  await gitIn(rig.work)('clone', '-q', ...args, rig.url(token), folder)
  return { folder, git: gitIn(folder) }
}

const desk = async () => ({
  directory: rig.folder,
  client: rig.client,
  owner: await openOwner(rig.folder, undefined),
  now: systemClock.now(),
})

const lease = async (members: Partial<Parameters<typeof leaseFor>[1]['lease']>): Promise<string> => {
  const all = {
    actions: ['list', 'read', 'write', 'propose'],
    paths: ['/'],
    branches: ['*'],
    labels_max: 'private',
  } as const
  const given = { ...all, actions: [...all.actions], paths: [...all.paths], branches: [...all.branches], ...members }
  return (await leaseFor(await desk(), { name: 'agent', lease: given, ttlMs: 600_000 })).token
}

const remember = (content: string) =>
  rig.client.call<Note>('POST', '/v1/memory', { entry: { content, type: 'lesson', level: 'hot' } })

describe('after something was forgotten', () => {
  test('L3.4 partial: git clone works as before, no id has changed, the bytes are nowhere', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const secret = 'the combination is 12 34 56 78 and nobody knows it'
    await remember('what comes before')
    const old = await clone(['--branch', 'memory'])
    const note = await remember(secret)
    const held = await clone(['--branch', 'memory'])
    expect((await ran(held.folder, ['grep', '-q', secret])).code).toBe(0)
    await forgetNotes(await desk(), { ids: [note.id], reason: 'asked' })
    const after = await remember('what comes after')
    for (const version of ['2', '0']) {
      const { folder, git } = await clone(['-c', `protocol.version=${version}`, '--branch', 'memory'])
      expect((await git('rev-parse', 'HEAD')).trim()).toBe(after.commit)
      expect(await git('fsck', '--strict', '--full', '--no-dangling')).toBe('')
      expect(await git('rev-parse', '--is-shallow-repository')).toBe('true\n')
      expect((await ran(folder, ['log', '-p', '--all', `-S${secret}`])).stdout).toBe('')
      await git('checkout', '-q', '-b', `runs/after-${version}`, 'origin/main')
      await commitIn(folder, { after: 'x' }, 'after')
      await git('push', '-q', 'origin', `runs/after-${version}`)
    }
    // who has history from before keeps it and goes on
    await held.git('fetch', '-q')
    expect(await held.git('rev-list', 'origin/memory')).toContain(note.commit)
    expect(await held.git('fsck', '--strict', '--full', '--no-dangling')).toBe('')
    await old.git('fetch', '-q', '--update-shallow')
    expect((await old.git('rev-parse', 'origin/memory')).trim()).toBe(after.commit)
    for (const name of await readdir(join(rig.folder, 'db'))) {
      expect((await readFile(join(rig.folder, 'db', name))).includes(secret)).toBe(false)
    }
  })
})

describe('a push of a commit from before something was forgotten', () => {
  test('is refused and says where it is, for what can not be fetched is not taken', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const note = await remember('a second combination that nobody knows')
    const { folder, git } = await clone(['--branch', 'memory'])
    await forgetNotes(await desk(), { ids: [note.id], reason: 'asked' })
    const push = (name: string) => ran(folder, ['push', 'origin', `HEAD:refs/${name}`])
    for (const name of ['heads/runs/before', 'tags/before', 'for/main'])
      expect((await push(name)).stderr).toMatch(new RegExp(`remote rejected.*path notes/.*${note.id}.*FORGOTTEN`))
    // neither does it go in below something that is sound
    await commitIn(folder, { sound: 'sound' }, 'sound')
    const refused = await push('heads/runs/before')
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/remote: .*git rm.*then push again/) })
    expect(await git('ls-remote', 'origin', '*before')).toBe('')
    // what the screen says helps
    await git('rm', '-q', '-r', 'notes')
    await git('commit', '-q', '-m', 'without it')
    expect(await push('heads/runs/before')).toMatchObject({ code: 0 })
    const head = (await git('rev-parse', 'HEAD')).trim()
    expect(await git('ls-remote', 'origin', '*before')).toBe(`${head}\trefs/heads/runs/before\n`)
  })
})

describe('a lease', () => {
  test('L4.2 partial: who sees a part clones the part, and what is hidden is in no object of it', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const write = (path: string, text: string, label: string) =>
      rig.client.call('PUT', '/v1/files/file', { branch: 'runs/shared', path, text, label })
    await write('seen.md', 'seen by friends', 'trusted:owner')
    await write('hidden-name.md', 'hidden from friends', 'private:owner')
    const { folder, git } = await clone(['--branch', 'runs/shared'], await lease({ labels_max: 'trusted' }))
    expect(await readFile(join(folder, 'seen.md'), 'utf8')).toBe('seen by friends')
    const all = await git('cat-file', '--batch-all-objects', '--batch')
    expect(all).not.toContain('hidden from friends')
    expect(all).not.toContain('hidden-name')
    await commitIn(folder, { 'seen.md': 'changed by friends' }, 'change')
    await git('push', '-q', 'origin', 'HEAD:runs/back')
    const back = await clone(['--branch', 'runs/back'])
    expect(await readFile(join(back.folder, 'seen.md'), 'utf8')).toBe('changed by friends')
    expect(await readFile(join(back.folder, 'hidden-name.md'), 'utf8')).toBe('hidden from friends')
    expect(await git('fsck', '--strict', '--full', '--no-dangling')).toBe('')
  })

  test('of an agent that sees what is there is enough to push a run branch, and to propose', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const token = await lease({ branches: ['main', 'runs/agent'] })
    const { folder, git } = await clone([], token)
    expect((await git('branch', '-r')).includes('memory')).toBe(false)
    await git('checkout', '-q', '-b', 'runs/agent')
    const tip = await commitIn(folder, { 'work.md': 'work\n' }, 'work')
    await git('push', '-q', '-o', 'reason=try', 'origin', 'runs/agent')
    expect((await ran(folder, ['push', 'origin', 'HEAD:refs/for/main'])).stderr).toMatch(/csb gate show gate_/)
    const { items } = await rig.client.call<{ items: { header: { operation: string } }[] }>('GET', '/v1/record?limit=5')
    expect(items.map(({ header }) => header.operation)).toContain('git.push')
    const why = await rig.client.call<{ operation: string; lease: { chain: { to: { name: string } }[] } }>(
      'GET',
      `/v1/record/explain/${tip}`,
    )
    expect(why).toMatchObject({ operation: 'git.push' })
    expect(why.lease.chain.at(-1)?.to.name).toBe('agent')
    const other = await ran(folder, ['push', 'origin', 'HEAD:runs/other'])
    expect(other.stderr).toMatch(/remote rejected.*SCOPE_EXCEEDED/)
    const forged = await commitIn(folder, { 'work.md': 'more\n' }, 'more\n\nCsb-Run: run_forged')
    expect((await ran(folder, ['push', 'origin', `${forged}:runs/agent`])).stderr).toMatch(/DENIED/)
  })

  test('that may only read writes nothing', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const reading = await lease({ actions: ['list', 'read'] })
    const { folder } = await clone([], reading)
    await commitIn(folder, { x: 'x' }, 'x')
    expect((await ran(folder, ['push', 'origin', 'HEAD:runs/reader'])).stderr).toMatch(
      /remote rejected.*SCOPE_EXCEEDED/,
    )
  })

  test('all lines of an atomic push stand or fall together', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    const { folder, git } = await clone()
    await commitIn(folder, { atomic: 'x' }, 'atomic')
    const refused = await ran(folder, ['push', '--atomic', 'origin', 'HEAD:runs/atomic', 'HEAD:main'])
    expect(refused.code).toBe(1)
    expect(await git('ls-remote', 'origin', 'refs/heads/runs/atomic')).toBe('')
    await git('push', '-q', '--atomic', 'origin', 'HEAD:runs/atomic', 'HEAD:runs/atomic-2')
    await git('push', '-q', 'origin', ':runs/atomic', ':runs/atomic-2')
    expect(await git('ls-remote', 'origin', 'refs/heads/runs/atomic*')).toBe('')
  })
})

describe('requests that no git sends', () => {
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${rig.node.url}/git/${rig.home}.git/${path}`, {
      ...init,
      headers: {
        authorization: `Bearer ${rig.token}`,
        'git-protocol': 'version=2',
        ...(init.headers as Record<string, string>),
      },
    })
  const post = (service: string, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
    ask(service, { method: 'POST', body, headers })

  test.each([
    ['git-upload-pack', 'zzzz'],
    ['git-upload-pack', '0003'],
    ['git-upload-pack', 'fff5'],
    ['git-upload-pack', '0014command=ls-refs\n'],
    ['git-upload-pack', '0011command=none0000'],
    ['git-upload-pack', '0012command=fetch\n0001000ewant nothex0000'],
    ['git-receive-pack', '000cno push'],
    ['git-receive-pack', '0020'],
    ['git-upload-pack', ''],
  ])('%s with %j is answered with a plain refusal', async (service, body) => {
    const answer = await post(service, body)
    const text = await answer.text()
    if (answer.status === 200) expect(text).toMatch(/^(?:[0-9a-f]{4}.*)?$/s)
    else {
      expect(answer.status).toBeGreaterThanOrEqual(400)
      expect(answer.status).toBeLessThan(500)
      expect(text).toMatch(/\[(?:MALFORMED|INVALID_INPUT|UNKNOWN_OPERATION|TOO_LARGE)\]\n$/)
    }
  })

  test('bodies that are gzip are read, others and bombs are not', async () => {
    const listing = '0014command=ls-refs\n0000'
    const answer = await post('git-upload-pack', Uint8Array.from(gzipSync(listing)), { 'content-encoding': 'gzip' })
    expect(await answer.text()).toContain('refs/heads/main')
    expect((await post('git-upload-pack', 'no gzip', { 'content-encoding': 'gzip' })).status).toBe(400)
    expect((await post('git-upload-pack', listing, { 'content-encoding': 'br' })).status).toBe(415)
    const bomb = Uint8Array.from(gzipSync(Buffer.from('0009have\n'.repeat(2_000_000))))
    expect((await post('git-upload-pack', bomb, { 'content-encoding': 'gzip' })).status).toBe(413)
  })

  test('a want that is not shown, a home that is not there, a client that is not smart', async () => {
    const none = 'f'.repeat(64)
    const want = (oid: string) => post('git-upload-pack', `0012command=fetch\n0001004awant ${oid}\n0009done\n0000`)
    expect((await want(none)).status).toBe(404)
    expect((await ask('info/refs')).status).toBe(422)
    expect((await ask('HEAD')).status).toBe(404)
    const away = await fetch(`${rig.node.url}/git/home_${'a'.repeat(26)}.git/info/refs?service=git-upload-pack`, {
      headers: { authorization: `Bearer ${rig.token}` },
    })
    expect(away.status).toBe(404)
    const nobody = await fetch(`${rig.node.url}/git/${rig.home}.git/info/refs?service=git-upload-pack`)
    expect(nobody.status).toBe(401)
    expect(nobody.headers.get('www-authenticate')).toMatch(/^Basic realm="csb"/)
  })
})
