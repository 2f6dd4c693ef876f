/** What the command says about the record: the part of the catalogue that texts.ts takes in. */

export const RECORD_TEXTS = {
  'record.about': 'what was done: tail, verify, prove, export, witnessed, resume',
  'record.tail.about': 'the newest entries',
  'record.verify.about': 'verify the whole record, or a proof without any node',
  'record.verify.proof': 'file of a proof, from csb record prove',
  'record.verify.log': 'did of the node whose record it must be of',
  'record.verify.progress': 'Verifying',
  'record.verified': 'The record verifies: {size} entries, root {root}; {vouched}.',
  'record.proved':
    'The proof holds.\n  entry     {seq} of {size}: {operation}, {outcome}, at {at}\n  actor     {actor}\n  record of {log}\n  root      {root}\n  cosigned  {cosigned}',
  'record.other-log': 'the proof is of the record of another node',
  'record.prove.about': 'write a proof that an entry is in the record',
  'record.prove.out': 'file to write; default: print it',
  'record.prove.done': 'Written to {file}. Anybody verifies it with: csb record verify --proof {file}',
  'record.export.about': 'write every entry as a line of JSON, and the checkpoint last',
  'record.export.out': 'file to write; default: print it',
  'record.export.done': '{entries} entries written to {file}.',
  'record.export.progress': 'Exporting',
  'record.witnessed.about': 'whose records this node vouches for, and what contradicts',
  'record.witnessed.none': 'This node vouches for no record.',
  'record.witnessed.log': '{origin}  {size} entries at {at}{shorter}',
  'record.witnessed.shorter': '; came shorter since: {size} entries at {at}',
  'record.witnessed.contradiction':
    'CONTRADICTION ({kind}) in {origin}, found at {at}. The log signed both:\n{first}\n{second}',
  'record.own.held':
    'THIS RECORD IS HELD ({reason}): it does not bear out what this node signed before, as {witness} showed:\n{checkpoint}',
  'record.resume.about': 'write again after an old backup was restored, as another log',
  'record.resume.after': 'yes, entries are missing, and it is known',
  'record.resume.must':
    'Say --after-restore: entries that were signed are missing, and the record will say so for good.',
  'record.resume.done': 'The record goes on as log {log}, from entry {from}, linked to {origin} at {size} entries.',
  'record.vouched': '{size} settled at {at} by {cosigners}',
  'record.unvouched': 'unwitnessed',
  'record.held': 'HELD: nothing is written, see csb record witnessed',
  'explain.about': 'by what right a commit was made',
  'explain.granted': '{from} granted {to}, {level}',
  'explain.approval': 'approved {by} at {at}, card {card}',
  'explain.no-lease': 'none',
  'explain.nothing': 'nothing',
  'explain.erased': 'erased; that an entry of this form stood there is still proved',
  'explain.by-run': 'The node does not know the commit; it knows the run that the commit names.',
  'explain.no-commit': 'none',
  'explain.basis': 'word of  {id} {hash}',
  'explain.text':
    'commit   {commit}\ndone     {operation} at {at} by {actor}\nrun      {run}\nlease    {lease}\n{chain}\nread     {reads}\nrecord   entry {seq} of {size}, root {root}\nvouched  {vouched}',
} as const
