/** Repositories made the same way each time, by `git fast-import`, and packed as git packs them. */
import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'

export type Recipe = {
  readonly files: number
  readonly commits: number
  readonly perCommit: number
  readonly folders: number
}

const WORDS = 'tea cup hill river lamp stone paper letter garden winter bridge night summer cloud train window'.split(
  ' ',
)
const ENVIRONMENT = { PATH: process.env['PATH'], HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1' }

/**
 * Make a bare repository.
 * @returns number of objects in it
 */
export function makeRepository(folder: string, recipe: Recipe): number {
  mkdirSync(folder, { recursive: true })
  const git = (args: readonly string[], input = ''): string =>
    execFileSync('git', ['-C', folder, ...args], { input, env: ENVIRONMENT, encoding: 'utf8', maxBuffer: 2 ** 28 })
  git(['init', '-q', '--bare', '-b', 'main', '--object-format=sha256', '.'])
  git(['fast-import', '--quiet'], importOf(recipe))
  git(['gc', '-q'])
  git(['config', 'http.receivepack', 'true'])
  return Number(/in-pack: (\d+)/.exec(git(['count-objects', '-v']))?.[1] ?? 0)
}

/** A bare repository with nothing in it that can be pushed to. */
export function makeEmpty(folder: string): void {
  mkdirSync(folder, { recursive: true })
  const git = (...args: string[]) => execFileSync('git', ['-C', folder, ...args], { env: ENVIRONMENT })
  git('init', '-q', '--bare', '-b', 'main', '--object-format=sha256', '.')
  git('config', 'http.receivepack', 'true')
}

function importOf({ files, commits, perCommit, folders }: Recipe): string {
  const next = numbers(20_260_101)
  const textOf = (name: string, lines: number) =>
    Array.from(
      { length: lines },
      () => `${name} ${Array.from({ length: 8 }, () => WORDS[next() % WORDS.length]).join(' ')}`,
    ).join('\n')
  const texts = new Map<string, string>()
  const out: string[] = []
  for (let commit = 0; commit < commits; commit++) {
    const message = `commit ${commit}`
    out.push(
      'commit refs/heads/main',
      `committer A <a@b> ${1_700_000_000 + commit * 60} +0000`,
      `data ${message.length}`,
      message,
    )
    const changed =
      commit === 0
        ? Array.from({ length: files }, (_, i) => i)
        : Array.from({ length: perCommit }, () => next() % files)
    for (const file of new Set(changed)) {
      const path = `folder-${file % folders}/file-${file}.md`
      const text = `${texts.get(path) ?? textOf(path, 20)}\n${textOf(`line ${commit}`, 1)}`
      texts.set(path, text)
      out.push(`M 100644 inline ${path}`, `data ${text.length}`, text)
    }
  }
  return `${out.join('\n')}\n`
}

/** Whole numbers that are the same each time. */
function numbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state >>> 8
  }
}
