import { expect, test } from 'vitest'
import { random, toHex } from '@csb/core'
import { openSeed, sealSeed } from '@csb/authority'

test('a sealed seed opens with its passphrase, in either spelling, and with no other', async () => {
  const seed = random(32)
  const sealed = await sealSeed(seed, 'corre\u0301ct horse')
  expect(JSON.stringify(sealed)).not.toContain(toHex(seed))
  expect(toHex(await openSeed(structuredClone(sealed), 'corr\u00e9ct horse'))).toBe(toHex(seed))
  await expect(openSeed(sealed, 'correct horse')).rejects.toMatchObject({ code: 'PASSPHRASE' })
  await expect(openSeed(sealed, '')).rejects.toMatchObject({ code: 'PASSPHRASE' })
})

test('a changed byte is found, and equal seeds under one passphrase look different', async () => {
  const seed = new Uint8Array(32)
  const [one, other] = [await sealSeed(seed, 'x'), await sealSeed(seed, 'x')]
  expect(one.sealed).not.toBe(other.sealed)
  const changed = { ...one, sealed: one.sealed.startsWith('A') ? `B${one.sealed.slice(1)}` : `A${one.sealed.slice(1)}` }
  await expect(openSeed(changed, 'x')).rejects.toMatchObject({ code: 'PASSPHRASE' })
  await expect(openSeed({ ...one, nonce: other.nonce }, 'x')).rejects.toMatchObject({ code: 'PASSPHRASE' })
})

test('a document that is none, or asks for too little or too much work, is refused before any work', async () => {
  const before = process.cpuUsage()
  const sealed = await sealSeed(new Uint8Array(32), 'x')
  const begin = process.cpuUsage()
  const work = process.cpuUsage(before)
  for (const value of [
    null,
    'x',
    {},
    { ...sealed, n: 2 ** 30 },
    { ...sealed, n: 2 },
    { ...sealed, r: 1024 },
    { ...sealed, salt: '' },
    { ...sealed, more: 1 },
  ]) {
    await expect(openSeed(value, 'x')).rejects.toMatchObject({ code: 'MALFORMED' })
  }
  // all of them together cost less than one that is worked on
  const cost = process.cpuUsage(begin)
  expect(cost.user + cost.system).toBeLessThan(work.user + work.system)
})

test('no passphrase is no custody', async () => {
  await expect(sealSeed(new Uint8Array(32), '')).rejects.toMatchObject({ code: 'PASSPHRASE' })
})
