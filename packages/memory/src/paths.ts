/** Where a note lies in the tree: a pure function of its id, so that equal sets of notes give equal trees. */
import { fail, idTime, isId, sha256Hex } from '@csb/core'

/** The folder of all notes in the branch `memory`. */
export const NOTES_FOLDER = 'notes'

/**
 * @param id `mem_<13 digits>_<tail>`
 * @returns `notes/<YYYY>/<MM>/<2 hex>/<id>.md`, year and month of the id's time in UTC
 * @throws INVALID_INPUT where the text is no note id
 */
export function notePath(id: string): string {
  const time = idTime(id)
  if (!isId('memory', id) || time === undefined) fail('INVALID_INPUT', { reason: 'not a note id' })
  const date = new Date(time)
  const year = String(date.getUTCFullYear()).padStart(4, '0')
  const month = String(date.getUTCMonth() + 1).padStart(2, '0')
  return `${NOTES_FOLDER}/${year}/${month}/${sha256Hex(id).slice(0, 2)}/${id}.md`
}
