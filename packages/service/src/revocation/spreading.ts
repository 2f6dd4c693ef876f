/**
 * Telling peers that a grant ended, or what was said of a key: at once those that are reached, the others when they come. Whom nobody can reach is
 * stopped by time alone: nothing goes on in a name without a young word that it still may.
 * @clause L1.3, DEL-003.3.4
 */
import { LIMITS, deadline, fail, isNodeError, toNodeError, type Grant } from '@csb/core'
import {
  chainsOfHolder,
  findGrant,
  hasGrant,
  inOrder,
  isSameOwner,
  listKeyStatements,
  markTold,
  noteShown,
  noteUntoldBefore,
  revocationsOf,
  statementsOn,
  statusKeysOf,
  subjectOf,
  trusted,
  untoldPeers,
  untoldTo,
  wasShown,
} from '@csb/authority'
import type { View } from '@csb/store'
import { refreshStatuses } from './freshness.ts'
import type { Parts } from '../operation.ts'

/** What became of a revocation at one peer. */
export type Told = {
  readonly did: string
  /** the owner's name for it; null where it has none */
  readonly name: string | null
}

export type Heard = { readonly reached: readonly Told[]; readonly unreached: readonly Told[] }

export type Spread = {
  readonly reached: readonly Told[]
  /** `ends_at`: ms since epoch, when what it may still believe ends by itself */
  readonly unreached: readonly (Told & { readonly ends_at: number })[]
}

/**
 * Remember, before it leaves, to whom a chain is shown. Where its origin has changed its key, who sees the new one for the
 * first time hears of the change before.
 */
export async function showing(parts: Parts, did: string, chain: readonly Grant[]): Promise<void> {
  const view = parts.store.view()
  if (chain.length === 0 || wasShown(view, did, chain)) return
  const root = chain[0]?.delegation.grantor_key ?? ''
  const changed = (await keysSpokenOf(view)).filter((other) => isSameOwner(view, other, root))
  await parts.store.transact(async (tx) => {
    await noteShown(tx, did, chain, parts.clock.now())
    noteUntoldBefore(tx, did, changed, parts.clock.now())
  })
  // who does not hear now hears later, and asks for it to be said again
  if (changed.length > 0) await tellAll(parts, did).catch(() => false)
}

/** Dids of keys of which something was said. */
async function keysSpokenOf(view: View): Promise<readonly string[]> {
  const statements = await listKeyStatements(view)
  return [...new Set(statements.map(subjectOf))]
}

/**
 * Tell some peers of a revoked grant, all at the same time.
 * @param hash of the grant
 * @returns who has heard within {@link LIMITS.revocationTellMs}; the rest goes on being told
 */
export async function spread(parts: Parts, hash: string, dids: readonly string[]): Promise<Spread> {
  const revokedAt = parts.clock.now()
  const done = await Promise.all(
    dids.map(async (did) => ({ did, isReached: await tellAll(parts, did).catch(() => false) })),
  )
  const told = (did: string): Told => ({ did, name: trusted(parts.store.view(), did)?.name ?? null })
  const endsAt = endOf(parts, hash, revokedAt)
  return {
    reached: done.filter(({ isReached }) => isReached).map(({ did }) => told(did)),
    unreached: done.filter(({ isReached }) => !isReached).map(({ did }) => ({ ...told(did), ends_at: endsAt })),
  }
}

/** When a peer that hears nothing stops: the last word on the grant is too old then, by whichever clock. */
function endOf({ store }: Parts, hash: string, revokedAt: number): number {
  const view = store.view()
  const leaf = hasGrant(view, hash) ? findGrant(view, hash).at(-1)?.delegation : undefined
  const bound = revokedAt + (leaf?.revocation.max_age_ms ?? LIMITS.revocationMaxAgeMs) + LIMITS.clockSkewMs
  return Math.min(bound, leaf?.expires_at ?? bound)
}

/**
 * Tell one peer of every revocation it has not heard of.
 * @returns true where it knows all of them now
 */
async function tellAll(parts: Parts, did: string): Promise<boolean> {
  const all = await untoldTo(parts.store.view(), did)
  let isAll = await tellOfKeys(
    parts,
    did,
    all.filter((one) => one.startsWith('did:')),
  )
  for (const hash of all.filter((one) => !one.startsWith('did:'))) isAll = (await tell(parts, did, hash)) && isAll
  return isAll
}

/** Tell one peer of keys, in the order in which it believes what is said of them. */
async function tellOfKeys(parts: Parts, did: string, keys: readonly string[]): Promise<boolean> {
  const view = parts.store.view()
  for (const statement of inOrder(keys.flatMap((one) => statementsOn(view, one)))) {
    try {
      await tellPeer(parts, did, { key_statement: statement }, deadline(LIMITS.revocationTellMs))
    } catch (error) {
      const { code, row, details } = toNodeError(error)
      parts.log('info', 'a word on a key was not taken in', { did, code })
      // its clock is behind: it will believe it later
      if (row.retryable || code === 'INTERNAL' || details['reason'] === 'not_yet_valid') return false
    }
  }
  if (keys.length > 0) await parts.store.transact((tx) => keys.forEach((one) => markTold(tx, did, one)))
  return true
}

/** Tell some peers of what was said of keys. @returns who has heard; the rest goes on being told */
export async function spreadKeys(parts: Parts, dids: readonly string[]): Promise<Heard> {
  const done = await Promise.all(
    dids.map(async (did) => ({ did, isReached: await tellAll(parts, did).catch(() => false) })),
  )
  const view = parts.store.view()
  const of = (isReached: boolean) =>
    done
      .filter((one) => one.isReached === isReached)
      .map(({ did }) => ({ did, name: trusted(view, did)?.name ?? null }))
  return { reached: of(true), unreached: of(false) }
}

async function tell(parts: Parts, did: string, hash: string): Promise<boolean> {
  for (const document of await revocationsOf(parts.store.view(), hash)) {
    try {
      await tellPeer(parts, did, { revocation: document }, deadline(LIMITS.revocationTellMs))
    } catch (error) {
      const { code, row } = toNodeError(error)
      parts.log('info', 'a revocation was not taken in', { did, grant: hash, code })
      // what it refuses it refuses for ever: there is nothing it could believe in
      if (row.retryable || code === 'INTERNAL') return false
    }
  }
  await parts.store.transact((tx) => markTold(tx, did, hash))
  return true
}

/**
 * One message of the delegation protocol and its answer.
 * @throws PEER_UNREACHABLE where no answer came: what was not taken in there is not told as done here
 */
export async function tellPeer(
  { peers }: Pick<Parts, 'peers'>,
  did: string,
  message: unknown,
  signal: AbortSignal,
): Promise<unknown> {
  const port = await peers.session(did, 'delegation', {}, { signal })
  try {
    await port.send(message)
    const answer = (await port.receive()) ?? fail('PEER_UNREACHABLE', { did })
    await port.close()
    return answer
  } catch (error) {
    port.abort(error as Error)
    throw error
  }
}

/** A peer is there: it hears what it missed, and says what it knows of grants that are held here. */
export async function greet(parts: Parts, did: string): Promise<void> {
  await tellAll(parts, did)
  const held = chainsOfHolder(parts.store.view(), parts.key.did).filter((chain) => statusKeysOf(chain).includes(did))
  for (const chain of held) await refreshStatuses(parts, chain)
}

/** Try again whoever has not heard yet. */
export async function tellEveryone(parts: Parts): Promise<void> {
  for (const did of await untoldPeers(parts.store.view())) {
    await tellAll(parts, did).catch((error: unknown) => {
      if (!isNodeError(error)) throw error
    })
  }
}
