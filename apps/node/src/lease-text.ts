/** What a lease that was handed out holds, one line for each thing that is set, and what its token amounts to. */
import type { Lease } from '@csb/core'
import type { Leased } from '@csb/node'
import { named } from './context.ts'
import { inline } from './terminal.ts'
import { t, type TextKey } from './texts.ts'

/** @param name of whom it is for */
export function leaseText(name: string, { token, hash, did, expiresAt, lease }: Leased): string {
  return [
    t('lease.done', { name: named(name, did), token }),
    ...leaseLines(lease),
    t('lease.has.until', { until: expiresAt === null ? t('gate.ever') : new Date(expiresAt).toISOString() }),
    t('lease.has.hash', { hash }),
    ...(rules(lease) ? [t('lease.rules')] : []),
  ].join('\n')
}

/** What may be done where, in one line. */
export function reachText({
  actions,
  branches,
  paths,
  deny_paths: denied = [],
  labels_max,
  capabilities,
}: Lease): string {
  const all = (list: readonly string[] = []) => (list.length === 0 ? t('gate.nothing') : list.map(inline).join(' '))
  return t('grants.may', {
    actions: all(actions),
    can: capabilities === undefined ? '' : t('grants.can', { capabilities: all(capabilities) }),
    branches: all(branches),
    paths: all(paths),
    denied: denied.length === 0 ? '' : t('grants.but', { denied: all(denied) }),
    labels: labels_max ?? 'public',
  })
}

/** One line for each thing that is set. */
export function leaseLines(lease: Lease): string[] {
  const { budget = {}, max_children: children, external } = lease
  const amounts = Object.entries(budget).map(([unit, most]) => `${unit}=${most}`)
  return [
    ...line('lease.has.locations', lease.locations),
    ...line('lease.has.actions', lease.actions),
    ...line('lease.has.capabilities', lease.capabilities),
    ...line('lease.has.gates', lease.gates),
    ...line('lease.has.paths', lease.paths),
    ...line('lease.has.deny', lease.deny_paths),
    ...line('lease.has.branches', lease.branches),
    ...line('lease.has.level', listed(lease.labels_max)),
    ...line('lease.has.tags', lease.label_tags),
    ...line('lease.has.floor', listed(lease.label_floor)),
    ...line('lease.has.external', external === 'deny' ? [external] : []),
    ...line('lease.has.budget', amounts),
    ...line('lease.has.children', listed(children)),
  ]
}

/** May its holder do what only who rules the node may? */
const rules = ({ actions, gates = [], capabilities = [] }: Lease): boolean =>
  actions.includes('exec') && capabilities.includes('C') && !gates.includes('exec')

const line = (key: TextKey, values: readonly string[] = []): string[] =>
  values.length === 0 ? [] : [t(key, { values: values.map(inline).join(', ') })]

const listed = (value: string | number | undefined): string[] => (value === undefined ? [] : [String(value)])
