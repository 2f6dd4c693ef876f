import { readdir, rm, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { validate, type Identity } from '@csb/core'
import { openStore } from '@csb/store'
import { getRef, listHomes } from '@csb/files'
import { pathOf, readJson, readText, writeJson, writeText } from '../src/data-folder.ts'
import { openOwner, readOwner, sealOwner } from '../src/owner.ts'
import { createFolder, made } from './folder.ts'

const identityIn = async (directory: string) => validate('Identity', await readJson(directory, 'identity'))

describe('a new node', () => {
  test('has an identity, a key of its own, a token, and a home with a protected main', async () => {
    const directory = await createFolder()
    const { identity, token } = await made(directory, { ownerName: 'Ines' })
    expect(await identityIn(directory)).toEqual(identity)
    expect(identity).toMatchObject({ name: 'alder', owner: { name: 'Ines' }, delegations: [] })
    expect(identity.did).not.toBe(identity.owner.did)
    expect((await readText(directory, 'token'))?.trim()).toBe(token)
    const store = await openStore(pathOf(directory, 'database'))
    try {
      expect((await listHomes(store.view())).map(({ id }) => id)).toEqual([identity.home])
      expect(getRef(store.view(), identity.home ?? '', 'main')).toMatchObject({ protected: true })
    } finally {
      await store.close()
    }
    expect((await readdir(directory)).sort()).toEqual([
      'config.json',
      'db',
      'identity.json',
      'node.key',
      'owner.json',
      'owner.token',
    ])
  })

  test('can do without a home', async () => {
    expect((await made(await createFolder(), { withHome: false })).identity.home).toBeNull()
  })

  test('keeps a configuration that was there before it', async () => {
    const directory = await createFolder()
    await made(directory)
    await writeJson(directory, 'config', { http: { port: 8080 } })
    for (const name of ['identity', 'nodeKey', 'owner'] as const) await rm(pathOf(directory, name))
    await made(directory)
    expect(await readJson(directory, 'config')).toEqual({ http: { port: 8080 } })
  })

  test('refuses a name that is none, and can be made with a better one', async () => {
    const directory = await createFolder()
    await expect(made(directory, { name: '' })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await expect(made(directory, { name: 'x'.repeat(129) })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    expect((await made(directory)).identity.name).toBe('alder')
  })
})

describe('a folder that is not empty', () => {
  test('a second init is refused and changes nothing', async () => {
    const directory = await createFolder()
    const { identity } = await made(directory)
    await expect(made(directory)).rejects.toMatchObject({ code: 'ALREADY_INITIALISED', details: { directory } })
    expect(await identityIn(directory)).toEqual(identity)
  })

  test('an attempt that was broken off is begun anew', async () => {
    const directory = await createFolder()
    await made(directory)
    // as a crash just before the end leaves it
    await rm(pathOf(directory, 'identity'))
    await writeText(directory, 'unfinished', '')
    await made(directory)
    expect(await readText(directory, 'unfinished')).toBeUndefined()
  })

  test('a node that lost its identity.json is not overwritten', async () => {
    const directory = await createFolder()
    await made(directory)
    const owner = await readText(directory, 'owner')
    await rm(pathOf(directory, 'identity'))
    await expect(made(directory)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      details: { file: 'identity.json', reason: 'missing' },
    })
    expect(await readText(directory, 'owner')).toBe(owner)
  })
})

describe('joining', () => {
  test('gives the same owner and the same home, and a key of its own', async () => {
    const [first, second] = [await createFolder(), await createFolder()]
    const { identity: one } = await made(first, { ownerName: 'Ines' })
    const { identity: two } = await made(second, { name: 'birch', join: { directory: first } })
    expect(two).toMatchObject({ owner: one.owner, home: one.home })
    expect(two.did).not.toBe(one.did)
    expect((await openOwner(second, undefined)).did).toBe(one.owner.did)
  })

  test('needs the passphrase of a sealed owner', async () => {
    const [first, second] = [await createFolder(), await createFolder()]
    await made(first, { custody: { passphrase: 'correct horse' } })
    await expect(made(second, { join: { directory: first } })).rejects.toMatchObject({ code: 'PASSPHRASE' })
    await expect(made(second, { join: { directory: first, passphrase: 'wrong' } })).rejects.toMatchObject({
      code: 'PASSPHRASE',
    })
    const { identity } = await made(second, { join: { directory: first, passphrase: 'correct horse' } })
    expect(identity.owner.did).toBe((await readOwner(first)).did)
  })

  test('needs a node to join', async () => {
    await expect(made(await createFolder(), { join: { directory: await createFolder() } })).rejects.toMatchObject({
      code: 'NOT_INITIALISED',
    })
  })
})

describe("the owner's key", () => {
  test('sealed with a passphrase it opens with that one alone, and lies nowhere in the open', async () => {
    const directory = await createFolder()
    const { identity } = await made(directory, { custody: { passphrase: 'correct horse' } })
    expect(await readOwner(directory)).toMatchObject({ isSealed: true, did: identity.owner.did })
    expect((await openOwner(directory, 'correct horse')).did).toBe(identity.owner.did)
    await expect(openOwner(directory, 'battery staple')).rejects.toMatchObject({ code: 'PASSPHRASE' })
    await expect(openOwner(directory, undefined)).rejects.toMatchObject({ code: 'PASSPHRASE' })
    expect(Object.keys((await readJson(directory, 'owner')) as object)).not.toContain('seed')
  })

  test('left open it can be sealed later, once', async () => {
    const directory = await createFolder()
    const { identity } = await made(directory)
    const { seed } = (await readJson(directory, 'owner')) as { seed: string }
    await sealOwner(directory, 'correct horse')
    expect((await openOwner(directory, 'correct horse')).did).toBe(identity.owner.did)
    expect(await readText(directory, 'owner')).not.toContain(seed)
    await expect(sealOwner(directory, 'again')).rejects.toMatchObject({ code: 'PASSPHRASE' })
  })

  test('a file that was changed is refused', async () => {
    const directory = await createFolder()
    await made(directory)
    const other = await createFolder()
    const { identity } = await made(other)
    const owner = (await readJson(directory, 'owner')) as object
    await writeJson(directory, 'owner', { ...owner, did: identity.owner.did })
    await expect(openOwner(directory, undefined)).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    await writeFile(pathOf(directory, 'owner'), '[]')
    await expect(readOwner(directory)).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  })
})

test('what is made fits the schema of an identity', async () => {
  const identity: Identity = (await made(await createFolder())).identity
  expect(identity.memory_level_map).toEqual({ hot: 'hot', warm: 'warm', cold: 'cold' })
})
