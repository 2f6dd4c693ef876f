/** csb gate, label: what only the owner lets happen. Nothing is approved by Enter, and nothing that was not shown. */
import type { Command } from 'commander'
import { LIMITS, delay, fail, systemClock } from '@csb/core'
import { decideCard, reviewCard, type Decided, type Deciding, type Review, type ShownCard } from '@csb/node'
import { cardLine, cardText, isRed, unseenParts } from '../card-text.ts'
import { acting, given, labelOf, owning, route, type Stand } from '../context.ts'
import { askWord, inline } from '../terminal.ts'
import { t } from '../texts.ts'
import { forgottenText } from './forget.ts'

type Decision = Deciding['decision']
type Given = { readonly yes?: boolean; readonly digest?: string; readonly words?: string }

/** The command that stands for a decision. */
const VERBS: Readonly<Record<Decision, string>> = { approve: 'approve', reject: 'reject', 'needs-changes': 'return' }
/** Changes printed before the question; a red card is printed whole. */
const SHOWN_CHANGES = 200
/** So many approvals in a row, each given sooner than this after its card was shown, are said to be many. */
const QUICK = 3
/** A card with red on it is looked at for at least this long. */
const DWELL_MS = 3000

export function gateCommands(program: Command): void {
  const gate = program.command('gate').description(t('gate.about'))
  gate
    .command('list')
    .description(t('gate.list.about'))
    .option('--all', t('gate.list.all'))
    .action(
      acting<{ all?: boolean }>(async ({ client, out }, _args, { all }) => {
        const path = route(['v1', 'gate'], all === true ? { all: 'true' } : {})
        const found = await (await client()).call<{ items: ShownCard[] }>('GET', path)
        out.answer(found, found.items.length === 0 ? t('gate.none') : found.items.map(cardLine).join('\n'))
      }),
    )
  gate
    .command('show <card>')
    .description(t('gate.show.about'))
    .action(
      acting<object, [string]>(async ({ client, out }, [id]) => {
        const review = await reviewCard(await client(), id)
        out.answer(review, cardText(review))
      }),
    )
  for (const decision of ['approve', 'reject'] as const) {
    gate
      .command(`${decision} <card>`)
      .description(t(`gate.${decision}.about`))
      .option('--yes', t('gate.yes'))
      .option('--digest <digest>', t('gate.digest'))
      .action(owning<Given, [string]>((stand, [id], options) => decideOn(stand, id, decision, options)))
  }
  gate
    .command('return <card>')
    .description(t('gate.needs-changes.about'))
    .option('--words <text>', t('gate.words'))
    .option('--yes', t('gate.yes'))
    .option('--digest <digest>', t('gate.digest'))
    .action(owning<Given, [string]>((stand, [id], options) => decideOn(stand, id, 'needs-changes', options)))
  labelCommands(program)
}

function labelCommands(program: Command): void {
  const label = program.command('label').description(t('label.about'))
  label
    .command('file <branch> <path>')
    .description(t('label.file.about'))
    .argument('<label>', t('option.label'), labelOf)
    .action(
      acting<object, [string, string, string]>(async ({ client, out }, [branch, path, text]) => {
        const done = await (await client()).call('PUT', '/v1/files/label', { branch, path, label: text })
        out.answer(done, t('label.done', { what: inline(path), label: text }))
      }),
    )
  label
    .command('note <id>')
    .description(t('label.note.about'))
    .argument('<label>', t('option.label'), labelOf)
    .action(
      acting<object, [string, string]>(async ({ client, out }, [id, text]) => {
        const done = await (await client()).call('PUT', route(['v1', 'memory', id, 'label']), { label: text })
        out.answer(done, t('label.done', { what: inline(id), label: text }))
      }),
    )
}

async function decideOn({ client, desk, out, isJson }: Stand, id: string, decision: Decision, options: Given) {
  const review = await reviewCard(await client(), id)
  const shownAt = systemClock.now()
  // a digest that was typed is one that was looked at: --yes alone says nothing of what it is said to
  const { digest, yes, words } = options
  if (digest !== undefined && digest !== review.digest) fail('GATE_STALE', { card: id, field: 'card' })
  if (yes === true) {
    if (digest === undefined) fail('INVALID_INPUT', { option: '--yes', needs: '--digest' })
  } else {
    if (isJson) fail('INVALID_INPUT', { reason: 'no_terminal', card: id, decision: VERBS[decision] })
    out.notice(cardText(review, SHOWN_CHANGES))
    if (review.quick >= QUICK) out.notice(t('gate.quick', { count: review.quick, seconds: LIMITS.gateQuickMs / 1000 }))
    if (!(await isMeant(review, decision))) {
      out.answer({ card: id, outcome: 'left' }, t('gate.left', { card: id }))
      return
    }
  }
  out.answer(...toldOf(await decideCard(await desk(), { review, decision, ...given({ words }), shownAt })))
}

function toldOf(done: Decided): [Decided, string] {
  if (done.outcome === 'returned') return [done, t('gate.done.returned', done)]
  if (done.outcome !== 'approved') return [done, t('gate.done.rejected', done)]
  if (done.forgotten !== undefined) return [done, forgottenText(done)]
  if (done.until === undefined) return [done, t('gate.done.approved', done)]
  return [done, t('gate.done.mint', { card: done.card, until: new Date(done.until).toISOString() })]
}

/**
 * Does the person type what stands for this decision? What deletes, lowers a label or is red takes the target's name, and
 * a red card whose words the node does not show to their end takes a word on that first.
 */
async function isMeant(review: Review, decision: Decision): Promise<boolean> {
  const { card } = review
  const isGrave = decision === 'approve' && (isRed(card) || card.changes.delete > 0 || card.kind !== 'merge')
  if (isGrave) await delay(DWELL_MS)
  const unseen = isGrave && isRed(card) ? unseenParts(review) : 0
  if (unseen > 0 && (await asked(review, decision, t('gate.unseen', { count: unseen }))) !== String(unseen))
    return false
  const word = isGrave ? wordFor(card) : t(`gate.word.${decision}`)
  const typed = await asked(review, decision, t(`gate.question.${decision}`, { word: `"${inline(word)}"` }))
  return typed === word
}

/** What stands for a card: its target, or of a key the end that is shown beside every name. */
function wordFor({ kind, target }: Review['card']): string {
  return kind === 'mint' && target.startsWith('did:key:') ? target.slice(-8) : target
}

async function asked({ card }: Review, decision: Decision, question: string): Promise<string> {
  const typed = await askWord(question)
  return typed ?? fail('INVALID_INPUT', { reason: 'no_terminal', card: card.id, decision: VERBS[decision] })
}
