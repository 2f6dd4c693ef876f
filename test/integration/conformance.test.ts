import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { validate } from '@csb/core'
import { readClauses } from '../../protocols/clauses.ts'
import { createNodes } from '../conformance/nodes.ts'
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
  })
})

describe('the conformance run on a node that is up', () => {
  test('says first what it writes there, and declares nothing of what it did not ask', async () => {
    const nodes = createNodes()
    onTestFinished(() => nodes.close())
    const { directory } = await nodes.spawn({ name: 'target' })
    const { url } = JSON.parse(await readFile(join(directory, 'running.json'), 'utf8')) as { url: string }
    const out = join(folder, 'target.json')
    const target = ['--target', url, '--token', join(directory, 'owner.token')]
    const { code, output } = await run(...target, '--only', 'L0.2,L4', '--out', out)
    expect(code, output).toBe(0)
    expect(output).toMatch(/^This run writes into the node at the target: a note, run branches and a snapshot\./)
    expect(output).toMatch(/^not asked +L4\.1 /m)
    expect(output).toMatch(/ planned, \d+ not asked\n$/)
    const report = validate('Conformance', JSON.parse(await readFile(out, 'utf8')) as unknown)
    expect(report.tests['L0.2']).toBe('pass')
    expect(Object.keys(report.tests)).not.toContain('L4.1')
    expect(Object.keys(report.tests)).not.toContain('L1.1')
  })
})
