/** The git program itself is the judge of its own files, where it is here. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { LIMITS, isNodeError } from '@csb/core'
import { checkGitFile, climbOf, gitFileOf } from '../src/git-files.ts'
import { text } from './open-home.ts'

const HAS_GIT = spawnSync('git', ['--version']).status === 0

const module = (...lines: string[]): string =>
  `[submodule "a"]\n\tpath = a\n${lines.map((line) => `\t${line}\n`).join('')}`

const SOUND = [
  '',
  module('url = https://example.org/a.git'),
  module('url = https://me:pw@example.org:8080/a.git?x#y'),
  module('url = ../sibling.git', 'update = rebase', 'branch = main'),
  module('url = ./-odd'),
  module('url = git@example.org:a/b.git', 'ignore = dirty'),
  module('url = ssh://example.org/%0a'),
  module('url = /srv/git/a', 'shallow'),
  '[submodule "a..b"]\n\turl = x\n',
  '[submodule "a/...b/c"]\n\tpath = c\n',
  '[core]\n\tpath = -x\n[submodule]\n\turl = -x\n[other "..\\\\x"]\n\turl = -y\n',
  '\u{feff}[submodule "a"]\r\n\turl = "a\\"b\\\\c" ; --x\r\n# [submodule ".."]\r\n',
  // what git can not read it does not act on
  '<<<<<<< HEAD\n[submodule ".."]\n\turl = -x\n',
  '[submodule "a"\n\turl = -x\n',
  '[submodule "a"]\n\turl = "-x\n',
  '[submodule "a"]\n\turl = a\\q\n\turl = -x\n',
]
const HARMFUL = [
  '[submodule ".."]\n\turl = x\n',
  '[submodule "a/../b"]\n\turl = x\n',
  '[submodule "a\\\\..\\\\b"]\n\turl = x\n',
  '[submodule "../../.git/hooks"]\n\tpath = x\n',
  '[submodule ""]\n\turl = x\n',
  '[SubModule "x"]\n\tURL = -u./payload\n',
  '[submodule.x]\n\turl = --upload-pack=touch\n',
  '[submodule "x"] url = "-"u',
  '[submodule "x"] url = \\\n   -u\n',
  module('url = --upload-pack=touch'),
  module('path = -x'),
  module('update = !touch here'),
  module('url = ./a%0ahost=evil'),
  module('url = git://evil/a%0Ahost=b'),
  module('url = ../../:evil/a'),
  module('url = .././/evil/a'),
  module('url = ..\\\\..\\\\/evil'),
  module('url = https:///evil'),
  module('url = https::evil'),
  module('url = http::https://'),
  module('url = ftps://user@/x'),
  module('url = https://evil%0a.example/x'),
  module('url = "https://a/\\nb"'),
  `${module('url = fine')}<<<<<<<\n`.replace('fine', '-x'),
]

const refuses = (kind: 'modules' | 'attributes', content: string): boolean => {
  try {
    checkGitFile(kind, text(content), `.git${kind}`)
    return false
  } catch (error) {
    expect(isNodeError(error, 'INVALID_INPUT')).toBe(true)
    return true
  }
}

/** What `git fsck --strict` calls an error, by number. */
async function judged(name: string, contents: readonly string[]): Promise<boolean[]> {
  const folder = await mkdtemp(join(tmpdir(), 'csb-modules-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const env = { PATH: process.env['PATH'], HOME: folder, GIT_CONFIG_NOSYSTEM: '1', LC_ALL: 'C.UTF-8' }
  const git = (args: readonly string[], input?: string) =>
    spawnSync('git', ['-C', folder, ...args], { env, input, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  execFileSync('git', ['init', '-q', '--bare', folder], { env })
  const files = contents.map(
    (content, at) => `M 100644 inline ${at}/${name}\ndata ${text(content).byteLength}\n${content}\n`,
  )
  const head = 'commit refs/heads/main\ncommitter A <a@b> 1700000000 +0000\ndata 2\nx\n'
  expect(git(['fast-import', '--quiet'], `${head}\n${files.join('')}\n`).stderr).toBe('')
  const told = git(['fsck', '--strict']).stderr
  const bad = new Set([...told.matchAll(/^error in blob ([0-9a-f]+): git/gm)].map(([, oid]) => oid))
  const listed = git(['ls-tree', '-r', 'main']).stdout.trim().split('\n')
  const oids = new Map(listed.map((line) => [Number(/\t(\d+)\//.exec(line)?.[1]), line.split(/[ \t]/)[2]] as const))
  return contents.map((_, at) => bad.has(oids.get(at)))
}

describe('.gitmodules', () => {
  test.each(SOUND)('taken: %j', (content) => {
    expect(refuses('modules', content)).toBe(false)
  })

  test.each(HARMFUL)('refused: %j', (content) => {
    expect(refuses('modules', content)).toBe(true)
  })

  test('git calls the same an error, and nothing else', async ({ skip }) => {
    skip(!HAS_GIT, 'git is not here')
    const all = [...SOUND, ...HARMFUL]
    // each is also cut short in the middle, and said twice
    const more = all.flatMap((content) => [content, content.slice(0, content.length * 0.7), `${content}\n${content}`])
    expect(more.map((content) => refuses('modules', content))).toEqual(await judged('.gitmodules', more))
  })

  test('a path with a control character is refused, though git takes it', () => {
    expect(refuses('modules', module('path = "a\\tb"'))).toBe(true)
    expect(refuses('modules', '[submodule "a"]\n\tpath = "a\r"\n')).toBe(true)
  })

  test('no file, or one that is too large', () => {
    expect(() => checkGitFile('modules', null, 'x/.gitmodules')).toThrow(
      expect.objectContaining({ code: 'INVALID_INPUT' }),
    )
    const large = new Uint8Array(LIMITS.gitFileBytes + 1)
    expect(() => checkGitFile('modules', large, '.gitmodules')).toThrow(expect.objectContaining({ code: 'TOO_LARGE' }))
  })
})

describe('.gitattributes', () => {
  const long = 'x'.repeat(2047)
  const cases = ['* text=auto\n', `${long}\n`, `a\n${long}x\nb\n`, `${long}x`, `a\0${long}x`, `${long}\r\n`]

  test('a line that git reads no more is refused', async ({ skip }) => {
    expect(cases.map((content) => refuses('attributes', content))).toEqual([false, false, true, true, false, true])
    skip(!HAS_GIT, 'git is not here')
    expect(cases.map((content) => refuses('attributes', content))).toEqual(await judged('.gitattributes', cases))
  })
})

test.each([
  ['.gitmodules', 'modules'],
  ['.GitModules', 'modules'],
  ['.gitmodules . ', 'modules'],
  ['.gitmodules::$INDEX_ALLOCATION', 'modules'],
  ['.git\u200cmodules', 'modules'],
  ['GITMOD~1', 'modules'],
  ['gi7eba~1', 'modules'],
  ['GI7EB~10', 'modules'],
  ['g~100000', 'modules'],
  ['~1000000', 'modules'],
  ['.gitattributes', 'attributes'],
  ['gitatt~4', 'attributes'],
  ['gi7d29~9', 'attributes'],
  ['.gitmodulesx', undefined],
  ['x.gitmodules', undefined],
  ['gitmodules', undefined],
  ['gitmod~5', undefined],
  ['gi7eba~10', undefined],
  ['.gitignore', undefined],
])('%j is git’s file of %s', (name, kind) => {
  expect(gitFileOf(name)).toBe(kind)
})

test.each([
  '.git/hooks',
  '.GIT',
  'git~1/hooks',
  '.git /hooks',
  '.g\u200cit/x',
  '.git::$INDEX_ALLOCATION',
  'a/../.git.',
])('a link into what some system takes for .git is refused: %j', (target) => {
  expect(() => climbOf(text(target), 'link')).toThrowError(expect.objectContaining({ code: 'INVALID_INPUT' }))
})

test.each(['.github/x', '.gitignore', 'git/x', 'a.git/b'])('a link to %j is one like others', (target) => {
  expect(climbOf(text(target), 'link')).toBe(0)
})
