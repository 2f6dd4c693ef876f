/** Attack 29: paths that lead elsewhere, judged by a lease, by a tree and by a real file system. */
import { mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import * as fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { isNodeError } from '@csb/core'
import { allows } from '@csb/authority'
import { listFiles, validatePath } from '@csb/files'
import { readVault } from '@csb/memory'
import { wideLease } from '../../packages/authority/test/cast.ts'
import { codeOf, createHouse } from '../../packages/service/test/house.ts'

const lease = wideLease({ paths: ['/notes'], deny_paths: ['/notes/private'] })
const [location = ''] = lease.locations

/** May a run of that lease write there? As the service asks: the path of a tree, then the lease. */
function isWritable(path: string): boolean {
  try {
    return allows(lease, { location, action: 'write', path: `/${validatePath(path)}` }).ok
  } catch (error) {
    if (isNodeError(error, 'INVALID_INPUT')) return false
    throw error
  }
}

async function folder(): Promise<string> {
  const made = await realpath(await mkdtemp(join(tmpdir(), 'csb-paths-')))
  onTestFinished(() => rm(made, { recursive: true, force: true }))
  return made
}

const TRICKS = [
  '..',
  '../etc/passwd',
  'notes/..',
  'notes/../secret.md',
  'notes/./a.md',
  'notes/a/../../secret.md',
  './notes/a.md',
  '/notes/a.md',
  '//notes/a.md',
  'notes//a.md',
  'notes/a.md/',
  'notes\\..\\secret.md',
  '..\\notes\\a.md',
  'notes/..\\secret.md',
  'C:\\notes\\a.md',
  'notes2/a.md',
  'note',
  'Notes/a.md',
  'NOTES/a.md',
  'notes /a.md',
  'notes./a.md',
  'notes/\u0000a.md',
  'notes/a\nb.md',
  'notes/a\u202egpj.md',
  'notes/e\u0301.md',
  'n\u043etes/a.md',
  'notes/.git/config',
  'notes/.GIT/config',
  'notes/git~1/config',
  'notes/.g\u200cit/config',
  'notes/private',
  'notes/private/a.md',
  '.csb/labels.json',
  '',
  '\ud800',
]

test.each(TRICKS)('attack 29: %j is no path below /notes', (path) => expect(isWritable(path)).toBe(false))

test('attack 29: what looks like an escape and is an ordinary name stays where it is', () => {
  for (const path of ['notes/%2e%2e/a.md', 'notes/..a', 'notes/a..b', 'notes/%2fetc', 'notes/private2/a.md'])
    expect([path, isWritable(path)]).toEqual([path, true])
})

test('attack 29: over a service none of them is written or read by a lease for /notes', async () => {
  const house = await createHouse()
  const caller = await house.leased({ paths: ['/notes'], deny_paths: ['/notes/private'], branches: ['runs/*'] })
  const ask = (operation: string, input: object) =>
    codeOf(house.service.perform(caller, operation, { branch: 'runs/own', ...input }))
  expect(await ask('files.write', { path: 'notes/a.md', text: 'x' })).toBe('done')
  for (const path of TRICKS) {
    const wanted = /^(INVALID_INPUT|SCOPE_EXCEEDED)$/
    expect(await ask('files.write', { path, text: 'x' }), JSON.stringify(path)).toMatch(wanted)
    expect(await ask('files.read', { path }), JSON.stringify(path)).toMatch(wanted)
  }
  const files = listFiles(house.store.view(), { home: house.home, at: 'runs/own', recursive: true })
  // the node says whose word it is, in a file of its own
  const written = files.filter(({ kind, path }) => kind === 'file' && path !== '.csb/labels.json')
  expect(written.map(({ path }) => path)).toEqual(['notes/a.md'])
})

test('attack 29: whatever a lease lets be written lies below its folder on a real file system, under that very name', async () => {
  const root = await folder()
  const segment = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom('notes', 'a', 'b.md', 'private', 'ä', '筆記', '👩‍🚀') },
    fc.constantFrom(
      '.',
      '..',
      '',
      '...',
      '.git',
      '%2e%2e',
      '..%2f',
      '\\',
      'a\\..\\b',
      'e\u0301',
      'é',
      '\u0000',
      ' ',
      '~',
      'CON',
    ),
    fc.string({ unit: 'binary', maxLength: 6 }),
  )
  let written = 0
  await fc.assert(
    fc.asyncProperty(fc.array(segment, { minLength: 1, maxLength: 5 }), fc.boolean(), async (segments, isBelow) => {
      const path = [...(isBelow ? ['notes'] : []), ...segments].join('/')
      if (!isWritable(path) || path === 'notes') return
      const own = join(root, String(written++))
      const at = `${own}/${path}`
      await mkdir(dirname(at), { recursive: true })
      await writeFile(at, 'x')
      expect(await realpath(at)).toBe(at)
      expect(at.startsWith(`${own}/notes/`)).toBe(true)
      const found = (await readdir(own, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
      expect(found.map((entry) => join(entry.parentPath, entry.name))).toEqual([at])
    }),
    { numRuns: 600 },
  )
  expect(written).toBeGreaterThan(100)
})

test('attack 29: a symbolic link in a folder that is imported leads nowhere', async () => {
  const root = await folder()
  await mkdir(join(root, 'vault', 'inner'), { recursive: true })
  await mkdir(join(root, 'outside'))
  await writeFile(join(root, 'outside', 'secret.md'), 'the secret of the machine')
  await writeFile(join(root, 'vault', 'own.md'), 'an own note')
  await symlink(join(root, 'outside', 'secret.md'), join(root, 'vault', 'link.md'))
  await symlink(join(root, 'outside'), join(root, 'vault', 'folder'))
  await symlink('../../outside/secret.md', join(root, 'vault', 'inner', 'relative.md'))
  await symlink('.', join(root, 'vault', 'inner', 'circle'))
  const read: unknown[] = []
  for await (const item of readVault(join(root, 'vault'))) read.push(item)
  expect(JSON.stringify(read)).toContain('an own note')
  expect(JSON.stringify(read)).not.toContain('the secret of the machine')
})
