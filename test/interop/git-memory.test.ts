/** A repository that is larger than the memory a node may take goes in and comes out again. */
import { fork, type ChildProcess } from 'node:child_process'
import { randomFillSync } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { HAS_GIT, SKIPPED, gitIn, makeGitFolder, newRepository } from './git-rig.ts'

const MiB = 1024 * 1024
/** What a node may take. The repository is larger, and no byte of it can be deflated. */
const LIMIT = 256 * MiB
const LARGE = [90 * MiB, 90 * MiB, 60 * MiB]
const SMALL = Array.from({ length: 12 }, () => 2 * MiB)
const EVERY_MS = 20
/** As a node is started: V8 by itself sets 48 MB aside for what is young and looks for garbage late. */
const FLAGS = ['--max-semi-space-size=1', '--heap-growing-percent=100']

/** Memory of a process that no file stands behind, and the most it was: looked at every 20 ms. */
function watchMemory({ pid }: ChildProcess): { peak: () => number; stop: () => void } {
  let peak = 0
  const look = async (): Promise<void> => {
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
    peak = Math.max(peak, Number(/RssAnon:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024)
  }
  const timer = setInterval(() => void look(), EVERY_MS)
  return { peak: () => peak, stop: () => clearInterval(timer) }
}

describe('memory', () => {
  test('L0.5 partial: a repository above the limit of memory is pushed and cloned within it', async ({ skip }) => {
    skip(!HAS_GIT, SKIPPED)
    skip(!existsSync('/proc/self/status'), 'this system does not tell')
    const made = await makeGitFolder('sha256')
    const script = fileURLToPath(new URL('../bench/git-node.ts', import.meta.url))
    const child = fork(script, [JSON.stringify(made)], { execArgv: [...FLAGS, '--conditions=csb-source'] })
    try {
      const [{ urls }] = (await once(child, 'message')) as [{ urls: readonly string[] }]
      const memory = watchMemory(child)
      const source = join(made.folder, 'source')
      const git = await newRepository(source, 'sha256')
      await git('config', 'core.compression', '0')
      await mkdir(join(source, 'docs'))
      const sizes = [...LARGE, ...SMALL]
      for (const [i, bytes] of sizes.entries())
        await writeFile(join(source, `docs/${i}.bin`), randomFillSync(Buffer.alloc(bytes)))
      await git('add', '-A')
      await git('commit', '-q', '-m', 'much')
      expect(sizes.reduce((sum, bytes) => sum + bytes)).toBeGreaterThan(LIMIT)
      await git('push', '-q', urls[0] ?? '', 'HEAD:runs/much')
      const pushed = memory.peak()
      const clone = join(made.folder, 'clone')
      await gitIn(made.folder)('-c', 'core.compression=0', 'clone', '-q', '--branch', 'runs/much', urls[0] ?? '', clone)
      expect(await gitIn(clone)('rev-parse', 'HEAD^{tree}')).toBe(await git('rev-parse', 'HEAD^{tree}'))
      expect(await gitIn(clone)('status', '--porcelain')).toBe('')
      memory.stop()
      expect(pushed).toBeGreaterThan(0)
      expect(memory.peak()).toBeLessThan(LIMIT)
    } finally {
      child.disconnect()
      await once(child, 'exit')
      await rm(made.folder, { recursive: true, force: true })
    }
  })
})
