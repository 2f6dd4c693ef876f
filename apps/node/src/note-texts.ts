/** What the command says of notes: the part of the catalogue that texts.ts takes in. */

export const NOTE_TEXTS = {
  'note.about': 'notes of the home: add, list, show, rm, restore, forget',
  'note.add.about': 'remember something',
  'note.list.about': 'list notes, newest first',
  'note.show.about': 'show one note',
  'note.rm.about': 'delete a note; it can be restored for 30 days',
  'note.restore.about': 'take a deletion back',
  'note.added': 'Remembered as {id}.',
  'note.long':
    'A note holds {most} characters, and this has {chars}. Put it into a file: csb import FILE.md takes it in, in parts.',
  'note.remark': '  {path} {from} is none: it became {to}.',
  'note.deleted': 'Deleted {id}. Take it back with: csb note restore {id}',
  'note.restored': 'Restored {id}.',
  'note.scan.clean': 'nothing of it is left',
  'note.scan.remains': 'something is left in {files}',
  'note.none': 'No notes.',
  'note.more': 'There are more: say the same again with --cursor {next}, or a higher --limit.',

  'import.about': 'take in Markdown or text, an Obsidian vault, or a chat',
  'import.progress': 'Taking in notes: {count}',
  'import.done': '{created|note|notes} taken in, {kept|was|were} here already, {skipped|file|files} skipped.',
  'import.warned': '  {path}: {warnings}',
  'import.skipped': '  skipped {path}: {reason}',
} as const
