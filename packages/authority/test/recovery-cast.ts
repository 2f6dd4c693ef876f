/** Keys of an owner, of a thief and for recovery, what they say, and a store that trusts the owner. */
import { expect } from 'vitest'
import { createKeyPair, type Grant, type KeyPair, type KeyStatement } from '@csb/core'
import { type Store } from '@csb/store'
import {
  draftGrant,
  recoveryDigest,
  signGrant,
  signKeyChange,
  signRecovered,
  signRecovery,
  takeKeyStatement,
  trust,
} from '@csb/authority'
import { HOUR, NOW, agent, node, owner, party, testStore, wideLease } from './cast.ts'

const seeded = (byte: number) => createKeyPair(new Uint8Array(32).fill(byte))
export const [recovery, recovery2, next, second, thief, thief2, other] = [50, 51, 52, 53, 54, 55, 56].map(seeded) as [
  KeyPair,
  KeyPair,
  KeyPair,
  KeyPair,
  KeyPair,
  KeyPair,
  KeyPair,
]
export const STOLEN = NOW + HOUR / 4
export const BACK = NOW + HOUR / 2
export const LATER = NOW + HOUR

export const named = (by: KeyPair = owner, key = recovery, replaced?: KeyPair) =>
  signRecovery({ digest: recoveryDigest(key.did), ...(replaced === undefined ? {} : { replaced }) }, by)
export const recovered = (to = next, old = owner, by = recovery, effectiveAt = BACK) =>
  signRecovered({ old: old.did, next: to, seq: 1, effectiveAt }, by)
export const change = (old: KeyPair, to: KeyPair, effectiveAt = STOLEN) =>
  signKeyChange({ old, next: to, seq: 1, effectiveAt })
export const take = (store: Store, statement: unknown, now = LATER) =>
  store.transact((tx) => takeKeyStatement(tx, statement, now))

export async function trusting(...statements: readonly KeyStatement[]): Promise<Store> {
  const store = await testStore()
  await store.transact((tx) => trust(tx, { did: owner.did, name: 'Ada', ceiling: 'execute' }))
  for (const statement of statements) await take(store, statement)
  return store
}

export const granted = (by: KeyPair, at: number): Grant =>
  signGrant(
    draftGrant({
      type: 'scoped',
      from: party('Ada', by),
      to: party('clerk', agent),
      audience: [node.did],
      scope: ['notes'],
      level: 'execute',
      ttlMs: 10 * HOUR,
      now: at,
      lease: wideLease(),
    }),
    by,
  )

/** Every row there is: nothing was written where it is the same. */
export async function rowsOf(store: Store): Promise<readonly string[]> {
  const rows: string[] = []
  for await (const [at, value] of store.view().range({ prefix: '' }))
    rows.push(`${at}=${Buffer.from(value).toString('base64')}`)
  return rows
}

/** It is refused like that, and nothing is written. */
export async function refused(store: Store, statement: unknown, like: object, now = LATER): Promise<void> {
  const before = await rowsOf(store)
  await expect(take(store, statement, now)).rejects.toMatchObject(like)
  expect(await rowsOf(store)).toEqual(before)
}
