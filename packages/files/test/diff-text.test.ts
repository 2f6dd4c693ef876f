import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { unifiedDiff } from '../src/diff-text.ts'
import { text } from './open-home.ts'

const lines = fc
  .array(fc.constantFrom('a\n', 'b\n', 'c\n', 'd\n', 'é\n'), { maxLength: 30 })
  .chain((own) => fc.boolean().map((isCut) => (isCut ? own.join('').replace(/\n$/, '') : own.join(''))))

test('a difference turns the old text into the new one, by the patch command of git', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'csb-diff-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await fc.assert(
    fc.asyncProperty(lines, lines, async (before, after) => {
      fc.pre(before !== '' && after !== '')
      const diff = unifiedDiff(text(before), text(after)) ?? ''
      if (before === after) {
        expect(diff).toBe('')
        return
      }
      await writeFile(join(folder, 'file'), before)
      await writeFile(join(folder, 'patch'), `--- a/file\n+++ b/file\n${diff}`)
      await promisify(execFile)('git', ['apply', 'patch'], { cwd: folder })
      const { stdout } = await promisify(execFile)('cat', ['file'], { cwd: folder })
      expect(stdout).toBe(after)
    }),
    { numRuns: 40 },
  )
})

test('a new file is all lines more, a deleted one all lines less, and no text has no lines', () => {
  expect(unifiedDiff(null, text('a\nb\n'))).toBe('@@ -0,0 +1,2 @@\n+a\n+b\n')
  expect(unifiedDiff(text('a\n'), null)).toBe('@@ -1,1 +0,0 @@\n-a\n')
  expect(unifiedDiff(text('\0'), text('a'))).toBeUndefined()
})
