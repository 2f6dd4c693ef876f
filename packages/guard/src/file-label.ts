/**
 * The label in force for a file: what its tree says, and in the branch of the notes what the note says of itself. A
 * file there that is no note of the index is the most restrictive, so that no door shows more than the notes' own.
 * @clause L4.2
 */
import { MOST_RESTRICTIVE, joinLabels, parseLabel, type Label } from '@csb/core'
import { MEMORY } from '@csb/files'
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
  // a note that was copied there says of itself what it said where it came from
  if (branch !== MEMORY) return labelInForce(view, { home, path, oid, label })
  const id = path.slice(path.lastIndexOf('/') + 1).replace(/\.md$/, '')
  const state = getState(view, home, id)
  return state === undefined || state.path !== path ? MOST_RESTRICTIVE : joinLabels([label, parseLabel(state.label)])
}
