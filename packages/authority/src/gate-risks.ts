/**
 * What a person should look at twice, found by fixed rules over the list of changes and the record. No model is
 * asked, and nothing an agent wrote is read but the names of files.
 *
 * The rules have a digest: a card that was drawn by other rules does not hold any more.
 * @clause L1.7
 */
import { canonicalize, compareLevels, digestOf, parseLabel, type Approval } from '@csb/core'
import { NAME_RULES, isMixed } from './gate-names.ts'
import type { ForgetFacts, GateFacts, MintFacts } from './gate-plan.ts'

/** One line of what an act changes. Content by SHA-256, whatever hash the home uses; null where there is none. */
export type GateChange = {
  /** `send`: it goes to another node, and stays here as it is */
  readonly op: 'add' | 'change' | 'delete' | 'rename' | 'label' | 'send'
  readonly path: string
  /** of a rename only */
  readonly path_old?: string
  /** as git spells modes */
  readonly mode_old: string | null
  readonly mode_new: string | null
  readonly sha256_old: string | null
  readonly sha256_new: string | null
  readonly size_old: number | null
  readonly size_new: number | null
  /** `level:integrity[:tags]` */
  readonly label_old: string | null
  readonly label_new: string | null
  /** its bytes are no text, before or afterwards, or were not looked at */
  readonly opaque?: true
}

export type Risk = {
  readonly id: string
  readonly severity: 'red' | 'amber'
  /** how many changes, commits, runs, names or leases it is about */
  readonly count: number
}

/** What the rules look at. */
export type RiskCase = {
  readonly changes: readonly GateChange[]
  /** files that both sides changed and that are kept as both */
  readonly conflicts: number
  /** commits that the record knows nothing of */
  readonly unrecorded: number
  /** runs that had read something external */
  readonly tainted: number
  /** of those, runs whose lease reached sensitive data and could change or send something */
  readonly taintedWithReach: number
  /** runs of somebody whose work was never approved here */
  readonly newActors: number
  /** nothing was approved yet under the lease of whoever asks */
  readonly firstOfLease: number
  /** nobody but this node vouches for the record */
  readonly unwitnessed: number
  /** leases behind it on which there was no young word that they are not revoked */
  readonly stale: number
  /** names of whoever is behind it with letters of several scripts in one word */
  readonly mixedNames: number
  /** names of whoever is behind it that look like the owner's name for somebody else */
  readonly lookalikes: number
  /** of a forgetting or a minting */
  readonly facts: GateFacts | undefined
}

const THRESHOLDS = { deletes: 10, changes: 500, bytes: 10 * 1024 * 1024 } as const

/** Files that steer what happens later, by the way their paths are spelled. */
const PATHS = {
  policy: /^\.csb\/(?!labels\.json$)|(?:^|\/)polic(?:y|ies)(?:\/|\.[^/]+$)/i,
  identity: /(?:^|\/)(?:identity\.json|(?:soul|identity|agents|claude|gemini|skill|memory)\.md|\.cursorrules)$/i,
  automation:
    /(?:^|\/)(?:\.github|\.gitlab|\.circleci|\.husky|\.vscode|\.devcontainer|hooks|cron[^/]*)\/|(?:^|\/)(?:package\.json|makefile|justfile|dockerfile|compose\.ya?ml|\.gitmodules|\.gitattributes|\.envrc|\.npmrc|\.pre-commit-config\.yaml|\.gitlab-ci\.yml)$|\.service$/i,
  program: /\.(?:sh|bash|zsh|fish|ps1|bat|cmd|exe|dll|so|dylib|jar|wasm)$/i,
} as const

const RED = ['policy', 'identity', 'automation'] as const

/**
 * Digest of everything by which cards are drawn and approvals judged.
 * @param own what the node adds: who may approve, which branches are protected
 */
export const policyDigest = (own: Readonly<Record<string, unknown>>): Approval['gate']['policy'] =>
  digestOf(
    canonicalize({
      v: 3,
      own,
      thresholds: THRESHOLDS,
      paths: Object.fromEntries(Object.entries(PATHS).map(([name, { source }]) => [name, source])),
      names: NAME_RULES,
    }),
  )

