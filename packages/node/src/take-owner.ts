/**
 * The owner's new key for another node of the same owner: from the folder of a node that has it, or from a copy of its
 * owner.json. The node may run; where the old key was stolen its command line may have no right to ask it for anything any
 * more, and then it is stopped meanwhile: what the new key grants goes straight into its store.
 * @clause L1.3
 */
import { fail, systemClock, type Identity } from '@csb/core'
import { subjectOf } from '@csb/authority'
import { identityIn } from './authorise.ts'
import { writeJson } from './data-folder.ts'
import { throughKeyDoor } from './key-door.ts'
import { keepOwner, openOwner, readOwner, type Custody } from './owner.ts'
import { grantsBy, lineOf } from './rotate.ts'

export type Taking = {
  /** folder of the node that is to have the key */
  readonly directory: string
  readonly from: { readonly directory: string; readonly passphrase?: string }
  /** how it is kept here */
  readonly custody: Custody
}

export type TakenOwner = {
  /** of the key */
  readonly did: string
  /** the node runs, and counts that key already */
  readonly isRunning: boolean
}

/**
 * @throws HOME_LOCKED where the node runs and has to be stopped, DENIED where the key is no successor of this node's
 *   owner's, PASSPHRASE
 */
export async function takeOwner({ directory, from, custody }: Taking): Promise<TakenOwner> {
  const { name, statements } = await readOwner(from.directory)
  const owner = await openOwner(from.directory, from.passphrase)
  return throughKeyDoor(directory, async (door) => {
    const identity = await identityIn(directory)
    const line = lineOf(owner.did, [...statements, ...(await door.statements())])
    const isNext = [owner.did, ...line.map(subjectOf)].includes(identity.owner.did)
    if (!isNext) fail('DENIED', { reason: 'that key does not follow the one of this owner', key: owner.did })
    const [statement, ...also] = line
    // without one it is the key that this node has
    if (statement !== undefined) {
      const grants = await grantsBy(owner, { directory, door, identity, now: systemClock.now() })
      await door.state({ statement, also, grants })
    }
    // again and again the same: a crash in between is mended by doing it once more
    await writeJson(directory, 'identity', { ...identity, owner: { name, did: owner.did } } satisfies Identity)
    await keepOwner(directory, { name, key: owner, statements }, custody)
    return { did: owner.did, isRunning: door.isRunning }
  })
}
