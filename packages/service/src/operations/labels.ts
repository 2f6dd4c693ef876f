/**
 * Labels of files and notes that are there already. A label is raised at once; where anything would become less
 * strict in level, integrity or tags, a person decides at the gate.
 * @clause L3.2
 */
import { dominates, fail, formatLabel, isNodeError, parseLabel } from '@csb/core'
import { isLowered } from '@csb/authority'
import { MEMORY, applyRelabel, labelAt, previewRelabel, validatePath, type RelabelPreview } from '@csb/files'
import { getNote, getState, relabelNote } from '@csb/memory'
import { known, noteCommit, writeShown } from '../git/ids.ts'
import { authorOf, trailersOf } from '../session/authorship.ts'
import { isOfOwner } from '../session/foreign-home.ts'
import { askGate } from '../gate/gates.ts'
import { homeOf, locationOf, type Context, type Operation, type Parts } from '../operation.ts'

type OfFile = { readonly home?: string; readonly branch: string; readonly path: string; readonly label: string }
type OfNote = { readonly home?: string; readonly id: string; readonly label: string }

export const labelOperations: readonly Operation[] = [
  {
    name: 'files.label',
    input: 'FilesLabel',
    kind: 'write',
    open: 'lease',
    needs: (input: OfFile, parts: Parts) => ({
      location: locationOf(parts, homeOf(input, parts)),
      action: 'write' as const,
      branch: input.branch,
      path: `/${validatePath(input.path)}`,
      label: parseLabel(input.label),
    }),
    run: (context: Context, input: OfFile) => labelFile(context, input),
  },
  {
    name: 'memory.label',
    input: 'MemoryLabel',
    kind: 'write',
    open: 'lease',
    needs: (input: OfNote, parts: Parts) => ({
      location: locationOf(parts, homeOf(input, parts)),
      action: 'write' as const,
      branch: MEMORY,
      path: '/notes',
      label: parseLabel(input.label),
    }),
    run: (context: Context, input: OfNote) => labelNote(context, input),
  },
]

async function labelFile(context: Context, input: OfFile) {
  const home = homeOf(input, context)
  const { branch, path } = input
  if (branch === MEMORY) fail('PROTECTED', { branch: MEMORY, reason: 'notes bear their own labels' })
  const label = parseLabel(input.label)
  const { base, files } = previewSeen(context, { home, branch, path, label })
  if (files.some(isLowered))
    return askGate(context, { kind: 'lower-label', home, branch, path, label: formatLabel(label) })
  const words = {
    author: authorOf(context),
    message: `label ${path}`,
    trailers: trailersOf(context),
    now: context.clock.now(),
  }
  const { told } = await writeShown(
    context,
    home,
    [branch],
    async (tx, ids) => {
      const { commit } = applyRelabel(tx, { ...words, home, branch, path, label, expect: base })
      return { commit, told: known({ commit: await ids.shown(commit) }) }
    },
    ({ commit }) => ({ home, branch, commit, label: formatLabel(label) }),
  )
  return told
}

/** What may not be seen looks like what is not there. @throws NOT_FOUND, INVALID_INPUT, PROTECTED */
function previewSeen({ view, clearance }: Context, asked: Parameters<typeof previewRelabel>[1]): RelabelPreview {
  const { home, branch: at, path } = asked
  try {
    const preview = previewRelabel(view, asked)
    const labels = preview.files.map(({ label_old: before }) => parseLabel(before))
    const isSeen = [labelAt(view, { home, at, path }).label, ...labels].every((own) => dominates(clearance, own))
    if (isSeen) return preview
  } catch (error) {
    if (!isNodeError(error, 'NOT_FOUND')) throw error
  }
  return fail('NOT_FOUND', { path })
}

async function labelNote(context: Context, input: OfNote) {
  const home = homeOf(input, context)
  const { id } = input
  const label = parseLabel(input.label)
  const before = getNote(context.view, home, id, context.clearance)
  if (isLowered({ label_old: formatLabel(before.label), label_new: formatLabel(label) })) {
    // whoever decides on it here, no other node would follow
    if (!isOfOwner(context, context.view, home))
      fail('DENIED', { home, id, reason: "only the owner's nodes make a label less strict" })
    return askGate(context, { kind: 'lower-label', home, note: id, label: formatLabel(label) })
  }
  const done = await context.write(
    (tx) => {
      // what is above the note's label now may be below the one it was given meanwhile
      const now = getState(tx, home, id)?.label
      if (now !== undefined && isLowered({ label_old: now, label_new: formatLabel(label) }))
        fail('CONFLICT', { home, id })
      const { commit } = relabelNote(tx, {
        home,
        id,
        label,
        clearance: context.clearance,
        actor: context.key.did,
        ofOwner: isOfOwner(context, tx, home),
        author: authorOf(context),
        message: 'label a note',
        trailers: trailersOf(context),
        now: context.clock.now(),
      })
      return { commit }
    },
    ({ commit }) => ({ home, branch: MEMORY, commit, note: id, label: formatLabel(label) }),
  )
  return noteCommit(context, done.commit)
}
