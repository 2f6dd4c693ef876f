/**
 * L4 operations: keep the memory branch of a home in step with a peer. Who may see and who may write follows
 * from grants of the home's owner to the peer's key, presented at the start and checked here, at the sender.
 * @clause L4.1, L4.2, L4.3
 */
import { fail, type Clearance } from '@csb/core'
import { rightsOf, takeCredential, isTrustedOwner, verifyCredential } from '@csb/authority'
import { createHome, findHome, getRef, type Home } from '@csb/files'
import { syncSession, takeArrival, type Arrival, type SyncReport } from '@csb/sync'
import { key, prefix, tail } from '@csb/store'
import { authorOf, trailersOf } from '../session/authorship.ts'
import { isOfOwner } from '../session/foreign-home.ts'
import { chainsShownBy, credentialOf, peerRights } from '../session/credentials.ts'
import { refreshStatuses, statusesFor, whileFresh } from '../revocation/freshness.ts'
import { finishForgetting } from '../gate/forgetting.ts'
import { showing } from '../revocation/spreading.ts'
import { EVERYWHERE, homeOf, locationOf, type Context, type Operation } from '../operation.ts'
import type { MessagePort } from '../peers.ts'

type Presented = { readonly home?: Partial<Home>; readonly credential?: unknown; readonly status?: unknown }

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
        await port.send(await presentation(context, input.did, home))
        const answer = (await port.receive()) as Presented | undefined
        if (answer === undefined) fail('PEER_UNREACHABLE', { did: input.did })
        await takePresented(context, input.did, home, answer)
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
      await takePresented(
        context,
        did,
        findHome(context.view, input.home) ?? homeOffered(context, input.home, offer),
        offer,
      )
      const home = await knownHome(context, did, input.home, offer)
      // whoever may see nothing of it learns nothing of it, neither whose it is nor by what right this node has it
      const { clearance } = peerRights(context, did, home.id, offer?.credential)
      if (clearance === undefined) fail('CLEARANCE', { home: home.id })
      await port.send(await presentation(context, did, home))
      await runSession(context, port, did, home, offer ?? {})
      await port.close()
    },
  },
  {
    name: 'sync.status',
    input: 'SyncStatus',
    kind: 'read',
    open: 'lease',
    // with whom, when and how much: for those who may see everything
    needs: (_input: unknown, parts) => ({
      location: locationOf(parts, homeOf({}, parts)),
      action: 'list',
      ...EVERYWHERE,
    }),
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

/** Which home, by what right, and what the status keys of that right said last. */
async function presentation(context: Context, did: string, home: Home) {
  const credential = credentialOf(context, home)
  await showing(context, did, credential ?? [])
  await refreshStatuses(context, credential ?? [])
  return { home, credential, status: credential === null ? [] : await statusesFor(context, credential) }
}

/** Take in the words that came with a right. What the right is worth is judged afterwards. */
async function takePresented(
  context: Context,
  did: string,
  home: Pick<Home, 'id' | 'owner'> | undefined,
  presented: Presented | undefined,
): Promise<void> {
  if (home === undefined || presented === undefined) return
  const asked = { did, home, self: context.key.did, now: context.clock.now() }
  await context.store.transact((tx) => takeCredential(tx, { ...asked, presented }))
}

/** A home that is new here, as it is offered, where its owner is one this node trusts. */
function homeOffered({ view }: Context, id: string, offer: Presented | undefined) {
  const owner = offer?.home?.owner
  return typeof owner === 'string' && isTrustedOwner(view, owner) ? { id, owner } : undefined
}

/** A home that is new here is taken in only from an owner this node trusts. */
async function knownHome(context: Context, peer: string, id: string, offer: Presented | undefined): Promise<Home> {
  const found = findHome(context.view, id)
  if (found !== undefined) return found
  const { owner, origin, hash } = offer?.home ?? {}
  if (typeof owner !== 'string' || typeof origin !== 'string' || (hash !== 'sha256' && hash !== 'sha1')) {
    fail('NOT_FOUND', { home: id })
  }
  if (!isTrustedOwner(context.view, owner)) {
    fail('DENIED', { reason: 'the owner of that home is not trusted here', owner })
  }
  // who brings a home must prove that its owner lets it: an id and a did alone make nothing here
  const asked = { did: peer, home: { id, owner }, self: context.key.did, now: context.clock.now() }
  const credential = verifyCredential(context.view, { ...asked, chain: offer?.credential })
  if (!rightsOf(context.view, { ...asked, credential }).mayWrite) fail('CLEARANCE', { home: id })
  const taken = await context.write(
    (tx) => {
      const home = createHome(tx, { id, owner, origin, hash, now: context.clock.now() })
      return { home, commit: getRef(tx, home.id, 'main')?.commit }
    },
    ({ home, commit }) => ({ home: home.id, owner, replica: true, commit }),
  )
  return taken.home
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
  const report = await whileFresh(context, chainsShownBy(context, did, home, presented.credential), did, () =>
    syncSession(port, {
      store,
      home: home.id,
      clearanceOfPeer: () => rights().clearance,
      mayPeerWrite: () => rights().mayWrite,
      ofOwner: isOfOwner(context, store.view(), home.id),
      apply: (arrival) => apply(context, { did, home: home.id, seen: rights().clearance }, arrival),
    }),
  )
  await finishForgetting(store)
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
  const words = { home, author: authorOf(context), trailers: trailersOf(context), now: context.clock.now() }
  const done = await context.write(
    (tx) => takeArrival(tx, { ...words, seen, node: context.key.did, ofOwner: isOfOwner(context, tx, home) }, arrival),
    ({ count, commit }) => ({ from: did, home, count, ...(commit === undefined ? {} : { commit }) }),
  )
  return done.count
}
