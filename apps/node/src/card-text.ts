/**
 * A gate card in words: everything that is signed, and what it is about. Each value that somebody else chose is
 * quoted and escaped for itself, so that none can pass for a line of the card.
 */
import type { Review } from '@csb/node'
import { named } from './context.ts'
import { inline } from './terminal.ts'
import { t, type TextKey } from './texts.ts'

type Card = Review['card']
type Change = Review['changes'][number]
type CardLease = NonNullable<Card['asked_by']['lease']>

/** Lines of a text that are printed with a question; `csb gate show` prints all that the node shows. */
const TEXT_LINES = 60

/** Deletions and labels are looked at first. */
const ORDER = ['delete', 'label', 'change', 'rename', 'add']
const DIGEST_CHARS = 19
/** The label of no reads at all. */
const UNREAD = 'public:owner'
/** The mode by which git spells one. */
const SUBMODULE = '160000'

export const isRed = ({ risks }: Card): boolean => risks.some(({ severity }) => severity === 'red')

/**
 * @param most changes that are printed of a card without red, and {@link TEXT_LINES} lines of each; a red one is
 *   printed whole
 */
export function cardText(
  { card, digest, state, field, changes, texts }: Review,
  most = Number.POSITIVE_INFINITY,
): string {
  const sorted = changes.toSorted((a, b) => ORDER.indexOf(a.op) - ORDER.indexOf(b.op))
  const shown = isRed(card) ? sorted : sorted.slice(0, most)
  const left = sorted.length - shown.length
  const behind = new Map(texts.map((text) => [text.path, text]))
  const lines = isRed(card) || most === Number.POSITIVE_INFINITY ? Number.POSITIVE_INFINITY : TEXT_LINES
  const { lease } = card.asked_by
  return t('gate.card', {
    meaning: inline(card.meaning),
    id: inline(card.id),
    home: inline(card.home),
    owner: quoted(card.owner.name, card.owner.did),
    target: quote(card.target),
    source: quote(card.source),
    asker: quoted(card.asked_by.name, card.asked_by.did),
    exec: inline(card.exec),
    askerLease: leaseText(lease),
    makers: makersText(card),
    facts: factsText(card),
    risks: risksText(card),
    ...card.changes,
    conflicts: card.conflicts,
    changes: [
      ...shown.map((change) => changeText(change) + behindText(behind.get(change.path), card.id, lines)),
      ...(left > 0 ? [t('gate.more', { count: left, card: inline(card.id) })] : []),
    ].join('\n'),
    base: inline(card.base),
    head: inline(card.head),
    tree: card.result_tree === null ? '-' : inline(card.result_tree),
    diff: inline(card.diff),
    labels: card.labels.map(inline).join(', '),
    taint: card.taint ? t('yes') : '-',
    lease: lease === null ? '-' : inline(lease.hash),
    policy: inline(card.policy),
    size: card.log.size,
    root: inline(card.log.root),
    digest,
    state: t('gate.state', { state, field: field === null ? '' : `: ${inline(field)}` }),
    until: new Date(card.expires_at).toISOString(),
  })
}

/** One line for a list. */
export function cardLine({ card, digest, state }: Omit<Review, 'changes' | 'texts'>): string {
  const red = card.risks.filter(({ severity }) => severity === 'red').map(({ id }) => inline(id))
  const risks = red.length === 0 ? '' : `  RED ${red.join(', ')}`
  return `${inline(card.id)}  ${state.padEnd(8)}  ${digest.slice(0, DIGEST_CHARS)}  ${inline(card.meaning)}${risks}`
}

const quote = (text: string): string => `"${inline(text)}"`

/** A name is never shown without the end of the key it stands for. */
const quoted = (name: string | null, did: string | null): string =>
  did === null ? quote(name ?? '-') : `"${inline(name ?? '-')}" ${named('', did).trim()}`

function leaseText(lease: CardLease | null): string {
  if (lease === null) return t('gate.no-lease')
  if (lease.chain.length === 0) return t('gate.unknown-lease', { hash: inline(lease.hash) })
  const lines = lease.chain.map(({ from, to, level }, at) =>
    t('gate.granted', {
      from: quoted(from.name, from.did),
      to: quoted(to.name, to.did),
      level: inline(level),
      revoked: lease.revoked && at === lease.chain.length - 1 ? t('grants.revoked') : '',
    }),
  )
  const reach = lease.lease
  if (reach === null) return lines.join('\n')
  const listed = (list: readonly string[] | undefined) =>
    list === undefined || list.length === 0 ? t('gate.nothing') : list.map(inline).join(' ')
  const may = t('gate.may', {
    actions: listed(reach.actions),
    branches: listed(reach.branches),
    paths: listed(reach.paths),
    labels: inline(reach.labels_max ?? 'public'),
    until: lease.expires_at === null ? t('gate.ever') : new Date(lease.expires_at).toISOString(),
  })
  return [...lines, may].join('\n')
}

