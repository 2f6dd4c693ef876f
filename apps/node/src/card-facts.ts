/**
 * What a forgetting or a minting is about, in words: everything of it, each value that somebody else chose quoted and
 * escaped for itself. Nothing is told by a digest alone.
 */
import type { Review } from '@csb/node'
import { margined } from './card-lines.ts'
import { named } from './context.ts'
import { leaseLines } from './lease-text.ts'
import { inline } from './terminal.ts'
import { t } from './texts.ts'

type Card = Review['card']
type Facts<Kind> = Extract<NonNullable<Card['facts']>, { readonly kind: Kind }>

export const quote = (text: string): string => `"${inline(text)}"`

/** A name is never shown without the end of the key it stands for. */
export const quoted = (name: string | null, did: string | null): string =>
  did === null ? quote(name ?? '-') : `"${inline(name ?? '-')}" ${named('', did).trim()}`

/** @param most lines of a text that are given */
export function factsText(card: Card, most: number): string {
  const { facts } = card
  if (facts === undefined) return ''
  const lines = facts.kind === 'forget' ? forgetLines(facts) : mintLines(card, facts, most)
  return ['', ...lines].map((line) => `${line}\n`).join('')
}

/** Who is said to have it: the owner's own name first, and what whoever asks calls it. */
export function partyText({ name, did, known }: Facts<'mint'>['to']): string {
  if (known !== null && known !== name) return t('gate.mint.called', { known: quoted(known, did), to: quote(name) })
  return known === null && did !== null ? t('gate.mint.unknown', { to: quoted(name, did) }) : quoted(name, did)
}

function forgetLines(facts: Facts<'forget'>): string[] {
  const { versions, copies, more_copies: more, holders, records, derived } = facts
  const held = holders.map(({ did, name }) => quoted(name, did))
  return [
    t('gate.forget', {
      notes: facts.notes,
      versions,
      records,
      reason: quote(facts.reason),
      kinds: facts.not_covered.map(inline).join(', '),
    }),
    t('gate.forget.held', { holders: held.length === 0 ? t('gate.nobody') : held.join(', ') }),
    ...copies.map(({ branch, path }) => t('gate.forget.copy', { branch: quote(branch), path: quote(path) })),
    ...(more > 0 ? [t('gate.forget.more', { count: more })] : []),
    ...(derived.commits > 0
      ? [t('gate.forget.derived', { commits: derived.commits, branches: branchesText(derived) })]
      : []),
    ...(derived.handed.length > 0 ? [t('gate.forget.handed', { peers: peersText(derived) })] : []),
  ]
}

type Derived = Facts<'forget'>['derived']

export const branchesText = ({ branches, more_branches: more }: Derived): string =>
  [...branches.map(quote), ...(more > 0 ? [t('gate.forget.derived-more', { count: more })] : [])].join(', ')

export const peersText = ({ handed }: Derived): string => handed.map(({ did, name }) => quoted(name, did)).join(', ')

function mintLines({ nas }: Card, facts: Facts<'mint'>, most: number): string[] {
  const { operation, to, from, lease, token, parent, under, tainted_by: tainted, document } = facts
  return [
    t('gate.mint', { operation: inline(operation), to: partyText(to), time: timeText(facts) }),
    ...(from === null ? [] : [t('gate.mint.from', { from: partyText(from), document: inline(document ?? '-') })]),
    ...(token ? [t('gate.mint.token')] : []),
    grantText(nas, facts),
    ...(lease === null ? [t('gate.mint.no-lease')] : [t('gate.mint.lease'), ...leaseLines(lease).map(indented)]),
    t('gate.mint.parent', { parent: inline(parent) }),
    ...under.map(({ from: by, to: whom, level }) =>
      t('gate.granted', {
        from: quoted(by.name, by.did),
        to: quoted(whom.name, whom.did),
        level: inline(level),
        revoked: '',
      }),
    ),
    ...workLines(facts, most),
    tainted.reads.length === 0 ? t('gate.mint.read-nothing') : t('gate.mint.read-by', { label: inline(tainted.label) }),
    ...tainted.reads.map(({ path, label }) => t('gate.mint.read', { path: quote(path), label: inline(label) })),
    ...(tainted.more ? [t('gate.mint.more')] : []),
  ]
}

const indented = (line: string): string => `         ${line}`

function timeText({ ttl_ms: ttlMs, expires_at: at }: Facts<'mint'>): string {
  if (ttlMs !== null) return t('gate.mint.minutes', { minutes: Math.ceil(ttlMs / 60_000) })
  return at === null ? t('gate.mint.ever') : t('gate.mint.until', { until: new Date(at).toISOString() })
}

function grantText(nas: string, { grant, work }: Facts<'mint'>): string {
  const { level, scope, audience, depth, task, max_age_ms: maxAgeMs } = grant
  const free = work === null ? t('gate.mint.any-task') : t('gate.mint.this-work')
  const node = (did: string) => (did === '*' ? t('gate.mint.anybody') : named('', did).trim())
  return t('gate.mint.grant', {
    level: inline(level),
    scope: scope.map(quote).join(' '),
    audience: audience.map((did) => (did === nas ? t('gate.mint.here') : node(did))).join(', '),
    depth,
    task: task === null ? free : quote(task),
    seconds: Math.ceil(maxAgeMs / 1000),
  })
}

/** Work that goes along: what it says is somebody's words, and stands behind a margin. */
function workLines({ work }: Facts<'mint'>, most: number): string[] {
  if (work === null) return []
  const { lines, left } = margined(work.text, most)
  return [
    t('gate.work', {
      agent: quote(work.agent),
      context: work.context === null ? '-' : quote(work.context),
      chars: Array.from(work.text).length,
    }),
    ...lines,
    ...(left > 0 ? [t('gate.text.left', { count: left })] : []),
    ...work.withheld.map(({ id, label }) => t('gate.work.withheld', { id: inline(id), label: inline(label) })),
    ...(work.more_withheld > 0 ? [t('gate.work.more-withheld', { count: work.more_withheld })] : []),
  ]
}
