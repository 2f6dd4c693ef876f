/** What is said of the owner's key to a node that is stopped: the rules are those of the one that runs. */
import { expect, test } from 'vitest'
import { createKeyPair, systemClock, type KeyPair } from '@csb/core'
import {
  draftGrant,
  grantHash,
  hasGrant,
  recoveryDigest,
  signGrant,
  signRecovery,
  type GrantInit,
} from '@csb/authority'
import { key, openStore, type View } from '@csb/store'
import { identityIn } from '../src/authorise.ts'
import { pathOf } from '../src/data-folder.ts'
import { throughKeyDoor } from '../src/key-door.ts'
import { openOwner } from '../src/owner.ts'
import { createFolder, made } from './folder.ts'

const HOUR = 3_600_000

async function stopped() {
  const directory = await createFolder()
  const { identity } = await made(directory, { ownerName: 'Ines' })
  const [owner, node] = [await openOwner(directory, undefined), await identityIn(directory)]
  const narrow = (by: KeyPair, extra: Partial<GrantInit> = {}) =>
    signGrant(
      draftGrant({
        type: 'scoped',
        from: { name: 'Ines', did: by.did },
        to: { name: 'alder', did: node.did },
        audience: [node.did],
        scope: ['lease'],
        level: 'request',
        now: systemClock.now() - HOUR,
        ttlMs: 5 * HOUR,
        statusKey: node.did,
        lease: { type: 'urn:csb:lease:1', locations: [`nas://*/${identity.home}`], actions: ['list'], paths: ['/x'] },
        ...extra,
      }),
      by,
    )
  const statement = signRecovery({ digest: recoveryDigest(createKeyPair().did) }, owner)
  const looked = async <T>(look: (view: View) => T): Promise<T> => {
    const store = await openStore(pathOf(directory, 'database'))
    try {
      return look(store.view())
    } finally {
      await store.close()
    }
  }
  const standing = () => looked((view) => view.getJson<string>(key('meta', 'node-grant')))
  const state = (grant: ReturnType<typeof narrow>) =>
    throughKeyDoor(directory, (door) => door.state({ statement, grants: [{ grant }] }))
  return { owner, narrow, looked, standing, state }
}

test('L1.3 an older grant to a node that is stopped takes the place of none that holds', async () => {
  const { owner, narrow, standing, state } = await stopped()
  const before = await standing()
  await state(narrow(owner))
  expect(await standing()).toBe(before)
})

test.each([
  ['that is over', { ttlMs: HOUR / 2 }, 'expired'],
  ['for another node', { audience: [createKeyPair().did] }, 'wrong_audience'],
])('L1.3 a grant %s is kept by no node that is stopped', async (_, extra, reason) => {
  const { owner, narrow, looked, standing, state } = await stopped()
  const before = await standing()
  const grant = narrow(owner, extra)
  await expect(state(grant)).rejects.toMatchObject({ code: 'GRANT_INVALID', details: { reason } })
  expect(await standing()).toBe(before)
  expect(await looked((view) => hasGrant(view, grantHash(grant)))).toBe(false)
})

test('L1.3 a grant of somebody else is kept by no node that is stopped', async () => {
  const { narrow, state } = await stopped()
  await expect(state(narrow(createKeyPair()))).rejects.toMatchObject({ code: 'GRANT_INVALID' })
})
