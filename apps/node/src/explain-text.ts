/** What stands behind a commit, in words: run, lease and who granted what, approval, what was read, what a merge brought in. */
import { formatLabel, type Label, type Lease } from '@csb/core'
import { named } from './context.ts'
import { leaseLines } from './lease-text.ts'
import { inline } from './terminal.ts'
import { t } from './texts.ts'
import { settledText, type Settled } from './vouched.ts'

const SHOWN_READS = 40

type Party = { readonly name: string; readonly did: string }

type Chain = {
  readonly hash: string
  readonly chain: readonly {
    readonly id: string
    readonly from: Party
    readonly to: Party
    readonly level: string
    readonly lease: Lease | null
    readonly expiresAt: number | null
    readonly revoked: boolean
  }[]
}

type Read = { readonly path: string; readonly oid: string; readonly label: Label }

/** What was read before under the same lease. */
type Earlier = { readonly reads: readonly Read[]; readonly erased: number; readonly more: number }

type Listed = { readonly reads: readonly Read[] | null; readonly readCount: number; readonly earlier: Earlier }

type Merged = {
  readonly commit: string
  readonly entry:
    | (Listed & {
        readonly actor: { readonly did: string | null; readonly name: string | null }
        readonly run: string | null
      })
    | null
}

/** What the node says of a commit or a run. */
export type Explained = {
  readonly commit: string | null
  readonly seq: number
  readonly at: number
  readonly operation: string
  readonly actor: { readonly did: string | null; readonly name: string | null }
  readonly run: string | null
  readonly lease: Chain | null
  readonly basis: Chain | null
  readonly approval: {
    readonly card: string
    readonly approver: { readonly name: string | null; readonly did: string }
    readonly decidedAt: number
  } | null
  readonly readCount: number
  readonly reads: readonly Read[] | null
  readonly earlier: Earlier
  readonly merged: readonly Merged[]
  readonly mergedMore: boolean
  readonly imported: {
    readonly home: string
    readonly node: { readonly did: string; readonly name: string | null }
    readonly signed: boolean
  } | null
  readonly inclusion: { readonly size: number; readonly root: string; readonly proof: readonly string[] } | null
  readonly settled: Settled | null
}

/** The answer in words, for a person. */
export function explainedText(found: Explained): string {
  const { commit, operation, actor, run: runId, lease, basis, seq, inclusion, settled } = found
  return t('explain.text', {
    commit: commit ?? t('explain.no-commit'),
    operation,
    at: new Date(found.at).toISOString(),
    actor: actor.name === null ? actor.did : inline(actor.name),
    run: runId,
    lease: lease?.hash ?? t('explain.no-lease'),
    chain: [...chainText(lease), ...basisText(basis), ...approvalOf(found)].map((line) => `\n${line}`).join(''),
    reads: readsText(found),
    merged: mergedText(found),
    record:
      inclusion === null
        ? importedText(found)
        : t('explain.record', {
            seq,
            size: inclusion.size,
            root: inclusion.root,
            hashes: inclusion.proof.length,
            vouched: settledText(settled),
          }),
  })
}

/** Of another node's record: what can be said of it here, and what not. */
function importedText({ imported, seq, reads }: Explained): string {
  if (imported === null) return ''
  const { home, node, signed } = imported
  return t('explain.imported', {
    seq,
    home,
    node: named(node.name ?? '', node.did).trim(),
    checked: t(signed ? 'explain.signed' : 'explain.unsigned'),
    payload: t(reads === null ? 'explain.no-payload' : 'explain.payload'),
  })
}

/** Who granted what to whom, root first. */
function chainText(chain: Chain | null): string[] {
  return (chain?.chain ?? []).flatMap(({ from, to, level, revoked, lease, expiresAt }) => {
    const granted = t('explain.granted', { from: named(from.name, from.did), to: named(to.name, to.did), level })
    const until = t('explain.until', { until: expiresAt === null ? t('gate.ever') : new Date(expiresAt).toISOString() })
    const may = lease === null ? [t('explain.voice')] : leaseLines(lease)
    return [`${granted}${revoked ? t('grants.revoked') : ''}`, ...[...may, until].map((line) => `  ${line}`)].map(
      (line) => `         ${line}`,
    )
  })
}

/** On whose word it was done, where the lease alone does not tell. */
function basisText(basis: Chain | null): string[] {
  if (basis === null) return []
  const id = basis.chain.at(-1)?.id ?? ''
  return [t('explain.basis', { id: inline(id), hash: basis.hash }), ...chainText(basis)]
}

/** Each thing with its label, as many as a person reads; the JSON has them all. */
function readsText(listed: Listed): string {
  return [...ownReads(listed), ...earlierReads(listed.earlier)].join('\n         ')
}

function ownReads({ reads, readCount, earlier }: Listed): string[] {
  if (reads === null) return [t('explain.erased', { count: readCount })]
  if (readCount === 0) return isAny(earlier) ? [] : [t('explain.nothing')]
  return [
    ...linesOf(reads),
    ...(reads.length < readCount ? [t('explain.lost', { count: readCount - reads.length })] : []),
  ]
}

const isAny = ({ reads, erased, more }: Earlier): boolean => reads.length + erased + more > 0

function earlierReads(earlier: Earlier): string[] {
  const { reads, erased, more } = earlier
  if (!isAny(earlier)) return []
  return [
    t('explain.earlier', { count: reads.length }),
    ...linesOf(reads).map((line) => `  ${line}`),
    ...(more === 0 ? [] : [`  ${t('explain.earlier-more', { count: more })}`]),
    ...(erased === 0 ? [] : [`  ${t('explain.earlier-erased', { count: erased })}`]),
  ]
}

function linesOf(reads: readonly Read[]): string[] {
  const lines = reads
    .slice(0, SHOWN_READS)
    .map(({ path, label }) => t('explain.read', { path: inline(path), label: formatLabel(label) }))
  if (reads.length > SHOWN_READS) lines.push(t('explain.more', { count: reads.length - SHOWN_READS }))
  return lines
}

/** What a merge brought in: each commit with who made it, in which run, and what that had read. */
function mergedText({ merged, mergedMore }: Explained): string {
  const lines = merged.flatMap(({ commit, entry }) => {
    if (entry === null) return [t('explain.merged-unknown', { commit })]
    const { actor, run: id } = entry
    const by = actor.name === null ? (actor.did ?? '') : inline(actor.name)
    return [
      t('explain.merged', { commit, by, run: id ?? '' }),
      ...readsText(entry)
        .split('\n')
        .map((line) => `  ${line.trim()}`),
    ]
  })
  if (mergedMore) lines.push(t('explain.merged-more'))
  return lines.length === 0 ? '' : `\nmerged   ${lines.join('\n         ')}`
}

function approvalOf({ approval }: Explained): string[] {
  if (approval === null) return []
  const { card, approver, decidedAt } = approval
  const by = named(approver.name ?? '', approver.did).trim()
  return [t('explain.approval', { by, at: new Date(decidedAt).toISOString(), card: inline(card) })]
}
