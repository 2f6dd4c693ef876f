import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { ROOT } from './house.ts'

test('the generated types and validators are those of the schemas', async () => {
  const args = ['--conditions=csb-source', 'schemas/generate.ts', '--check']
  const { stderr } = await promisify(execFile)(process.execPath, args, { cwd: ROOT })
  expect(stderr).toBe('')
})
