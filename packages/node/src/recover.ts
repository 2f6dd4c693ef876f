/**
 * The way back without the owner's key: lost with its passphrase, or changed by somebody who stole it. A recovery key, named
 * to the node and its peers in advance by its digest, lets a new key follow; the node may run or be stopped. Like any change
 * of the key it is kept beside the old one first, told in one batch, and followed by the files last.
 * @clause L1.3
 */
import { createKeyPair, fail, isNodeError, systemClock, type KeyPair } from '@csb/core'
import { inOrder, recoveryDigest, signCompromise, signRecovered, signRecovery, stepOf } from '@csb/authority'
import { identityIn, type Desk } from './authorise.ts'
import { doorOfNode, throughKeyDoor, type Heard, type KeyDoor } from './key-door.ts'
import { forgetNext, keepNext, noteStatement, readOwner, type Custody } from './owner.ts'
import { countOf, grantsBy, lineOf, settleBy, undeclare, type Rotated } from './rotate.ts'

/**
 * Name the recovery key to the node, and by it to the peers and the other nodes of the owner. Said again it changes nothing.
 * @param digest of the recovery key
 * @param replaced the one before, where there is one
 * @throws CONFLICT where another one stands and is not the one that is replaced
 */
export async function nameRecovery(desk: Desk, digest: string, replaced?: KeyPair): Promise<Omit<Heard, 'ended'>> {
  const { directory, client, owner } = desk
  const statement = signRecovery({ digest, ...(replaced === undefined ? {} : { replaced }) }, owner)
  const { reached, unreached } = await doorOfNode(client, await identityIn(directory)).state({ statement })
  await noteStatement(directory, statement)
  return { reached, unreached }
}

export type Recovering = {
  readonly directory: string
  /** open */
  readonly recovery: KeyPair
  /** how the new key is kept */
  readonly custody: Custody
  /** the old key is in other hands: what it granted is void as well. So it is where it was changed otherwise */
  readonly isStolen: boolean
  /** did of the key that is recovered; default the one of the folder */
  readonly old?: string
}

/**
 * Let another key follow, by the word of the recovery key.
 * @throws DENIED where the recovery key was not named for that key, CONFLICT where it was recovered before; BUSY; HOME_LOCKED
 *   where the node has to be stopped
 */
export function recoverOwner(asked: Recovering): Promise<Rotated> {
  return throughKeyDoor(asked.directory, (door) => recoverThrough(door, asked))
}

async function recoverThrough(door: KeyDoor, asked: Recovering): Promise<Rotated> {
  const { directory, recovery, custody } = asked
  await settleBy(directory, door)
  const identity = await identityIn(directory)
  const kept = await ownerIn(directory)
  const old = asked.old ?? kept?.did ?? identity.owner.did
  const said = [...(kept?.statements ?? []), ...(await door.statements())]
  // a node that runs counts by the key that its files name; one before it takes the others' place when it starts
  const isBefore = lineOf(identity.owner.did, said).some((one) => stepOf(one)?.old === old)
  if (door.isRunning && isBefore) fail('HOME_LOCKED', { pid: door.pid, reason: 'key_before' })
  const isStolen = asked.isStolen || said.some((one) => 'keychange' in one && one.keychange.old === old)
  const [next, now, before] = [createKeyPair(), systemClock.now(), lineOf(old, said)]
  const statement = signRecovered({ old, next, seq: countOf(before) + 1, effectiveAt: now }, recovery)
  const also = [
    ...(isStolen ? [signCompromise(old, now, next)] : []),
    signRecovery({ digest: recoveryDigest(recovery.did) }, next),
  ]
  const { name } = identity.owner
  await keepNext(directory, { name, key: next, statements: inOrder([...before, statement, ...also]) }, custody)
  const grants = await grantsBy(next, { directory, door, identity, now })
  const { reached, unreached, ended } = await door.state({ statement, also, grants }).catch(async (error: unknown) => {
    const isRefused = (['DENIED', 'CONFLICT', 'GRANT_INVALID'] as const).some((code) => isNodeError(error, code))
    // it was taken in nowhere, and is on no way
    if (isRefused) await forgetNext(directory, next.did)
    throw error
  })
  await settleBy(directory, door)
  if (isStolen) await undeclare(directory, door)
  return { did: next.did, before: old, reached, unreached, ended: isStolen ? ended : null }
}

/** The owner's file, where there is one still. */
async function ownerIn(directory: string) {
  return readOwner(directory).catch((error: unknown) => {
    if (isNodeError(error, 'NOT_INITIALISED')) return undefined
    throw error
  })
}
