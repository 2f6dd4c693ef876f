/**
 * Words on revocation between nodes: this node's own, those of other status keys as it knows them, and asking for
 * younger ones while something rests on them.
 * @clause L1.3
 */
import { LIMITS, deadline, delay, isNodeError, type Grant, type Status } from '@csb/core'
import {
  checkFresh,
  effectiveNow,
  issueStatus,
  latestStatus,
  staleAt,
  statusKeysOf,
  takeStatuses,
  trusted,
  verifyChain,
  isRevoked,
} from '@csb/authority'
import type { Parts } from '../operation.ts'

/** A status key that does not answer by then is taken for unreachable: the last word serves while it may. */
const ASKING_MS = 3_000

/** Looked after this often at most, however short the bound is. */
const LEAST_TURN_MS = 250
const MOST_TURN_MS = 10_000

type Chain = readonly Grant[]

/**
 * What the status keys of a chain said last: the own word is said anew.
 * @returns as many as are known, to go with the chain
 */
export async function statusesFor(parts: Pick<Parts, 'store' | 'key' | 'clock'>, chain: Chain): Promise<Status[]> {
  const view = parts.store.view()
  const known = statusKeysOf(chain).map(async (did) =>
    did === parts.key.did ? ownStatus(parts) : latestStatus(view, did),
  )
  return (await Promise.all(known)).filter((status) => status !== undefined)
}

/** Answer a peer that asks for words on revocation: on each key once, however often it names it, and on few of them. */
export async function answerStatus(parts: Pick<Parts, 'store' | 'key' | 'clock'>, asked: unknown): Promise<Status[]> {
  const named = (Array.isArray(asked) ? (asked as readonly unknown[]).slice(0, LIMITS.chainLinks) : []).filter(
    (did) => typeof did === 'string',
  )
  const view = parts.store.view()
  const known = [...new Set(named)].map(async (did) =>
    did === parts.key.did ? ownStatus(parts) : latestStatus(view, did),
  )
  return (await Promise.all(known)).filter((status) => status !== undefined)
}

const ownStatus = ({ store, key, clock }: Pick<Parts, 'store' | 'key' | 'clock'>): Promise<Status> =>
  store.transact((tx) => issueStatus(tx, key, clock.now()))

/**
 * Get younger words on a chain where those that are known have lived half their time. What can not be reached is left.
 * @param chain verified
 * @param from did of a peer that may know them as well, asked first
 */
export async function refreshStatuses(parts: Parts, chain: Chain, from?: string): Promise<void> {
  if (from !== undefined) {
    const aging = agingKeys(parts, chain)
    if (aging.length > 0) await ask(parts, from, aging, chain)
  }
  // those it did not know of, by themselves
  await Promise.all(agingKeys(parts, chain).map((did) => ask(parts, did, [did], chain)))
}

function agingKeys({ store, clock, key }: Parts, chain: Chain): string[] {
  const view = store.view()
  const isAging = ({ delegation: { revocation } }: Grant) => {
    const issuedAt = latestStatus(view, revocation.status_key)?.status.issued_at ?? 0
    return revocation.status_key !== key.did && issuedAt + revocation.max_age_ms / 2 < clock.now()
  }
  return [...statusKeysOf(chain.filter(isAging))]
}

async function ask(parts: Parts, did: string, issuers: readonly string[], chain: Chain): Promise<void> {
  if (did === parts.key.did) return
  try {
    const signal = deadline(ASKING_MS)
    const port = await parts.peers.session(did, 'delegation', {}, { signal })
    try {
      await port.send({ status: issuers })
      const answer = (await port.receive()) as { status?: unknown } | undefined
      await port.close()
      await parts.store.transact((tx) => takeStatuses(tx, answer?.status, chain, parts.clock.now()))
    } catch (error) {
      port.abort(error as Error)
      throw error
    }
  } catch (error) {
    parts.log('debug', 'no word on revocation', { did, code: isNodeError(error) ? error.code : String(error) })
  }
}

