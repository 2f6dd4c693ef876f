/**
 * Handing work to a peer: a grant that names it and holds a lease for one branch, a package with what it may see, and
 * a result that is checked against the same lease before it becomes that branch.
 * @clause L4.4
 */
import { fail, parseLabel, utf8, type Grant, type Handoff, type Status } from '@csb/core'
import { charge, checkHeld, draftGrant, grantHash, leaseOf, signGrant, storeGrant, trusted } from '@csb/authority'
import { commitFiles, getRef } from '@csb/files'
import { createHandoff, handoffBranch, newHandoffId, openResult } from '@csb/sync'
import { key, type Transaction } from '@csb/store'
import { trailersOf } from '../session/authorship.ts'
import { refreshStatuses, statusesFor } from '../revocation/freshness.ts'
import { labelOfSession } from '../session/taint.ts'
import { mintThroughGate } from '../session/minting.ts'
import { commitShown } from '../git/ids.ts'
import { homeOf, type Context } from '../operation.ts'
import type { MessagePort } from '../peers.ts'
import { showing } from '../revocation/spreading.ts'
import { leaseFor, offeringOf, wishOf, type Offer, type Offering } from './offering.ts'

type Minted = { readonly handoff: Handoff; readonly notes: readonly string[]; readonly withheld: readonly string[] }

/** Mint, send, check what comes back, and make it a branch. */
export async function giveHandoff(context: Context, input: Offer) {
  // before anybody is asked: what can not be is not worth a card
  const { chain, lease: most } = offeringOf(context, context.view, input)
  leaseFor(context.view, context, most, newHandoffId(context.clock.now()))
  await refreshStatuses(context, chain)
  const status = await statusesFor(context, chain)
  const { handoff, withheld } = await mintThroughGate(
    context,
    (view) => wishOf(offeringOf(context, view, input), input),
    (tx) => mint(tx, context, offeringOf(context, tx, input), input, status),
    (made) => ({
      handoff: made.handoff.id,
      to: input.did,
      agent: input.agent,
      notes: made.notes,
      withheld: made.withheld,
    }),
  )
  await showing(context, input.did, handoff.chain as unknown as Grant[])
  const result = await exchange(context, input.did, handoff)
  const leaf = handoff.chain.at(-1) as unknown as Grant
  const lease = leaseOf(leaf) ?? fail('GRANT_INVALID', { reason: 'chain_shape' })
  const checked = openResult(result, handoff, lease, grantHash(leaf))
  // done by the caller, on the word of the peer that held this lease
  const acting = context.become(context.principal, context.run, grantHash(leaf))
  const made = await acting.write(
    (tx) => {
      // what was lent may have ended while the peer was at work: then nothing of it comes in
      checkHeld(tx, { chain: handoff.chain as unknown as Grant[], leaseHash: grantHash(leaf) }, context.clock.now())
      const commit = checked.outcome === 'completed' ? commitResult(tx, context, handoff, checked) : undefined
      const kept = {
        id: handoff.id,
        outcome: checked.outcome,
        code: checked.code,
        ...(commit === undefined ? {} : { branch: handoffBranch(handoff.id), commit: commit.commit }),
      }
      // what the peer says is made from what it got: its words stand in the branch, where they are found, and nowhere else
      tx.putJson(key('handoff', handoff.id), kept)
      return { ...kept, text: checked.text, withheld }
    },
    (done) => ({
      handoff: handoff.id,
      from: input.did,
      agent: input.agent,
      outcome: done.outcome,
      ...('commit' in done ? { commit: done.commit } : {}),
    }),
  )
  if (!('commit' in made)) return made
  const { commit, ...told } = made
  const shown = await commitShown(context, homeOf({}, context), handoffBranch(handoff.id), commit)
  return { ...told, ...(shown === undefined ? {} : { commit: shown }) }
}

/** Make the grant and the package, of what the offer comes to in this batch. */
function mint(tx: Transaction, context: Context, offering: Offering, input: Offer, status: readonly Status[]): Minted {
  const { home, clearance, notes, withheld, parent, ttlMs } = offering
  const now = context.clock.now()
  const id = newHandoffId(now)
  const lease = leaseFor(tx, context, offering.lease, id)
  const grant = signGrant(
    draftGrant({
      type: 'single',
      from: { name: context.identity.name, did: context.key.did },
      to: { name: `handoff ${id}`, did: input.did },
      audience: [input.did],
      scope: [`agent-${input.agent}`],
      level: 'request',
      now,
      ttlMs,
      parent,
      task: id,
      lease,
    }),
    context.key,
  )
  const chain = [...offering.chain, grant]
  storeGrant(tx, { chain })
  // nobody here sees what is used there: all of it is counted as used now
  if (lease.budget !== undefined && context.principal.leaseHash !== null)
    charge(tx, context.principal.leaseHash, lease.budget)
  const handoff = createHandoff(
    {
      id,
      key: context.key,
      to: input.did,
      agent: input.agent,
      home,
      base: getRef(tx, home, 'main')?.commit ?? null,
      text: input.text,
      context: input.context ?? null,
      files: notes.map(({ path, text, label }) => ({ path, text, label })),
      chain,
      taint: labelOfSession(context, tx),
      expiresAt: now + ttlMs,
      status,
    },
    clearance,
    now,
  )
  return { handoff, notes: notes.map((note) => note.id), withheld: withheld.map((note) => note.id) }
}

async function exchange(context: Context, did: string, handoff: Handoff): Promise<unknown> {
  const port = await context.peers.session(did, 'handoff', {}, { signal: context.signal })
  try {
    await port.send(handoff)
    const result = await resultFrom(port, did)
    await port.close()
    return result
  } catch (error) {
    port.abort(error as Error)
    throw error
  }
}

/** The other side says now and then that it is still at work; the first other message is the result. */
async function resultFrom(port: MessagePort, did: string): Promise<unknown> {
  for (;;) {
    const message = (await port.receive()) ?? fail('PEER_UNREACHABLE', { did })
    if ((message as { working?: unknown }).working !== true) return message
  }
}

/** What came back becomes a branch of the home: nothing else moves. */
function commitResult(
  tx: Transaction,
  context: Context,
  handoff: Handoff,
  result: { files: readonly { path: string; text: string }[] },
) {
  return commitFiles(tx, {
    home: handoff.home,
    branch: handoffBranch(handoff.id),
    ...(handoff.base === null ? {} : { from: handoff.base }),
    words: getRef(tx, handoff.home, 'main')?.words === true,
    changes: result.files.map(({ path, text }) => ({ path, bytes: utf8(text) })),
    labels: result.files.map(({ path }) => ({
      path,
      // it was made on another node: no better than what it read there, and never the owner's word
      label: { ...parseLabel(handoff.taint), integrity: 'external' as const },
    })),
    // who made it, not who asked for it
    author: { name: trusted(tx, handoff.to)?.name ?? `agent ${handoff.agent}`, did: handoff.to },
    message: `result of ${handoff.id}`,
    trailers: trailersOf(context),
    now: context.clock.now(),
  })
}
