/**
 * L4 operations: keep the memory branch of a home in step with a peer. Who may see and who may write follows
 * from grants of the home's owner to the peer's key, presented at the start and checked here, at the sender.
 * @clause L4.1, L4.2, L4.3
 */
import { fail, type Clearance } from '@csb/core'
import { rightsOf, trusted, verifyCredential } from '@csb/authority'
import { createHome, findHome, type Home } from '@csb/files'
import { applyTombstone, finishErasures, isVisible, putRemembered } from '@csb/guard'
import { getState, removeNotes } from '@csb/memory'
import { syncSession, type Arrival, type SyncReport } from '@csb/sync'
import { key, prefix, tail, type View } from '@csb/store'
import { authorOf, trailersOf } from '../authorship.ts'
import { credentialOf, peerRights } from '../credentials.ts'
import { homeOf, locationOf, type Context, type Operation } from '../operation.ts'
import type { MessagePort } from '../peers.ts'

type Presented = { readonly home?: Partial<Home>; readonly credential?: unknown }

/** What is kept of the last round with a peer: the row that keeps the pair in step from then on. */
export type SyncRow = { readonly did: string; readonly home: string; readonly at: number; readonly report: SyncReport }

export const syncOperations: readonly Operation[] = [
  {
    name: 'sync.run',
    input: 'SyncRun',
    kind: 'call',
    open: 'lease',
    needs: (input: { home?: string }, parts) => ({
      location: locationOf(parts, homeOf(input, parts)),
      action: 'send',
      branch: 'memory',
    }),
    run: async (context: Context, input: { did: string; home?: string }) => {
      const home = findHome(context.view, homeOf(input, context)) ?? fail('NOT_FOUND', { home: homeOf(input, context) })
      const port = await context.peers.session(input.did, 'sync', { home: home.id }, { signal: context.signal })
      try {
        await port.send({ home, credential: credentialOf(context, home) })
        const answer = (await port.receive()) as Presented | undefined
        if (answer === undefined) fail('PEER_UNREACHABLE', { did: input.did })
        const report = await runSession(context, port, input.did, home, answer)
        await port.close()
        return report
      } catch (error) {
        port.abort(error as Error)
        throw error
      }
    },
  },
  {
    name: 'sync.serve',
    input: 'SyncServe',
    kind: 'session',
    open: 'peer',
    run: async (context: Context, input: { home: string }, port: MessagePort) => {
      const did = context.principal.did ?? fail('UNAUTHENTICATED')
      const offer = (await port.receive()) as Presented | undefined
      const home = await knownHome(context, did, input.home, offer)
      // whoever may see nothing of it learns nothing of it, neither whose it is nor by what right this node has it
      const { clearance } = peerRights(context, did, home.id, offer?.credential)
      if (clearance === undefined) fail('CLEARANCE', { home: home.id })
      await port.send({ home, credential: credentialOf(context, home) })
      await runSession(context, port, did, home, offer ?? {})
      await port.close()
    },
  },
  {
    name: 'sync.status',
    input: 'SyncStatus',
    kind: 'read',
    open: 'lease',
    needs: (_input: unknown, parts) => ({ location: locationOf(parts, homeOf({}, parts)), action: 'list' }),
    run: async ({ view }: Context) => {
      const items: SyncRow[] = []
      for await (const [fullKey] of view.range({ prefix: prefix('syncPeer') })) {
        const row = view.getJson<SyncRow>(key('syncPeer', tail(fullKey, 'syncPeer')))
        if (row !== undefined) items.push(row)
      }
      return { items }
    },
  },
]