function makersText({ made_by: makers, more_makers: more, unrecorded }: Card): string {
  const lines = makers.flatMap(({ run, actor, lease, commits, reads, label, outside, more_outside: further }) => [
    t('gate.maker', {
      run: inline(run ?? '-'),
      actor: actor === null ? '-' : quoted(actor.name, actor.did),
      commits,
      reads: reads === 0 ? t('gate.maker.nothing') : t('gate.maker.reads', { reads }),
      label: reads === 0 && label === UNREAD ? '' : t('gate.maker.label', { label: inline(label) }),
    }),
    ...outside.map((read) => t('gate.outside', { path: quote(read.path), label: inline(read.label) })),
    ...(further > 0 ? [t('gate.more-outside', { count: further })] : []),
    leaseText(lease),
  ])
  if (more > 0) lines.push(t('gate.more-makers', { count: more }))
  if (unrecorded > 0) lines.push(t('gate.unrecorded', { count: unrecorded }))
  return lines.map((line) => `${line}\n`).join('')
}

/** What a forgetting or a minting is about. */
function factsText({ facts }: Card): string {
  if (facts === undefined) return ''
  const lines = facts.kind === 'forget' ? forgetLines(facts) : mintLines(facts)
  return ['', ...lines].map((line) => `${line}\n`).join('')
}

type Facts<Kind> = Extract<NonNullable<Card['facts']>, { readonly kind: Kind }>

function forgetLines({ versions, copies, more_copies: more, holders, records, ...facts }: Facts<'forget'>): string[] {
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
  ]
}

function mintLines({
  operation,
  to,
  lease,
  ttl_ms: ttlMs,
  parent,
  tainted_by: tainted,
  content,
}: Facts<'mint'>): string[] {
  return [
    t('gate.mint', {
      operation: inline(operation),
      to: quoted(to.name, to.did),
      lease: lease === null ? '-' : inline(JSON.stringify(lease)),
      minutes: ttlMs === null ? '-' : Math.ceil(ttlMs / 60_000),
      parent: inline(parent),
      content: content === null ? '-' : inline(content),
      label: inline(tainted.label),
    }),
    ...tainted.reads.map(({ path, label }) => t('gate.mint.read', { path: quote(path), label: inline(label) })),
    ...(tainted.more ? [t('gate.mint.more')] : []),
  ]
}

function risksText({ risks }: Card): string {
  if (risks.length === 0) return t('risk.none')
  const lines = risks.map(({ id, severity, count }) =>
    t('gate.risk', { severity: severity === 'red' ? 'RED  ' : 'amber', text: t(`risk.${id}` as TextKey), count }),
  )
  return lines.join('\n')
}

/** Each line for itself, behind a margin: none can pass for a line of the card, and none can steer the terminal. */
function behindText(text: Review['texts'][number] | undefined, card: string, most: number): string {
  if (text === undefined) return ''
  if (text.text === null) return `\n${t('gate.text.none', { why: t(whyKey(text.why)) })}`
  const lines = text.text === '' ? [] : text.text.split('\n')
  const shown = lines.slice(0, most).map((line) => `    | ${line.split('\t').map(inline).join('\t')}`)
  const here = lines.length - shown.length
  if (here > 0) shown.push(t('gate.text.more', { count: here + text.more_lines, card: inline(card) }))
  else if (text.more_lines > 0) shown.push(t('gate.text.cut', { count: text.more_lines }))
  return shown.map((line) => `\n${line}`).join('')
}

const WHY: ReadonlySet<string> = new Set(['binary', 'large', 'not-there', 'too-much'])
const whyKey = (why = ''): TextKey => `gate.text.${WHY.has(why) ? why : 'not-there'}` as TextKey

type Both = (before: string | number | null, after: string | number | null) => string

/** A submodule has a commit and no size; the commit stands in the text behind the change. */
function sizeText({ mode_old: modeOld, mode_new: modeNew, size_old: before, size_new: after }: Change, both: Both) {
  if (modeOld !== SUBMODULE && modeNew !== SUBMODULE) return t('gate.bytes', { size: both(before, after) })
  const side = (mode: string | null, size: number | null) => {
    if (mode === SUBMODULE) return t('gate.submodule')
    return size === null ? null : t('gate.bytes', { size })
  }
  return both(side(modeOld, before), side(modeNew, after))
}

function changeText(change: Change): string {
  const { op, path, path_old: from } = change
  const both: Both = (before, after) =>
    before === after ? inline(String(after)) : `${inline(String(before ?? '-'))} -> ${inline(String(after ?? '-'))}`
  return t('gate.change', {
    op: op.padEnd(6),
    path: quote(path),
    from: from === undefined ? '' : ` <- ${quote(from)}`,
    size: sizeText(change, both),
    mode: change.mode_old === change.mode_new ? '' : `  mode ${both(change.mode_old, change.mode_new)}`,
    label: `  ${both(change.label_old, change.label_new)}`,
  })
}
