/**
 * Another key for the owner. The new one lies sealed beside the old one before anybody hears of it; then the running node
 * takes in the change, signed by both, with what the new key grants it, in one batch; only then do the files follow. A
 * crash in between leaves the old key or the new one in force, and the next command finishes what was begun.
 *
 * The key of the node itself is its peer id and does not change: another key is another node, which joins.
 * @clause L1.3
 */
import { createKeyPair, fail, type Grant, type Identity, type KeyPair, type KeyStatement } from '@csb/core'
import { inOrder, signCompromise, signKeyChange, signRecovery, stepOf, subjectOf, tokenHash } from '@csb/authority'
import { identityIn, type Desk, type Peer } from './authorise.ts'
import type { Client } from './client.ts'
import { readText, removeFile, writeJson } from './data-folder.ts'
import { doorOfNode, type KeyDoor } from './key-door.ts'
import { followWith, keepNext, listNext, noteStatement, readOwner, type Custody } from './owner.ts'
import { ownGrants } from './own-grants.ts'

export type Rotating = {
  /** how the new key is kept */
  readonly custody: Custody
  /** the old key is in other hands: what it granted is void as well */
  readonly isStolen: boolean
}

/** What became of it. */
export type Rotated = {
  /** did of the key that follows */
  readonly did: string
  /** did of the key before it */
  readonly before: string
  /** peers that have heard */
  readonly reached: readonly Peer[]
  /** peers that go on being told */
  readonly unreached: readonly Peer[]
  /** grants of the old key that are void; null where they hold */
  readonly ended: number | null
}

/**
 * Let another key follow the owner's.
 * @param desk with the old key open
 * @throws PASSPHRASE, BUSY, CONFLICT where it was changed elsewhere meanwhile, PEER_UNREACHABLE where the node went away: what
 *   holds then {@link settleOwner} finds out
 */
export async function rotateOwner(desk: Desk, { custody, isStolen }: Rotating): Promise<Rotated> {
  const { directory, client, owner: old, now } = desk
  const [identity, { name, statements }] = [await identityIn(directory), await readOwner(directory)]
  const door = doorOfNode(client, identity)
  const before = lineOf(old.did, [...statements, ...(await door.statements())])
  const next = createKeyPair()
  const statement = signKeyChange({ old, next, seq: countOf(before) + 1, effectiveAt: now })
  const digest = await door.recovery()
  const also = [
    ...(isStolen ? [signCompromise(old.did, now, next)] : []),
    // for those that know no key before it
    ...(digest === null ? [] : [signRecovery({ digest }, next)]),
  ]
  await keepNext(directory, { name, key: next, statements: inOrder([...before, statement, ...also]) }, custody)
  const grants = await grantsBy(next, { directory, door, identity, now })
  const { reached, unreached, ended } = await door.state({ statement, also, grants })
  await settleBy(directory, door)
  if (isStolen) await undeclare(directory, door)
  return { did: next.did, before: old.did, reached, unreached, ended: isStolen ? ended : null }
}

/**
 * Say that a key which was changed before is in other hands.
 * @param did of the key
 * @throws NOT_FOUND where it is none of this owner's former keys
 */
export async function condemnKey(desk: Desk, did: string): Promise<Rotated> {
  const { directory, client, owner } = desk
  const { statements } = await readOwner(directory)
  const step = statements.map(stepOf).find((one) => one?.old === did) ?? fail('NOT_FOUND', { key: did })
  const statement = signCompromise(did, step.effective_at, owner)
  const door = doorOfNode(client, await identityIn(directory))
  const { reached, unreached, ended } = await door.state({ statement })
  await noteStatement(directory, statement)
  await undeclare(directory, door)
  return { did: owner.did, before: did, reached, unreached, ended }
}