/** A home that is new here is taken in only from an owner this node trusts. */
async function knownHome(context: Context, peer: string, id: string, offer: Presented | undefined): Promise<Home> {
  const found = findHome(context.view, id)
  if (found !== undefined) return found
  const { owner, origin, hash } = offer?.home ?? {}
  if (typeof owner !== 'string' || typeof origin !== 'string' || (hash !== 'sha256' && hash !== 'sha1')) {
    fail('NOT_FOUND', { home: id })
  }
  if (trusted(context.view, owner) === undefined) {
    fail('DENIED', { reason: 'the owner of that home is not trusted here', owner })
  }
  // who brings a home must prove that its owner lets it: an id and a did alone make nothing here
  const asked = { did: peer, home: { id, owner }, self: context.key.did, now: context.clock.now() }
  const credential = verifyCredential(context.view, { ...asked, chain: offer?.credential })
  if (!rightsOf(context.view, { ...asked, credential }).mayWrite) fail('CLEARANCE', { home: id })
  return context.write(
    (tx) => createHome(tx, { id, owner, origin, hash, now: context.clock.now() }),
    (home) => ({ home: home.id, owner, replica: true }),
  )
}

async function runSession(
  context: Context,
  port: MessagePort,
  did: string,
  home: Home,
  presented: Presented,
): Promise<SyncReport> {
  const { clock, store } = context
  const rights = () => peerRights(context, did, home.id, presented.credential)
  const report = await syncSession(port, {
    store,
    home: home.id,
    clearanceOfPeer: () => rights().clearance,
    mayPeerWrite: () => rights().mayWrite,
    apply: (arrival) => apply(context, { did, home: home.id, seen: rights().clearance }, arrival),
  })
  await finishErasures(store)
  await context.write(
    (tx) =>
      tx.putJson(key('syncPeer', did, home.id), { did, home: home.id, at: clock.now(), report } satisfies SyncRow),
    () => ({ peer: did, home: home.id, ...report }),
  )
  return report
}

type From = {
  readonly did: string
  readonly home: string
  /** what the peer may see here */
  readonly seen: Clearance | undefined
}

/** One page of what came: state and record in one batch. */
async function apply(context: Context, { did, home, seen }: From, arrival: Arrival): Promise<number> {
  const now = context.clock.now()
  const shared = { home, author: authorOf(context), trailers: trailersOf(context), now }
  const done = await context.write(
    async (tx) => {
      let count = 0
      let commit: string | undefined
      for (const tombstone of arrival.tombstones) {
        if (!mayForget(context, tx, { home, seen }, tombstone)) continue
        const result = await applyTombstone(tx, { ...shared, tombstone })
        if (result.applied) count++
        commit = result.commit ?? commit
      }
      const notes = arrival.notes.filter(({ entry }) => mayChange(tx, home, entry.id, seen))
      if (notes.length > 0) {
        const result = putRemembered(tx, { ...shared, notes, message: `take in ${notes.length} notes` })
        count += result.applied.length
        commit = result.commit
      }
      const gone = arrival.gone.filter((id) => mayChange(tx, home, id, seen))
      if (gone.length > 0) {
        const result = removeNotes(tx, { ...shared, ids: gone, message: `drop ${gone.length} notes` })
        count += result.removed.length
        commit = result.commit
      }
      return { count, commit }
    },
    ({ count, commit }) => ({ from: did, home, count, ...(commit === undefined ? {} : { commit }) }),
  )
  return done.count
}

/** A peer changes only what it may see, also where the label was raised since the session began. */
function mayChange(view: View, home: string, id: string, seen: Clearance | undefined): boolean {
  const state = getState(view, home, id)
  return state === undefined || (seen !== undefined && isVisible(seen, state.label))
}

/**
 * To know an id is not enough to forget its note. Who brings the tombstone must be let see the note, and so must who
 * signed it, as far as that one's rights are known here: else a peer that sees little could reach through one that
 * sees all.
 */
function mayForget(context: Context, tx: View, { home, seen }: Pick<From, 'home' | 'seen'>, tombstone: unknown) {
  const { id, by } = (tombstone ?? {}) as { id?: unknown; by?: unknown }
  if (!mayChange(tx, home, String(id), seen)) return false
  const signer = typeof by === 'string' ? peerRights(context, by, home).clearance : undefined
  return signer === undefined || mayChange(tx, home, String(id), signer)
}
