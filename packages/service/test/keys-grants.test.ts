/** Which grant the node itself acts by: whoever may bring documents of the owner chooses none of them. */
import { expect, test } from 'vitest'
import { createKeyPair, type KeyPair } from '@csb/core'
import {
  draftGrant,
  grantHash,
  recoveryDigest,
  revoke,
  signGrant,
  signKeyChange,
  signRecovery,
  signRevocation,
} from '@csb/authority'
import { key } from '@csb/store'
import { HOUR, NOW, createHouse, holdingIn, type House } from './house.ts'

const statementOf = ({ owner }: House) =>
  signRecovery({ digest: recoveryDigest(createKeyPair(new Uint8Array(32).fill(9)).did) }, owner)
const standing = ({ store }: House) => store.view().getJson<string>(key('meta', 'node-grant'))
const ruling = (house: House) =>
  holdingIn(house, {
    actions: ['list', 'read', 'write', 'exec'],
    paths: ['/'],
    branches: ['*'],
    capabilities: ['B', 'C'],
  })

/** The node may list one folder: what its owner once made out to it. */
const narrow = (house: House, by: KeyPair = house.owner, now = NOW - HOUR) =>
  signGrant(
    draftGrant({
      type: 'scoped',
      from: { name: 'owner', did: by.did },
      to: { name: house.name, did: house.key.did },
      audience: [house.key.did],
      scope: ['lease'],
      level: 'request',
      now,
      ttlMs: 5 * HOUR,
      statusKey: house.key.did,
      lease: {
        type: 'urn:csb:lease:1',
        locations: [`nas://${house.key.peerId}/${house.home}`],
        actions: ['list'],
        paths: ['/x'],
      },
    }),
    by,
  )

test.each(['keys.state', 'authority.accept'])(
  'L1.3 an older grant to the node that a session brings by %s takes the place of none that holds',
  async (operation) => {
    const house = await createHouse()
    const statement = statementOf(house)
    await house.owned('keys.state', { statement })
    const before = standing(house)
    const older = narrow(house)
    const input = operation === 'keys.state' ? { statement, grants: [{ grant: older }] } : { grant: older }
    await house.service.perform(await ruling(house), operation, input)
    expect(standing(house)).toBe(before)
  },
)

test('L1.3 where the one that stands was revoked the next one of the owner takes its place', async () => {
  const house = await createHouse()
  const before = standing(house) ?? ''
  await house.store.transact((tx) => revoke(tx, signRevocation({ target: before, now: NOW }, house.owner), NOW))
  const statement = statementOf(house)
  const grant = narrow(house)
  await house.owned('keys.state', { statement, grants: [{ grant }] })
  expect(standing(house)).toBe(grantHash(grant))
})

test('L1.3 with a change of the key its grant takes the place of the one before, which holds; and no older one again', async () => {
  const house = await createHouse()
  const next = createKeyPair()
  const statement = signKeyChange({ old: house.owner, next, seq: 1, effectiveAt: NOW + 1 })
  const grant = narrow(house, next, NOW)
  await house.owned('keys.state', { statement, grants: [{ grant }] })
  expect(standing(house)).toBe(grantHash(grant))
  const byOld = house.owned('keys.state', { statement, grants: [{ grant: narrow(house) }] })
  await expect(byOld).rejects.toMatchObject({ code: 'GRANT_INVALID', details: { reason: 'untrusted_root' } })
  await house.owned('keys.state', { statement, grants: [{ grant: narrow(house, next, NOW - 1) }] })
  expect(standing(house)).toBe(grantHash(grant))
})
