/**
 * The label in force for a file: what its tree says, and in the branch of the notes what the note says of itself. A
 * file there that is no note of the index is the most restrictive, so that no door shows more than the notes' own. The
 * file of labels names what it labels, and is as strict as all of that.
 * @clause L4.2
 */
import { MOST_RESTRICTIVE, joinLabels, parseLabel, type Label } from '@csb/core'
import { LABELS_PATH, MEMORY, getRef, readCommit, readLabels } from '@csb/files'
import { getState } from '@csb/memory'
import type { View } from '@csb/store'
import { labelInForce } from './projection.ts'

export type LabelledFile = {
  readonly home: string
  readonly branch: string
  readonly path: string
  /** blob that stands there; null where it is only named, or none */
  readonly oid: string | null
  /** by the tree */
  readonly label: Label
}

export function labelOfFile(view: View, { home, branch, path, oid, label }: LabelledFile): Label {
  if (path === LABELS_PATH) return joinLabels([label, ...labelsNamed(view, home, branch)])
  // a note that was copied there says of itself what it said where it came from
  if (branch !== MEMORY) return labelInForce(view, { home, path, oid, label })
  const id = path.slice(path.lastIndexOf('/') + 1).replace(/\.md$/, '')
  const state = getState(view, home, id)
  return state === undefined || state.path !== path ? MOST_RESTRICTIVE : joinLabels([label, parseLabel(state.label)])
}

/** What is labelled is named where its label stands, so who may not see one of them does not see that file. */
function labelsNamed(view: View, home: string, branch: string): Label[] {
  const commit = getRef(view, home, branch)?.commit
  const labels = commit === undefined ? undefined : readLabels(view, home, readCommit(view, home, commit).tree)
  return labels === undefined ? [MOST_RESTRICTIVE] : [...labels.values()].map(parseLabel)
}