/** What was said of the keys of that owner up to this one, in the order in which it is believed. */
export function lineOf(did: string, statements: readonly KeyStatement[]): readonly KeyStatement[] {
  const steps = statements.flatMap((one) => stepOf(one) ?? [])
  const keys = new Set([did])
  for (const one of keys) for (const step of steps) if (step.new === one) keys.add(step.old)
  return inOrder(
    statements.filter(
      (one) =>
        keys.has(subjectOf(one)) &&
        stepOf(one)?.old !== did &&
        // one that followed for a thief is none of them, and nobody believes it where it did not
        (!('compromise' in one) || keys.has(one.compromise.by)),
    ),
  )
}

/** Changes of the owner's key among them. */
export const countOf = (statements: readonly KeyStatement[]): number =>
  statements.filter((one) => stepOf(one) !== undefined).length

/**
 * Finish a change of the key that was broken off. Where the node has taken it in the files follow; where it has not, the
 * old key is as good as before, and the new one is kept until another change: it may be on its way.
 */
export async function settleOwner(directory: string, client: Client): Promise<void> {
  if ((await listNext(directory)).length === 0) return
  await settleBy(directory, doorOfNode(client, await identityIn(directory)))
}

/** The same, through any door. */
export async function settleBy(directory: string, door: Pick<KeyDoor, 'statements'>): Promise<void> {
  const dids = await listNext(directory)
  if (dids.length === 0) return
  const followed = new Set((await door.statements()).map((said) => stepOf(said)?.new))
  const did = dids.find((one) => followed.has(one))
  if (did === undefined) return
  const identity = await identityIn(directory)
  await writeJson(directory, 'identity', { ...identity, owner: { ...identity.owner, did } } satisfies Identity)
  await followWith(directory, did)
  // last: while it is there the rest is done again
  await removeFile(directory, 'ownerNext')
}

/** A change of the key that the files have not followed. */
type Hanging = {
  /** `begun`: the node has not heard of it; `elsewhere`: the node counts a key that is not kept in this folder */
  readonly state: 'begun' | 'elsewhere'
  /** did of the key that is kept here */
  readonly key: string
  /** did of the one that follows it, or was to */
  readonly to: string
}

/** What {@link settleOwner} could not finish; undefined where the key of this folder is the one that counts. */
export async function hangingChange(directory: string, client: Client): Promise<Hanging | undefined> {
  const { did } = await readOwner(directory)
  const { items } = await client.call<{ items: readonly KeyStatement[] }>('GET', '/v1/keys')
  const step = items.map(stepOf).find((one) => one?.old === did)
  if (step !== undefined) return { state: 'elsewhere', key: did, to: step.new }
  const begun = (await listNext(directory)).at(-1)
  return begun === undefined ? undefined : { state: 'begun', key: did, to: begun }
}

export type Granting = {
  readonly directory: string
  readonly door: Pick<KeyDoor, 'statusKey'>
  readonly identity: Identity
  /** ms since epoch */
  readonly now: number
}

/** What a key grants to the node and to its command line, which keeps its token. */
export async function grantsBy(owner: KeyPair, { directory, door, identity, now }: Granting) {
  const token = (await readText(directory, 'token'))?.trim() ?? fail('NOT_INITIALISED', { directory })
  const { node, command } = ownGrants({ identity, owner, statusKey: await door.statusKey(), now })
  const grants: readonly { readonly grant: Grant; readonly token_hash?: string }[] = [
    { grant: node },
    { grant: command, token_hash: tokenHash(token) },
  ]
  return grants
}

/** Entries of identity.json whose grants are void declare nothing any more. */
export async function undeclare(directory: string, door: Pick<KeyDoor, 'ended'>): Promise<void> {
  const gone = new Set(await door.ended())
  const identity = await identityIn(directory)
  const delegations = identity.delegations.filter(({ delegation_id: id }) => id === undefined || !gone.has(id))
  if (delegations.length < identity.delegations.length)
    await writeJson(directory, 'identity', { ...identity, delegations } satisfies Identity)
}
