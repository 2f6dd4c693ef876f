import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { until } from '@csb/core'
import { pathOf, readJson, readText, writeJson, writeText } from '../src/data-folder.ts'
import { createFolder, made } from './folder.ts'

const WRITER = fileURLToPath(new URL('writer.ts', import.meta.url))

const modeOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o777).toString(8)

describe('modes', () => {
  test('the folder is open to its owner only, and so is every secret in it', async () => {
    const directory = await createFolder()
    await made(directory)
    expect(await modeOf(directory)).toBe('700')
    expect(await modeOf(pathOf(directory, 'database'))).toBe('700')
    for (const name of ['nodeKey', 'owner', 'token'] as const) expect(await modeOf(pathOf(directory, name))).toBe('600')
  })

  test('a file that a crash left behind does not lend its mode to a secret', async () => {
    const directory = await createFolder()
    await mkdir(directory)
    await writeFile(`${pathOf(directory, 'token')}.new`, 'half', { mode: 0o666 })
    await writeText(directory, 'token', 'whole')
    expect(await modeOf(pathOf(directory, 'token'))).toBe('600')
  })
})

describe('writing', () => {
  test('leaves the whole text and nothing beside it', async () => {
    const directory = await createFolder()
    await mkdir(directory)
    await writeJson(directory, 'running', { url: 'x', pid: 1 })
    await writeJson(directory, 'running', { url: 'y', pid: 2 })
    expect(await readJson(directory, 'running')).toEqual({ url: 'y', pid: 2 })
    expect(await readdir(directory)).toEqual(['running.json'])
  })

  test('a process killed in the middle of writing leaves the old text or the new one, never half of it', async () => {
    const directory = await createFolder()
    await mkdir(directory)
    for (let round = 0; round < 3; round++) {
      await writeText(directory, 'config', 'old')
      const writer = spawn(process.execPath, ['--conditions=csb-source', WRITER, directory], { stdio: 'inherit' })
      const ended = once(writer, 'exit')
      await until(async () => (await readText(directory, 'config')) !== 'old', 30_000, 'it writes')
      writer.kill('SIGKILL')
      await ended
      expect(await readText(directory, 'config')).toMatch(/^(\d)\1{199999}$/)
    }
  })

  test('a folder that can not be written to is told as a fault, and the old text stands', async () => {
    const directory = await createFolder()
    await mkdir(directory)
    await writeText(directory, 'config', 'old')
    await mkdir(`${pathOf(directory, 'config')}.new`)
    await expect(writeText(directory, 'config', 'new')).rejects.toMatchObject({ code: 'INTERNAL' })
    expect(await readText(directory, 'config')).toBe('old')
  })
})

describe('reading', () => {
  test('tells what is missing from what is broken', async () => {
    const directory = await createFolder()
    expect(await readText(directory, 'config')).toBeUndefined()
    await expect(readJson(directory, 'config')).rejects.toMatchObject({
      code: 'NOT_INITIALISED',
      details: { directory },
    })
    await mkdir(directory)
    await writeFile(join(directory, 'config.json'), Buffer.from([0x7b, 0xff, 0x7d]))
    await expect(readJson(directory, 'config')).rejects.toMatchObject({ code: expect.any(String) as string })
    await writeText(directory, 'config', '{"a":1,}')
    await expect(readJson(directory, 'config')).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  })
})
