/** What csb delegate and csb grants say: the part of the catalogue that texts.ts takes in. */

export const GRANT_TEXTS = {
  'delegate.about': "let an agent speak with the owner's authority, or pass on what was received",
  'delegate.from':
    'pass on this grant, which was made out to this node or its owner: id or hash, as csb grants shows it',
  'delegate.level': 'how it is to be treated: inform, request, execute or override (default: request, or as received)',
  'delegate.needs': 'It needs {option}.',
  'delegate.done': '{grantee} may speak for {grantor} at level {level} about {scope}.\n  id    {id}\n  hash  {hash}',
  'delegate.passed':
    '{grantee} may speak for {grantor} at level {level} about {scope}, until {until}, and pass it on {depth} times.\n  by    {way}\n  id    {id}\n  hash  {hash}',
  'delegate.depth': 'how often it may be passed on, each time narrower',
  'delegate.max-age': 'within which time a revocation counts everywhere; default 1m',
  'delegate.lease': 'with --from: pass its lease on too, with what this file says in place of what was received',
  'delegate.lease.only': '--lease goes with --from. A lease of your own is handed out with: csb lease',
  'delegate.send': 'bring it to the node of --to',
  'delegate.sending': 'Bringing it there',
  'grants.about': 'list grants: given, received, passed on',
  'grants.all': 'those that are over, and those of single runs too',
  'grants.none': 'No grants.',
  'grants.line': '{mark} {hash}  {id}  {parties}{revoked}',
  'grants.what': '{level} about {scope}, until {until}{parent}',
  'grants.under': ', under {parent}',
  'grants.used': '{unit} {used} of {most}',
  'grants.passable': '* received, and may be passed on: csb delegate --from ID --to DID',
  'grants.hidden': '{hidden} that are over, or of single runs: csb grants --all',
  'grants.revoked': '  REVOKED',
} as const