/** How long a chain may go without a look: a third of the time in which a revocation must count. */
const turnOf = (chain: Chain): number => {
  const bounds = chain.map(({ delegation }) => delegation.revocation.max_age_ms / 3)
  return Math.max(LEAST_TURN_MS, Math.min(MOST_TURN_MS, ...bounds))
}

/** The same, and no longer than until something ends: the chain itself, or the word on it. */
function turnFor({ store, clock, key }: Parts, { chain, endsAt }: Footing): number {
  const now = clock.now()
  const ends = [endsAt ?? Number.POSITIVE_INFINITY, staleAt(store.view(), chain, key.did) + 1]
  return Math.max(1, Math.min(turnOf(chain), ...ends.filter((end) => end > now).map((end) => end - now)))
}

/**
 * Work that rests on a chain of somebody else: words on it are kept young meanwhile.
 * @param from did of the peer that brought it
 */
export async function whileFresh<T>(parts: Parts, chain: Chain, from: string, work: () => Promise<T>): Promise<T> {
  const ended = new AbortController()
  const watching = (async () => {
    while (chain.length > 0) {
      await delay(turnOf(chain), ended.signal)
      await refreshStatuses(parts, chain, from)
    }
  })()
  watching.catch(() => undefined) // it ends by being stopped
  try {
    return await work()
  } finally {
    ended.abort()
  }
}

/** What work rests on while it goes on. */
export type Footing = {
  /** grants, root first; empty where it is no document */
  readonly chain: Chain
  /** did of a peer that may have younger words; undefined where none brought it */
  readonly from: string | undefined
  /** ms since epoch; null where nothing of it ends by itself */
  readonly endsAt: number | null
  /**
   * Does it stand now?
   * @throws GRANT_INVALID `{reason}`, LEASE_EXPIRED, LEASE_REVOKED
   */
  check(): void
}

/** Work that was handed over: it needs a young word on its grants all the time. */
export const handedFooting = (parts: Parts, chain: Chain, from: string): Footing => ({
  chain,
  from,
  endsAt: chain.at(-1)?.delegation.expires_at ?? null,
  check: () => checkStands(parts, chain, true),
})

/**
 * The same, and the work is told to stop once what it rests on does not stand any more: revoked, expired, or without a
 * young word where one is needed. A revocation that arrives here stops it at once.
 * @throws GRANT_INVALID `{reason}`, LEASE_EXPIRED, LEASE_REVOKED where it ended before the work did
 * @clause L1.3
 */
export async function whileHeld<T>(
  parts: Parts,
  footing: Footing,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { chain, from, check } = footing
  const over = new AbortController()
  const ended = new AbortController()
  let isAsking = false
  // beside the watch: while somebody is asked who does not answer, the last word may become too old
  const renew = () => {
    if (isAsking) return
    isAsking = true
    parts.background(refreshStatuses(parts, chain, from).finally(() => (isAsking = false)))
  }
  const watching = (async () => {
    for (;;) {
      renew()
      await parts.runs.bell.wait(turnFor(parts, footing), ended.signal)
      check()
    }
  })()
  watching.catch((error: unknown) => {
    if (!ended.signal.aborted) over.abort(error)
  })
  try {
    const done = await work(over.signal)
    over.signal.throwIfAborted()
    return done
  } finally {
    ended.abort()
  }
}

/**
 * Does a chain that was verified before still stand?
 * @param isFresh false: it need not be confirmed lately
 * @throws GRANT_INVALID with `revoked`, `expired`, `untrusted_root`, `revocation_stale`
 */
export function checkStands(
  { store, key, clock }: Pick<Parts, 'store' | 'key' | 'clock'>,
  chain: Chain,
  isFresh: boolean,
): void {
  const view = store.view()
  const now = effectiveNow(view, clock.now())
  verifyChain({
    chain,
    now,
    isRevoked: (hash, by, grant) => isRevoked(view, hash, by, grant),
    trustedRoot: (did) => trusted(view, did),
  })
  if (isFresh) checkFresh(view, chain, { self: key.did, now })
}
