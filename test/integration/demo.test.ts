import { execFile } from 'node:child_process'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { ROOT } from '../structure/house.ts'

const MAIN = ['--conditions=csb-source', 'apps/harness/src/main.ts']
/** One row for each thing that the main job claims. */
const ROWS = 19

const folder = await mkdtemp(join(tmpdir(), 'csb-demo-'))
afterAll(() => rm(folder, { recursive: true, force: true }))

type Ran = { readonly code: number; readonly out: string }

/** With a folder of its own for temporary files, to see what is left there. */
async function harness(...args: readonly string[]): Promise<Ran> {
  const options = { cwd: ROOT, env: { ...process.env, TMPDIR: folder } }
  return promisify(execFile)(process.execPath, [...MAIN, ...args], options).then(
    ({ stdout }) => ({ code: 0, out: stdout }),
    ({ code, stdout }: { code: number; stdout: string }) => ({ code, out: stdout }),
  )
}

const rowsOf = (out: string) => out.split('\n').filter((line) => /^(?:yes|NO ) {2}/.test(line))

test('the main job is told and every row of its table is proved, and nothing stays behind', async () => {
  const { code, out } = await harness('demo')
  expect(
    rowsOf(out).filter((row) => !row.startsWith('yes')),
    out,
  ).toEqual([])
  expect({ code, rows: rowsOf(out).length }).toEqual({ code: 0, rows: ROWS })
  expect(await readdir(folder)).toEqual([])
})

test('what fails is a row that is not proved, ends with 1, and leaves nothing behind either', async () => {
  const { code, out } = await harness('demo', '--vault', join(folder, 'nowhere'))
  expect(code).toBe(1)
  expect(rowsOf(out).at(-1)).toMatch(/^NO {3}the scenario came to its end +NOT_FOUND/)
  expect(await readdir(folder)).toEqual([])
})

test('scenarios are listed; one that there is not is bad input', async () => {
  const { code, out } = await harness('list')
  expect(code).toBe(0)
  for (const name of ['demo', 'partition', 'power-cut', 'crowd', 'stranger'])
    expect(out).toMatch(new RegExp(`^${name} `, 'm'))
  expect((await harness('run', 'nothing')).code).toBe(2)
})
