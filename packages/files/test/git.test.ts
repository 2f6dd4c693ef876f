/** The git program itself is the judge: what is stored here are its loose objects, byte for byte. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deflateSync, inflateSync } from 'node:zlib'
import { describe, expect, onTestFinished, test } from 'vitest'
import { key, type Store } from '@csb/store'
import { commitFiles, listFiles, listRefs, readBlob, readCommit, readLog, setLabel, type Home } from '../src/index.ts'
import { NOW, OWNER, WORDS, objectIds, openHome, text } from './open-home.ts'

const version = spawnSync('git', ['--version'], { encoding: 'utf8' }).stdout ?? ''
const [, major = '0', minor = '0'] = /(\d+)\.(\d+)/.exec(version) ?? []
const hasGit = Number(major) * 1000 + Number(minor) >= 2029
const SKIPPED = 'git 2.29 or newer is not here'

/** What git would have as the file of an object, from the entry that is stored: its header says kind and size. */
function looseObject(store: Store, home: Home, oid: string): Uint8Array {
  const entry = Buffer.from(store.view().get(key('object', home.id, oid)) ?? [])
  const kind = ['', 'commit', 'tree', 'blob', 'tag'][((entry[0] ?? 0) >> 4) & 7]
  const body = inflateSync(entry.subarray(entry.findIndex((byte) => byte < 0x80) + 1))
  return deflateSync(Buffer.concat([text(`${kind} ${body.byteLength}\0`), body]))
}

/** Write every object and branch of a home as files of a bare repository. */
async function exportHome(store: Store, home: Home): Promise<(...args: string[]) => string> {
  const folder = await mkdtemp(join(tmpdir(), 'csb-git-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', folder, ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], HOME: folder, GIT_CONFIG_NOSYSTEM: '1', LC_ALL: 'C.UTF-8', TZ: 'UTC' },
    })
  git('init', '-q', '--bare', `--object-format=${home.hash}`, '.')
  for (const oid of await objectIds(store, home.id)) {
    const target = join(folder, 'objects', oid.slice(0, 2))
    await mkdir(target, { recursive: true })
    await writeFile(join(target, oid.slice(2)), looseObject(store, home, oid))
  }
  for (const { branch, commit } of await listRefs(store.view(), home.id)) {
    const target = join(folder, 'refs', 'heads', branch)
    await mkdir(join(target, '..'), { recursive: true })
    await writeFile(target, `${commit}\n`)
  }
  return git
}

describe.each(['sha256', 'sha1'] as const)('a %s home', (hash) => {
  test('git takes the stored objects as its own: fsck is clean and log, trees and files agree', async ({ skip }) => {
    skip(!hasGit, SKIPPED)
    const { store, home } = await openHome(hash)
    const branch = 'runs/one'
    const names = [
      'a',
      'a.txt',
      'a-b',
      'a0',
      'folder/deep/er/x.md',
      'folder.md',
      'folder-2/y',
      '筆記/記憶.md',
      '🙂',
      '\uffee',
      'empty',
    ]
    const steps = [
      {
        changes: names.map((path) => ({ path, bytes: text(path === 'empty' ? '' : `content of ${path}\n`) })),
        message: 'write all',
      },
      {
        changes: [
          { path: 'a', bytes: null },
          { path: 'a/now/a/folder', bytes: text('x') },
        ],
        message: 'turn a file into a folder\n\nwith a body',
      },
      {
        changes: [
          { path: 'folder/deep/er/x.md', bytes: null },
          { path: 'big', bytes: new Uint8Array(300_000).fill(7) },
        ],
        message: '記憶',
      },
    ]
    for (const [index, step] of steps.entries()) {
      const trailers = { 'Csb-Run': `run_${index}`, 'Csb-Lease': 'sha256:00' }
      await store.transact((tx) =>
        commitFiles(tx, { ...WORDS, ...step, home: home.id, branch, trailers, now: NOW + index * 1500 }),
      )
    }
    const label = { level: 'sealed', integrity: 'agent', tags: ['health'] } as const
    await store.transact((tx) =>
      setLabel(tx, { ...WORDS, home: home.id, branch, path: 'folder-2', label, now: NOW + 9000 }),
    )

    const git = await exportHome(store, home)
    const view = store.view()
    expect(git('fsck', '--strict', '--full', '--no-dangling')).toBe('')

    const shown = git(
      'log',
      '--format=%H%x00%P%x00%an%x00%ae%x00%at%x00%(trailers:key=Csb-Run,valueonly,separator=)%x00%s',
      branch,
    )
    const ours = readLog(view, { home: home.id, at: branch, limit: 50 }).map(
      ({ commit, parents, author, at, trailers, message }) =>
        [
          commit,
          parents.join(' '),
          author.name,
          author.did,
          at / 1000,
          trailers['Csb-Run'] ?? '',
          message.split('\n')[0],
        ].join('\0'),
    )
    expect(shown.trimEnd().split('\n')).toEqual(ours)

    for (const { commit } of readLog(view, { home: home.id, at: branch, limit: 50 })) {
      const theirs = git('ls-tree', '-r', '-t', '-z', commit)
      const listed = listFiles(view, { home: home.id, at: commit, recursive: true })
      const lines = listed.map(
        ({ kind, oid, path }) => `${kind === 'file' ? '100644 blob' : '040000 tree'} ${oid}\t${path}\0`,
      )
      expect(theirs).toBe(lines.join(''))
      expect(git('rev-parse', `${commit}^{tree}`).trim()).toBe(readCommit(view, home.id, commit).tree)
    }
    const file = listFiles(view, { home: home.id, at: branch, path: '筆記' })[0]
    expect(file?.path).toBe('筆記/記憶.md')
    expect(git('cat-file', 'blob', file?.oid ?? '')).toBe(
      Buffer.from(readBlob(view, home.id, file?.oid ?? '')).toString(),
    )
    expect(git('log', '-1', '--format=%ae', branch).trim()).toBe(OWNER.did)
  })

  test('git hashes the same bytes to the same ids when it makes them itself', async ({ skip }) => {
    skip(!hasGit, SKIPPED)
    const { store, home } = await openHome(hash)
    const done = await store.transact((tx) =>
      commitFiles(tx, {
        ...WORDS,
        home: home.id,
        branch: 'runs/one',
        changes: [{ path: 'x/y', bytes: text('hello') }],
      }),
    )
    const git = await exportHome(store, home)
    const tree = git('rev-parse', `${done.tree}:x`).trim()
    const commit = execFileSync(
      'git',
      [
        '-C',
        git('rev-parse', '--absolute-git-dir').trim(),
        'commit-tree',
        done.tree,
        '-p',
        done.parent,
        '-m',
        'a change',
      ],
      {
        encoding: 'utf8',
        env: {
          PATH: process.env['PATH'],
          GIT_AUTHOR_NAME: 'Ada',
          GIT_AUTHOR_EMAIL: OWNER.did,
          GIT_AUTHOR_DATE: `${NOW / 1000} +0000`,
          GIT_COMMITTER_NAME: 'Ada',
          GIT_COMMITTER_EMAIL: OWNER.did,
          GIT_COMMITTER_DATE: `${NOW / 1000} +0000`,
        },
      },
    )
    expect(commit.trim()).toBe(done.commit)
    expect(await objectIds(store, home.id)).toContain(tree)
  })
})
