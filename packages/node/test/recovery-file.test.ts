import { mkdir, mkdtemp, readFile, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { exportSeed, toBase64Url } from '@csb/core'
import { createRecoveryFile, openRecoveryFile, readRecoveryFile } from '../src/recovery-file.ts'

const PASSPHRASE = 'kept in a drawer'
const OWNER = { name: 'Ines', did: 'did:key:z6Mkines' }

async function drawer(): Promise<string> {
  const place = await mkdtemp(join(tmpdir(), 'csb-drawer-'))
  onTestFinished(() => rm(place, { recursive: true, force: true }))
  return place
}

describe('a file with a recovery key', () => {
  test('is for its owner alone, sealed, and opened with its passphrase only', async () => {
    const [directory, place] = [await drawer(), await drawer()]
    const file = join(place, 'recovery.json')
    const { key: made, digest } = await createRecoveryFile(file, { directory, owner: OWNER, passphrase: PASSPHRASE })
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    const text = await readFile(file, 'utf8')
    expect(text).not.toContain(made.did)
    expect(text).not.toContain(toBase64Url(exportSeed(made)))
    expect(await readRecoveryFile(file)).toEqual({ owner: OWNER, digest })
    expect((await openRecoveryFile(file, PASSPHRASE)).key.did).toBe(made.did)
    await expect(openRecoveryFile(file, 'another one')).rejects.toMatchObject({ code: 'PASSPHRASE' })
  })

  test('is never written over, nor into the data folder, whatever way leads there', async () => {
    const place = await drawer()
    const directory = join(place, 'data')
    await mkdir(join(directory, 'inner'), { recursive: true })
    await symlink(directory, join(place, 'elsewhere'))
    const make = (file: string) => createRecoveryFile(file, { directory, owner: OWNER, passphrase: PASSPHRASE })
    await writeFile(join(place, 'there'), 'mine')
    await symlink(join(directory, 'planted'), join(place, 'link'))
    await expect(make(join(place, 'there'))).rejects.toMatchObject({ code: 'ALREADY_HERE' })
    await expect(make(join(place, 'link'))).rejects.toMatchObject({ code: 'ALREADY_HERE' })
    for (const inside of ['data/r', 'data/inner/r', 'elsewhere/r', 'data/../data/r'])
      await expect(make(join(place, inside))).rejects.toMatchObject({ details: { reason: 'in_data_folder' } })
    await expect(make(join(place, 'none', 'r'))).rejects.toMatchObject({ details: { reason: 'no_such_folder' } })
    expect(await readFile(join(place, 'there'), 'utf8')).toBe('mine')
    expect(await readdir(directory)).toEqual(['inner'])
    // beside it, under a name that begins alike, is outside of it
    await make(join(place, 'data-recovery'))
  })

  test.each([
    ['is not there', undefined, 'NOT_FOUND'],
    ['is none', '{"v":1,"kind":"something else"}', 'MALFORMED'],
    ['is no JSON', 'recovery', 'MALFORMED'],
    ['is empty', '', 'MALFORMED'],
    ['is null', 'null', 'MALFORMED'],
  ])('that %s is named', async (_, text, code) => {
    const file = join(await drawer(), 'recovery.json')
    if (text !== undefined) await writeFile(file, text)
    await expect(openRecoveryFile(file, PASSPHRASE)).rejects.toMatchObject({ code })
  })

  test('whose digest was changed is none', async () => {
    const file = join(await drawer(), 'recovery.json')
    const init = { directory: await drawer(), owner: OWNER, passphrase: PASSPHRASE }
    await createRecoveryFile(file, init)
    const text = await readFile(file, 'utf8')
    await writeFile(file, text.replace(/sha256:[0-9a-f]{8}/, 'sha256:00000000'))
    await expect(openRecoveryFile(file, PASSPHRASE)).rejects.toMatchObject({ code: 'MALFORMED' })
  })
})
