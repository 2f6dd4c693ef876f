/**
 * What a session pushes by git after it has read from outside, or under a floor: each file that the push changes must bear
 * the label of what was read and no less than the floor, in the tree that comes. Written over another door it gets that
 * label by itself, and so does what lands on what a reader of a part does not see; what goes in as it came is taken as it
 * is or not at all.
 * @clause L1.7
 */
import { fail, formatLabel, joinLabels, parseLabel } from '@csb/core'
import { LABELS_PATH, getRef, manifestOf, readCommit } from '@csb/files'
import type { Transaction } from '@csb/store'
import { labelOfSession, leastPushed } from '../session/taint.ts'
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
  const least = leastPushed(context, tx)
  if (least.integrity !== 'external' && least.level === 'public') return
  const why = least.integrity === 'external' ? 'this lease has read from outside' : 'this lease has a floor for labels'
  const treeOf = (commit: string) => readCommit(tx, home, commit).tree
  const before = from ?? getRef(tx, home, 'main')?.commit ?? to
  for (const { path, label_new: spelled } of manifestOf(tx, home, treeOf(before), treeOf(to))) {
    if (spelled === null || path === LABELS_PATH) continue
    const label = formatLabel(joinLabels([parseLabel(spelled), least]))
    if (label !== formatLabel(parseLabel(spelled)))
      fail('DENIED', { reason: `${why}: label it in ${LABELS_PATH}`, path, label, advice: 'label' })
  }
}

/** A tag bears no labels. @throws DENIED */
export function checkPushedTag(tx: Transaction, context: Context): void {
  if (labelOfSession(context, tx).integrity === 'external')
    fail('DENIED', { reason: 'this lease has read from outside: it pushes no tags' })
}
