import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { validate } from '@csb/core'
import { readClauses } from '../../protocols/clauses.ts'
import { levelOf } from '../conformance/report.ts'
import { ROOT } from '../structure/house.ts'

const folder = await mkdtemp(join(tmpdir(), 'csb-declaration-'))
afterAll(() => rm(folder, { recursive: true, force: true }))

type Ran = { readonly code: number; readonly output: string }

async function run(...args: readonly string[]): Promise<Ran> {
  const command = ['--conditions=csb-source', 'test/conformance/run.ts', ...args]
  return promisify(execFile)(process.execPath, command, { cwd: ROOT }).then(
    ({ stdout }) => ({ code: 0, output: stdout }),
    (error: { code: number; stdout: string; stderr: string }) => ({
      code: error.code,
      output: `${error.stdout}${error.stderr}`,
    }),
  )
}

describe('the conformance run on fresh nodes', () => {
  test('fails nothing, and writes a declaration that fits its schema and claims what it shows', async () => {
    const out = join(folder, 'conformance.json')
    const { code, output } = await run('--out', out)
    expect({ code, failed: output.split('\n').filter((line) => line.startsWith('fail')) }, output).toEqual({
      code: 0,
      failed: [],
    })
    const report = validate('Conformance', JSON.parse(await readFile(out, 'utf8')) as unknown)
    const clauses = await readClauses()
    expect(report.level).toBe(levelOf(clauses, report.tests))
    const claimed = clauses.filter(({ level, state }) => level !== undefined && state === 'done').map(({ id }) => id)
    expect(claimed.filter((id) => report.tests[id] !== 'pass')).toEqual([])
  }, 180_000)
})
