export { levelOf, normaliseEntry, type LevelMap, type Normalised } from './entry.ts'
export type { Warning } from './fields.ts'
export { nextHlc } from './hlc.ts'
export { parseNote, renderNote, type Note } from './note.ts'
export { notePath } from './paths.ts'
export { putNotes, removeNotes, type Put, type PutNotes, type WriteWords } from './put.ts'
export { getNote, listNotes, type ListNotes, type NotePage } from './read.ts'
export { getState, listStates, rebuildIndex, type NoteState } from './states.ts'
export {
  createNotes,
  deleteNote,
  restoreNote,
  type ChangeNote,
  type Created,
  type CreateNotes,
  type NoteInput,
} from './write.ts'
export type { ImportItem } from './import-item.ts'
export { readTranscript } from './transcript.ts'
export { readVault } from './vault.ts'