/** Risks that apply, red ones first, each kind in the order of the rules. */
export function risksOf(about: RiskCase): Risk[] {
  const { changes } = about
  const count = (test: (change: GateChange) => boolean) => changes.filter(test).length
  const deletes = count(({ op }) => op === 'delete')
  const bytes = changes.reduce((sum, { size_new }) => sum + (size_new ?? 0), 0)
  const found: Risk[] = [
    ...RED.map((name) =>
      red(
        `touches-${name}`,
        count(({ path }) => PATHS[name].test(path)),
      ),
    ),
    red('lowers-label', count(isLowered)),
    red('becomes-public', count(becomesPublic)),
    red(
      'may-be-run-now',
      count(({ mode_old, mode_new }) => mode_new === '100755' && mode_old !== '100755'),
    ),
    red(
      'link',
      count(({ mode_new }) => mode_new === '120000'),
    ),
    red('name-in-mixed-letters', count(({ path }) => isMixed(path)) + about.mixedNames),
    red('name-like-another', about.lookalikes),
    red('deletes-many', deletes > THRESHOLDS.deletes ? deletes : 0),
    red('conflicts', about.conflicts),
    ...(about.facts?.kind === 'forget' ? forgetRisks(about.facts) : []),
    ...(about.facts?.kind === 'mint' ? mintRisks(about.facts) : []),
    amber(
      'leaves-this-node',
      count(({ op }) => op === 'send'),
    ),
    red('not-in-the-record', about.unrecorded),
    red('external-with-reach', about.taintedWithReach),
    amber('external', about.tainted),
    amber('deletes', deletes),
    amber(
      'program',
      count(({ path, mode_new }) => mode_new === '100755' || PATHS.program.test(path)),
    ),
    amber(
      'opaque',
      count(({ opaque }) => opaque === true),
    ),
    amber('large', changes.length > THRESHOLDS.changes || bytes > THRESHOLDS.bytes ? changes.length : 0),
    amber('new-actor', about.newActors),
    amber('first-of-lease', about.firstOfLease),
    amber('stale-status', about.stale),
    amber('unwitnessed', about.unwitnessed),
  ]
  const real = found.filter((risk) => risk.count > 0)
  return [...real.filter(({ severity }) => severity === 'red'), ...real.filter(({ severity }) => severity === 'amber')]
}

const forgetRisks = ({ notes, copies, more_copies: more, holders, derived }: ForgetFacts): Risk[] => [
  red('can-not-be-undone', notes),
  amber('copies-stay', copies.length + more),
  amber('others-hold-it', holders.length),
  amber('handed-to-others', derived.handed.length),
  amber('words-may-stay', derived.commits),
]

const mintRisks = ({ tainted_by: { reads }, lease, to, work }: MintFacts): Risk[] => [
  red('authority-after-external', reads.length),
  red('authority-over-others', lease?.capabilities?.includes('C') === true ? 1 : 0),
  amber('unknown-recipient', to.did !== null && to.known === null ? 1 : 0),
  amber('notes-withheld', work === null ? 0 : work.withheld.length + work.more_withheld),
]

/** True where the label after is not as strict as the one before, in level, integrity or tags. */
export function isLowered({ label_old, label_new }: Pick<GateChange, 'label_old' | 'label_new'>): boolean {
  if (label_old === null || label_new === null) return false
  const [before, after] = [parseLabel(label_old), parseLabel(label_new)]
  const rank = { external: 0, agent: 1, owner: 2 } as const
  return (
    compareLevels(after.level, before.level) < 0 ||
    rank[after.integrity] > rank[before.integrity] ||
    !before.tags.every((tag) => after.tags.includes(tag))
  )
}

function becomesPublic({ label_old, label_new }: GateChange): boolean {
  if (label_new === null || parseLabel(label_new).level !== 'public') return false
  return label_old === null || parseLabel(label_old).level !== 'public'
}

const red = (id: string, count: number): Risk => ({ id, severity: 'red', count })
const amber = (id: string, count: number): Risk => ({ id, severity: 'amber', count })
