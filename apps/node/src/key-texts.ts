/** What csb key says: the part of the catalogue that texts.ts takes in. */

export const KEY_TEXTS = {
  'key.about': "the owner's key: show, seal, rotate, take, compromise, recover",
  'key.seal.about': 'put it behind a passphrase',
  'key.seal.done': 'Sealed.',
  'key.show.about': 'show the key of the owner and of the node, and the keys before',
  'key.rotate.about': 'let a new key follow; what the old one granted holds until it expires',
  'key.compromise.about': 'the key is in other hands: a new one follows, and all that the old one granted is void',
  'key.compromise.which': 'a former key, by its did (default: the one of now, which is changed first)',
  'key.take.about': "take the owner's new key from another node of the owner",
  'key.take.from': 'folder of a node that has it',
  'key.unsealed': 'leave the new key without a passphrase',
  'key.yes': 'ask nothing',
  'key.owner': 'owner  {owner}\n  key    {did}, {kept}\n  signs what is granted, and decides at the gate',
  'key.sealed': 'behind a passphrase',
  'key.open': 'without a passphrase',
  'key.node':
    'node   {node}\n  key    {did}, peer {peer}\n  is its place in the network and does not change: another key is another node\n  (csb init --join {directory}, then csb sync, then csb revoke each of: {grants})',
  'key.hangs.begun':
    'NOTE: a change to {to} was begun and broke off before the node heard of it.\n      The key above counts. To change it run again: csb key rotate',
  'key.hangs.elsewhere':
    'NOTE: the node counts {to} by now, and this folder has the key before it.\n      If you did that, take the key from where it was done: csb key take DIR\n      If you did not, somebody else has it: csb key recover FILE',
  'key.before': 'before',
  'key.change': '  {at}  {key} was followed by {to}',
  'key.stolen': '  {key} is in other hands: what it granted before {at} is void',
  'key.others': 'of others',
  'key.rotate.progress': 'Changing the key',
  'key.rotate.done':
    'The key is {did} now.\n  before   {before}: what it granted holds until it expires\nWho trusts you by the old key and hears of it trusts you by the new one; tell the others the new did.',
  'key.compromise.done':
    'The key is {did} now.\n  before   {before}: in other hands. {ended} grants of it are void, at every peer that hears of it.\nGrant anew what is still to hold: csb delegate, csb share, csb lease.',
  'key.heard': '  heard    {who}',
  'key.away': '  away     {who}: is told when it comes',
  'key.question':
    'Everything that {key} granted will be void, for ever. Type {word} to go on. Anything else leaves it:',
  'key.word': 'compromise',
  'key.left': 'Nothing was changed.',
  'key.taken': 'This node has the key {did} now. Start it again.',
  'key.taken.running': 'This node has the key {did} now.',
  'key.recovery.about': "a key to get the owner's key back by, kept elsewhere",
  'key.recovery.new.about':
    'make a recovery key, write it to a file outside of the data folder, and name it to the peers',
  'key.recovery.new.file': 'a file that is not there yet',
  'key.recovery.replace': 'file with the recovery key whose place it takes',
  'key.recovery.show.about': 'say whether a recovery key is set, and whether a file holds it',
  'key.recovery.passphrase': 'Passphrase of {file}',
  'key.recovery.made':
    'The recovery key {digest} is in {file}.\nWARNING: keep it and its passphrase away from this machine: it is the only way back, and whoever has both has your key.',
  'key.recovery.none': '  recovery  not set: csb key recovery new FILE',
  'key.recovery.set': '  recovery  {digest}...',
  'key.recovery.is': 'A recovery key is set: {digest}',
  'key.recovery.is.none':
    'No recovery key is set. Who loses the passphrase or the key has no way back: csb key recovery new FILE',
  'key.recovery.file.is': '{file} holds it.',
  'key.recovery.file.not': '{file} holds another one, of {owner}: it recovers nothing.',
  'key.recover.about': 'let a new key follow by the recovery key, where the old one is lost or was changed by a thief',
  'key.recover.file': 'file with the recovery key',
  'key.recover.which': 'the key to recover, by its did (default: the one kept in this folder)',
  'key.recover.stolen.about': 'the old key is in other hands: all that it granted is void',
  'key.recover.progress': 'Recovering the key',
  'key.recover.done':
    'The key is {did} now.\n  before   {before}: what it granted holds until it expires; what was made of it otherwise is void\nWho trusts you by the old key and hears of it trusts you by the new one; tell the others the new did.',
  'key.recover.stolen':
    'The key is {did} now.\n  before   {before}: in other hands. {ended} grants of it are void, at every peer that hears of it.\nGrant anew what is still to hold: csb delegate, csb share, csb lease.',
  'key.recoverable': '  {key} can be recovered by {digest}...',
  'key.recovered': '  {at}  {key} was recovered: {to} follows',
} as const
