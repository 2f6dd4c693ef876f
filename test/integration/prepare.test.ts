/** What runs before `npm start` on a fresh checkout, with an npm that only takes its time. */
import { spawnSync } from 'node:child_process'
import { chmod, copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ROOT } from '../structure/house.ts'

async function prepare(npm: string) {
  const folder = await mkdtemp(join(tmpdir(), 'csb-prepare-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await mkdir(join(folder, '.dev'))
  await mkdir(join(folder, 'bin'))
  await copyFile(join(ROOT, '.dev/prepare.mjs'), join(folder, '.dev/prepare.mjs'))
  await writeFile(join(folder, 'package-lock.json'), '{"packages":{}}')
  await writeFile(join(folder, 'bin/npm'), `#!/bin/sh\n${npm}\n`)
  await chmod(join(folder, 'bin/npm'), 0o755)
  return spawnSync(process.execPath, [join(folder, '.dev/prepare.mjs')], {
    encoding: 'utf8',
    env: { PATH: [join(folder, 'bin'), process.env['PATH'] ?? ''].join(delimiter), npm_lifecycle_event: 'prestart' },
  })
}

test('a long install says every few seconds that it goes on', async () => {
  const { status, stdout, stderr } = await prepare('sleep 4')
  expect({ status, stdout }).toEqual({ status: 0, stdout: '' })
  expect(stderr).toMatch(/^csb: installing what package-lock\.json names[^\n]+\n(?:csb: installing, \d+ s\n)+$/)
})

test('an install that failed says what to do', async () => {
  const { status, stderr } = await prepare('exit 1')
  expect(status).toBe(1)
  expect(stderr).toContain('csb: the install failed. Run npm ci to see why.')
})
