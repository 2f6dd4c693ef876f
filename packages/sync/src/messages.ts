/**
 * What the two sides of a sync session say. Plain JSON values in order; no socket is known here.
 *
 * Both sides say the same things at the same time: hello, tombstones, then per compartment that differs
 * a list, then what they want, then notes, then done.
 */
import { LIMITS, fail } from '@csb/core'

/** One compartment: all live and softly deleted notes with exactly this label. Equal roots mean equal sets. */
export type CompartmentSummary = { readonly label: string; readonly count: number; readonly root: string }

/** `[note id, hlc, actor did, blob oid]` */
export type Row = readonly [id: string, hlc: string, actor: string, oid: string]

export type SyncMessage =
  | { readonly type: 'hello'; readonly compartments: readonly CompartmentSummary[]; readonly tombstones: string }
  | { readonly type: 'tombstones'; readonly items: readonly unknown[]; readonly last: boolean }
  | { readonly type: 'list'; readonly label: string; readonly rows: readonly Row[]; readonly last: boolean }
  | { readonly type: 'want'; readonly ids: readonly string[]; readonly last: boolean }
  | {
      readonly type: 'notes'
      readonly items: readonly string[]
      readonly gone: readonly string[]
      readonly last: boolean
    }
  | { readonly type: 'done'; readonly compartments: readonly CompartmentSummary[]; readonly tombstones: string }

type Kind = SyncMessage['type']
type Of<K extends Kind> = Extract<SyncMessage, { type: K }>

/**
 * Check that the next message is of the kind that is due and within its bounds.
 * @throws PEER_MISBEHAVED
 */
export function expectMessage<K extends Kind>(kind: K, value: unknown): Of<K> {
  const message = value as Partial<SyncMessage> | null | undefined
  if (typeof message !== 'object' || message === null || message.type !== kind || !isSound(message as SyncMessage)) {
    fail('PEER_MISBEHAVED', { expected: kind })
  }
  return message as Of<K>
}

function isSound(message: SyncMessage): boolean {
  switch (message.type) {
    case 'hello':
    case 'done':
      return isText(message.tombstones) && isList(message.compartments, isSummary)
    case 'tombstones':
      return isList(message.items, (item) => typeof item === 'object' && item !== null)
    case 'list':
      return isText(message.label) && isList(message.rows, isRow)
    case 'want':
      return isList(message.ids, isText)
    case 'notes':
      return isList(message.items, isText) && isList(message.gone, isText)
    default:
      return false
  }
}

const isText = (value: unknown): value is string => typeof value === 'string' && value.length <= LIMITS.syncNoteBytes

const isList = (value: unknown, isItem: (item: unknown) => boolean): boolean =>
  Array.isArray(value) && value.length <= LIMITS.syncPageRows && value.every(isItem)

const isRow = (value: unknown): boolean => Array.isArray(value) && value.length === 4 && value.every(isText)

function isSummary(value: unknown): boolean {
  const { label, count, root } = (value ?? {}) as Partial<CompartmentSummary>
  return isText(label) && isText(root) && Number.isSafeInteger(count)
}
