/** What csb key says: the part of the catalogue that texts.ts takes in. */

export const KEY_TEXTS = {
  'key.about': "the owner's key: show, seal, rotate, compromise, take",
  'key.seal.about': 'put it behind a passphrase',
  'key.seal.done': 'Sealed.',
  'key.show.about': 'show the key of the owner and of the node, and the keys before',
  'key.rotate.about': 'let a new key follow; what the old one granted holds until it expires',
  'key.compromise.about': 'the key is in other hands: a new one follows, and all that the old one granted is void',
  'key.compromise.which': 'a former key, by its did (default: the one of now, which is changed first)',
  'key.take.about': "take the owner's new key from another node of the owner; this node is stopped",
  'key.take.from': 'folder of a node that has it',
  'key.unsealed': 'leave the new key without a passphrase',
  'key.yes': 'ask nothing',
  'key.owner': 'owner  {owner}\n  key    {did}, {kept}\n  signs what is granted, and decides at the gate',
  'key.sealed': 'behind a passphrase',
  'key.open': 'without a passphrase',
  'key.node':
    'node   {node}\n  key    {did}, peer {peer}\n  is its place in the network and does not change: another key is another node\n  (csb init --join {directory}, then csb sync, then csb revoke {grant})',
  'key.hangs.begun':
    'NOTE: a change to {to} was begun and broke off before the node heard of it.\n      The key above counts. To change it run again: csb key rotate',
  'key.hangs.elsewhere':
    'NOTE: the node counts {to} by now, and this folder has the key before it.\n      Stop the node and take that key from where the change was made: csb key take DIR',
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
} as const
