/** Files that come as base64, up to what one request may hold. */
import { expect, test } from 'vitest'
import { codeOf, createHouse } from './house.ts'

test('L0.1 a file of six million bytes comes in one request, and what is not whole is refused', async () => {
  const house = await createHouse()
  const bytes = Buffer.alloc(6_000_000, 0xa7)
  const at = { branch: 'runs/big', path: 'k.bin' }
  await house.owned('files.write', { ...at, base64: bytes.toString('base64') })
  const { base64: kept } = await house.owned<{ base64: string }>('files.read', at)
  expect(Buffer.from(kept, 'base64').equals(bytes)).toBe(true)
  const before = await house.dump()
  for (const base64 of ['A', 'AA=', 'AB==', 'A===', '=', 'A!=='])
    expect(await codeOf(house.owned('files.write', { ...at, path: 'x.bin', base64 })), base64).toBe('INVALID_INPUT')
  expect(await house.dump()).toEqual(before)
})
