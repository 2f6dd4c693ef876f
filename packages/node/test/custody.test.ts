import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { dropSecrets, newPassphraseOf, passphraseOf, recoveryPassphraseOf } from '../src/config.ts'

const PACKAGES = fileURLToPath(new URL('../../', import.meta.url))
const source = (file: string) => readFile(join(PACKAGES, 'node/src', file), 'utf8')

/** Files of this package that a file draws in, by whatever way. */
async function reachableFrom(file: string, found = new Set<string>()): Promise<ReadonlySet<string>> {
  if (found.has(file)) return found
  found.add(file)
  for (const [, next = ''] of (await source(file)).matchAll(/(?:from|import\()\s*'\.\/([\w-]+\.ts)'/g))
    await reachableFrom(next, found)
  return found
}

test('L1.7 what runs in the process of a node draws in nothing that opens a key of the owner or for recovery', async () => {
  const serving = await reachableFrom('serve.ts')
  expect(serving).toContain('create-node.ts')
  const opening = [
    'owner.ts',
    'recovery-file.ts',
    'rotate.ts',
    'recover.ts',
    'take-owner.ts',
    'init-node.ts',
    'authorise.ts',
  ]
  expect(opening.filter((file) => serving.has(file))).toEqual([])
  // and the way in which it was looked for finds them
  expect((await reachableFrom('rotate.ts')).has('owner.ts')).toBe(true)
})

test('a sealed seed is opened in two files of one package, and in no other', async () => {
  const opening: string[] = []
  for (const name of await readdir(PACKAGES))
    for (const file of await readdir(join(PACKAGES, name, 'src'), { recursive: true }))
      if (file.endsWith('.ts') && /\bopenSeed\(/.test(await readFile(join(PACKAGES, name, 'src', file), 'utf8')))
        opening.push(join(name, file))
  expect(opening.toSorted()).toEqual(['authority/custody.ts', 'node/owner.ts', 'node/recovery-file.ts'])
})

test('passphrases are taken out of the environment, and nothing else is', () => {
  const env: Record<string, string | undefined> = {
    PATH: '/bin',
    CSB_DATA: '/data',
    CSB_PASSPHRASE: 'a',
    CSB_NEW_PASSPHRASE: 'b',
    CSB_RECOVERY_PASSPHRASE: '',
  }
  expect(dropSecrets(env)).toEqual({ left: { PATH: '/bin', CSB_DATA: '/data' }, had: true })
  expect([passphraseOf(env), newPassphraseOf(env), recoveryPassphraseOf(env)]).toEqual([
    undefined,
    undefined,
    undefined,
  ])
  expect(dropSecrets(env)).toEqual({ left: { PATH: '/bin', CSB_DATA: '/data' }, had: false })
})
