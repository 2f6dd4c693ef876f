/**
 * What a session pushes by git after it has read from outside: each file that the push changes must bear the label of
 * what was read, in the tree that comes. Written over another door it gets that label by itself, and so does what lands on
 * what a reader of a part does not see; what goes in as it came is taken as it is or not at all.
 * @clause L1.7
 */
import { fail, formatLabel, joinLabels, parseLabel } from '@csb/core'
import { LABELS_PATH, getRef, manifestOf, readCommit } from '@csb/files'
import type { Transaction } from '@csb/store'
import { labelOfSession } from '../session/taint.ts'
import type { Context } from '../operation.ts'

export type PushedHead = {
  readonly home: string
  /** head before; null: a new branch, which is compared with `main` */
  readonly from: string | null
  readonly to: string
}

/**
 * @throws DENIED with a path and the label that it needs
 * @clause L1.7
 */
export function checkPushedLabels(tx: Transaction, context: Context, { home, from, to }: PushedHead): void {
  const session = labelOfSession(context, tx)
  if (session.integrity !== 'external') return
  const treeOf = (commit: string) => readCommit(tx, home, commit).tree
  const before = from ?? getRef(tx, home, 'main')?.commit ?? to
  for (const { path, label_new: spelled } of manifestOf(tx, home, treeOf(before), treeOf(to))) {
    if (spelled === null || path === LABELS_PATH) continue
    const label = formatLabel(joinLabels([parseLabel(spelled), session]))
    if (label !== formatLabel(parseLabel(spelled)))
      fail('DENIED', { reason: `this lease has read from outside: label it in ${LABELS_PATH}`, path, label })
  }
}

/** A tag bears no labels. @throws DENIED */
export function checkPushedTag(tx: Transaction, context: Context): void {
  if (labelOfSession(context, tx).integrity === 'external')
    fail('DENIED', { reason: 'this lease has read from outside: it pushes no tags' })
}
