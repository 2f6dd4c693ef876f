/**
 * A gate card in words: everything that is signed, and what it is about. Each value that somebody else chose is
 * quoted and escaped for itself, so that none can pass for a line of the card.
 */
import type { Review, ShownCard } from '@csb/node'
import { factsText, quote, quoted } from './card-facts.ts'
import { margined } from './card-lines.ts'
import { leaseLines } from './lease-text.ts'
import { inline } from './terminal.ts'
import { hasText, t, type TextKey } from './texts.ts'

type Card = Review['card']
type Change = Review['changes'][number]
type CardLease = NonNullable<Card['asked_by']['lease']>

/** Lines of a text that are printed with a question; `csb gate show` prints all that the node shows. */
const TEXT_LINES = 60

/** Deletions and labels are looked at first, and what leaves the node. */
const ORDER = ['delete', 'label', 'send', 'change', 'rename', 'add']
const DIGEST_CHARS = 19
/** The label of no reads at all. */
const UNREAD = 'public:owner'
/** The mode by which git spells one. */
const SUBMODULE = '160000'

export const isRed = ({ risks }: Card): boolean => risks.some(({ severity }) => severity === 'red')

/** Lines and whole texts that the node does not show with the card: who approves it has not read them here. */
export const unseenParts = ({ texts }: Review): number =>
  texts.reduce((sum, { text, more_lines: more }) => sum + more + (text === null ? 1 : 0), 0)

/**
 * @param most changes that are printed of a card without red, and {@link TEXT_LINES} lines of each; a red one is
 *   printed whole
 */
export function cardText(
  { card, digest, state, field, left: budget, changes, texts }: Review,
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
    door: inline(card.asked_by.door),
    askerLease: [leaseText(lease, true), ...leftLines(budget)].join('\n'),
    makers: makersText(card),
    explain: card.kind === 'merge' ? `${t('gate.explain', { head: inline(card.head) })}\n` : '',
    facts: factsText(card, lines),
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
    witnessed: witnessedText(card),
    digest: inline(digest),
    state: t('gate.state', { state: inline(state), field: field === null ? '' : `: ${inline(field)}` }),
    until: new Date(card.expires_at).toISOString(),
  })
}

/** One line for a list. */
export function cardLine({ card, digest, state }: ShownCard): string {
  const red = card.risks.filter(({ severity }) => severity === 'red').map(({ id }) => inline(id))
  const risks = red.length === 0 ? '' : t('gate.line.red', { risks: red.join(', ') })
  return `${inline(card.id)}  ${inline(state).padEnd(8)}  ${inline(digest.slice(0, DIGEST_CHARS))}  ${inline(card.meaning)}${risks}`
}

/** @param isWhole one line for each thing that the lease says, as of whoever asks */
function leaseText(lease: CardLease | null, isWhole = false): string {
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
  if (isWhole) return [...lines, ...leaseLines(reach).map((line) => `         ${line}`), untilText(lease)].join('\n')
  const may = t('gate.may', {
    actions: listed(reach.actions),
    branches: listed(reach.branches),
    paths: listed(reach.paths),
    labels: inline(reach.labels_max ?? 'public'),
    until: lease.expires_at === null ? t('gate.ever') : new Date(lease.expires_at).toISOString(),
  })
  return [...lines, may].join('\n')
}

function leftLines(left: Review['left']): string[] {
  const amounts = Object.entries(left).map(([unit, amount]) => `${inline(unit)}=${amount}`)
  return amounts.length === 0 ? [] : [t('gate.left-now', { values: amounts.join(', ') })]
}

const untilText = ({ expires_at: at }: CardLease): string =>
  t('gate.until', { until: at === null ? t('gate.ever') : new Date(at).toISOString() })

function witnessedText({ witnessed }: Card): string {
  if (witnessed === null) return t('gate.witnessed.nobody')
  const { size, at, by } = witnessed
  const names = by.map(({ name, did }) => quoted(name, did)).join(', ')
  return t('gate.witnessed', { size, by: names, at: new Date(at).toISOString() })
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

function risksText({ risks }: Card): string {
  if (risks.length === 0) return t('risk.none')
  const lines = risks.map(({ id, severity, count }) =>
    t('gate.risk', {
      severity: t(severity === 'red' ? 'gate.severity.red' : 'gate.severity.amber'),
      text: riskText(id),
      count,
    }),
  )
  return lines.join('\n')
}

/** One that this command has no words for yet is told by its name. */
function riskText(id: string): string {
  const key = `risk.${id}`
  return hasText(key) ? t(key) : inline(id)
}

/** The words behind a change, below it. */
function behindText(text: Review['texts'][number] | undefined, card: string, most: number): string {
  if (text === undefined) return ''
  if (text.text === null) return `\n${t('gate.text.none', { why: t(whyKey(text.why)) })}`
  const { lines, left } = margined(text.text, most)
  const count = left + text.more_lines
  if (left > 0) lines.push(t('gate.text.more', { count, card: inline(card) }))
  else if (count > 0) lines.push(t('gate.text.cut', { count }))
  return lines.map((line) => `\n${line}`).join('')
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
    op: inline(op).padEnd(6),
    path: quote(path),
    from: from === undefined ? '' : ` <- ${quote(from)}`,
    size: sizeText(change, both),
    mode: change.mode_old === change.mode_new ? '' : `  mode ${both(change.mode_old, change.mode_new)}`,
    label: `  ${both(change.label_old, change.label_new)}`,
    // what leaves the node is named by its bytes too
    sha256: op === 'send' ? t('gate.sha256', { sha256: inline(change.sha256_new ?? '-') }) : '',
  })
}
