/**
 * What the two sides of a sync session say. Plain JSON values in order; no socket is known here.
 *
 * Both sides say the same things at the same time: hello, tombstones where those differ and hello again, then per
 * compartment that differs a list, then what they want, then notes, then done.
 */
import { LIMITS, fail, isId } from '@csb/core'

/** One compartment: all live and softly deleted notes with exactly this label. Equal roots mean equal sets. */
export type CompartmentSummary = { readonly label: string; readonly count: number; readonly root: string }

/** `[note id, hlc, actor did, blob oid]`, and where it has one its label clock in its one spelling */
export type Row = readonly [id: string, hlc: string, actor: string, oid: string, clock?: string]

/** What there is of a home for the other side; `tombstones` is the same on every page. */
type Summary = {
  readonly compartments: readonly CompartmentSummary[]
  readonly tombstones: string
  readonly last: boolean
}

export type SyncMessage =
  | (Summary & { readonly type: 'hello' })
  | { readonly type: 'tombstones'; readonly items: readonly unknown[]; readonly last: boolean }
  | { readonly type: 'list'; readonly label: string; readonly rows: readonly Row[]; readonly last: boolean }
  | { readonly type: 'want'; readonly ids: readonly string[]; readonly last: boolean }
  | {
      readonly type: 'notes'
      /** files of notes as the sender holds them: as they were written, or as two versions came together there */
      readonly items: readonly string[]
      /** ids that the other side holds and may not see any more */
      readonly gone: readonly string[]
      readonly last: boolean
    }
  | (Summary & { readonly type: 'done' })

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
      return (
        isText(message.tombstones) &&
        isPage(message, isList(message.compartments, isSummary) ? message.compartments.length : undefined)
      )
    case 'tombstones':
      return isPage(message, isList(message.items, isTombstone) ? message.items.length : undefined)
    case 'list':
      return isText(message.label) && isPage(message, isList(message.rows, isRow) ? message.rows.length : undefined)
    case 'want':
      return isPage(message, isList(message.ids, isNoteId) ? message.ids.length : undefined)
    case 'notes':
      return isPage(
        message,
        isList(message.items, isNoteText) && isList(message.gone, isNoteId)
          ? message.items.length + message.gone.length
          : undefined,
      )
    default:
      return false
  }
}

/** A page that is not the last one holds something, so that whoever talks without end also says something. */
const isPage = ({ last }: { readonly last: boolean }, size: number | undefined): boolean =>
  typeof last === 'boolean' && size !== undefined && (last || size > 0)

/** Labels, digests, clock readings: as long as the longest of them may be. */
const TEXT_CHARS = LIMITS.labelChars

const isText = (value: unknown): value is string => typeof value === 'string' && value.length <= TEXT_CHARS

const isNoteId = (value: unknown): value is string => isId('memory', value)

const isNoteText = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= LIMITS.noteFileBytes

const isClockText = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= LIMITS.labelClockChars

const isTombstone = (value: unknown): boolean => typeof value === 'object' && value !== null

const isList = (value: unknown, isItem: (item: unknown) => boolean): boolean =>
  Array.isArray(value) && value.length <= LIMITS.syncPageRows && value.every(isItem)

function isRow(value: unknown): boolean {
  if (!Array.isArray(value) || value.length < 4 || value.length > 5 || !isNoteId(value[0])) return false
  const [, , , , clock] = value as unknown[]
  return value.slice(0, 4).every(isText) && (clock === undefined || isClockText(clock))
}

function isSummary(value: unknown): boolean {
  const { label, count, root } = (value ?? {}) as Partial<CompartmentSummary>
  return isText(label) && isText(root) && Number.isSafeInteger(count)
}
