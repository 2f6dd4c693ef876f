/**
 * What a file bears at least by who writes it: an agent's word is not the owner's, what was read from outside stays with
 * it, and a lease may name a level below which nothing is written under it.
 * @clause L1.2 L1.7 L3.2
 */
import { joinLabels, type Label } from '@csb/core'
import type { View } from '@csb/store'
import { isOwner } from '../session/session.ts'
import { labelOfSession } from '../session/taint.ts'
import type { Context } from '../operation.ts'

const OF_AGENT: Label = { level: 'public', integrity: 'agent', tags: [] }

/** The least that whatever this caller writes bears. */
export const labelOfAuthor = (context: Context, view: View): Label =>
  joinLabels([
    { level: context.principal.lease?.label_floor ?? 'public', integrity: 'owner', tags: [] },
    ...(isOwner(context) ? [] : [OF_AGENT]),
    labelOfSession(context, view),
  ])
