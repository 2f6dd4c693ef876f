/**
 * csb forget: notes go for good. The node says what that takes along and what it does not reach; the owner's key
 * approves exactly that, once. The notes were named by whoever typed them, so `--yes` says what it is said to.
 */
import type { Command } from 'commander'
import { fail, systemClock } from '@csb/core'
import { askToForget, decideCard, type Decided } from '@csb/node'
import { branchesText, peersText } from '../card-facts.ts'
import { cardText } from '../card-text.ts'
import { acting, given, noteIdOf, type Stand } from '../context.ts'
import { homeIn, withHome, type InHome } from '../homes.ts'
import { checkOwner, isRun } from '../right.ts'
import { askWord } from '../terminal.ts'
import { t } from '../texts.ts'

type Forgetting = InHome & { readonly reason?: string; readonly yes?: boolean; readonly digest?: string }

/** `forget` below the program and below `note` is the same command. */
export function forgetCommand(parent: Command): void {
  withHome(parent.command('forget'))
    .argument('<ids...>', t('forget.ids'), collectIds)
    .description(t('forget.about'))
    .option('--reason <reason>', t('option.reason'))
    .option('--yes', t('forget.yes'))
    .option('--digest <digest>', t('gate.digest'))
    .action(acting<Forgetting, [string[]]>((stand, [ids], options) => forget(stand, ids, options)))
}

const collectIds = (id: string, before: readonly string[] | undefined): string[] => [...(before ?? []), noteIdOf(id)]

async function forget({ client, desk, out, isJson }: Stand, ids: string[], options: Forgetting): Promise<void> {
  const { reason, yes, digest } = options
  if (yes === true || digest !== undefined) checkOwner()
  const node = await client()
  const asked = { ids, ...(await homeIn(node, options)), ...given({ reason }) }
  // it is refused with the card that waits for the owner, which a run may not look at
  if (isRun()) await node.call('POST', '/v1/memory/forget', asked)
  const review = await askToForget(node, asked)
  const shownAt = systemClock.now()
  const { id } = review.card
  if (digest !== undefined && digest !== review.digest) fail('GATE_STALE', { card: id, field: 'card' })
  if (yes !== true) {
    if (isJson) fail('INVALID_INPUT', { reason: 'no_terminal', card: id, decision: 'approve' })
    out.notice(cardText(review))
    const word = t('forget.word')
    const typed = await askWord(t('forget.question', { word: `"${word}"` }))
    if (typed === undefined) fail('INVALID_INPUT', { reason: 'no_terminal', card: id, decision: 'approve' })
    if (typed !== word) {
      out.answer({ card: id, outcome: 'left' }, t('forget.left', { card: id }))
      return
    }
  }
  const open = await desk()
  const done = await out.during(
    t('forget.progress', { count: ids.length }),
    decideCard(open, { review, decision: 'approve', shownAt }),
  )
  out.answer(done, forgottenText(done))
}

/** What went, what is left, and what nobody here can reach. */
export function forgottenText({ card, forgotten = [], report = [], derived }: Decided): string {
  const sum = (of: (one: (typeof report)[number]) => number) => report.reduce((total, one) => total + of(one), 0)
  const files = report.flatMap(({ remains }) => remains)
  const kinds = [...new Set(report.flatMap(({ not_covered: kept }) => kept.map(({ kind }) => kind)))]
  return t('forget.done', {
    ids: forgotten.join(', '),
    card,
    versions: sum(({ cleared }) => cleared),
    records: sum(({ records }) => records),
    scan: files.length === 0 ? t('note.scan.clean') : t('note.scan.remains', { files: files.join(', ') }),
    kinds: kinds.join(', '),
    derived: derived === undefined ? '' : leftText(derived),
  })
}

/** What may hold words made from what went. */
function leftText(derived: NonNullable<Decided['derived']>): string {
  const { commits, handed } = derived
  return [
    ...(commits > 0 ? [t('forget.derived', { branches: branchesText(derived), commits })] : []),
    ...(handed.length > 0 ? [t('forget.handed', { peers: peersText(derived) })] : []),
  ]
    .map((line) => `${line}\n`)
    .join('')
}
