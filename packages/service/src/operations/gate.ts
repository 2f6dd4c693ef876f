/** Operations of the gate: what waits for the owner, and the owner's signed word on it. None of them opens a key. */
import {
  cardDigest,
  changesOf,
  getCard,
  leftOf,
  listCards,
  quickApprovals,
  type GateEntry,
  type Unit,
} from '@csb/authority'
import type { View } from '@csb/store'
import { textsOf } from '../gate/texts.ts'
import { decideGate } from '../gate/gates.ts'
import { EVERYWHERE, checkReach, homeOf, locationOf, ruling, type Context, type Operation } from '../operation.ts'

type Decide = { readonly card: string; readonly approval: unknown }

/** What a door shows of a card: all of it, and the digest that a decision on it must bear. */
const shown = ({ card, state, field, settled_at }: GateEntry) => ({
  card,
  digest: cardDigest(card),
  state,
  field,
  settled_at,
})

/**
 * A card shows names, labels and words of whatever it is about, so it is for those who may read all of the home. Whoever
 * decides on one shows the owner's signature besides.
 */
function checkSees(context: Context): void {
  const location = locationOf(context, homeOf({}, context))
  checkReach(context, { location, action: 'read', ...EVERYWHERE })
}

/** What is left now of the budget of whoever asked: it goes on being used, so it stands beside the card and not on it. */
function leftNow(view: View, { card: { asked_by: asked } }: GateEntry): Readonly<Record<string, number>> {
  const { hash = '', lease = null } = asked.lease ?? {}
  const units = Object.keys(lease?.budget ?? {}) as Unit[]
  return Object.fromEntries(units.map((unit) => [unit, leftOf(view, hash, unit)]))
}

/** What a card is about may be anybody's words. */
const onCards = () => 'cards of the gate'

export const gateOperations: readonly Operation[] = [
  {
    name: 'gate.list',
    input: 'GateList',
    kind: 'read',
    open: 'lease',
    needs: ruling,
    hears: onCards,
    run: async (context: Context, { all = false }: { all?: boolean }) => {
      checkSees(context)
      return { items: (await listCards(context.view, { all })).map(shown) }
    },
  },
  {
    name: 'gate.show',
    input: 'GateShow',
    kind: 'read',
    open: 'lease',
    needs: ruling,
    hears: onCards,
    run: async (context: Context, { card, page = 0 }: { card: string; page?: number }) => {
      checkSees(context)
      const { view } = context
      const { items, next } = changesOf(view, card, page)
      const entry = getCard(view, card)
      const quick = await quickApprovals(view)
      const left = leftNow(view, entry)
      return { ...shown(entry), quick, left, changes: items, texts: textsOf(view, entry, items), next_page: next }
    },
  },
  {
    name: 'gate.approve',
    input: 'GateDecide',
    kind: 'write',
    open: 'lease',
    needs: ruling,
    hears: onCards,
    run: (context: Context, input: Decide) => decideGate(context, input, 'approve'),
  },
  {
    name: 'gate.reject',
    input: 'GateDecide',
    kind: 'write',
    open: 'lease',
    needs: ruling,
    run: (context: Context, input: Decide) => decideGate(context, input, 'reject'),
  },
]
