/** What the matrix of operations asks of each: refused as it should be, recorded, and nothing else left. */
import { readRecords, recordSize } from '@csb/authority'
import type { Caller } from '../src/index.ts'
import { ask, changed, contentOf, type Heard, type World } from './every-operation-rig.ts'
import { ROWS, type Row } from './every-operation-rows.ts'

export const LEASED = ROWS.filter(({ open }) => open === 'lease' || open === 'owner')

/**
 * What only shows what is there: it goes on when the time of a lease is over, or when nothing may be written. An export
 * is more than that: it is kept until it is fetched, and it is in the record.
 */
export const isLooking = ({ operation, kind, action }: Row): boolean =>
  operation !== 'files.export' && (kind === 'read' || kind === 'stream') && (action === 'read' || action === 'list')

/** Ask, and tell whether a refusal left anything but its record, or no record. */
export async function refused(world: World, row: Row, caller: Caller): Promise<Heard & { readonly left: string }> {
  const { house } = world
  const input = await row.input(world, caller)
  await house.idle()
  const [before, size] = [await contentOf(world), recordSize(house.store.view())]
  const heard = await ask(world, caller, row.operation, input, row.says?.(world))
  const written = changed(before, await contentOf(world))
  const told = await readRecords(house.store.view(), { after: size - 1, limit: 10 })
  const records = told.map(({ header: { operation, outcome, code } }) => [operation, outcome, code].join(' '))
  const isTold = records.includes([row.operation, 'refused', heard.code].join(' ')) && records.length === 1
  return { ...heard, left: [...written, ...(isTold ? [] : [`records: ${records.join(', ')}`])].join(' ') }
}

/** Lines of what is not as it should be; none is what is wanted. */
export async function wrong(rows: readonly Row[], check: (row: Row) => Promise<string>): Promise<string[]> {
  const found: string[] = []
  for (const row of rows) {
    const told = await check(row)
    if (told !== '') found.push(`${row.operation}: ${told}`)
  }
  return found
}

/** The line of a refusal that is not this one, or that left something. */
export const unlike = (
  { code, field, left }: Awaited<ReturnType<typeof refused>>,
  wanted: string,
  member?: string,
): string =>
  code === wanted && field === member && left === ''
    ? ''
    : `${code} ${field ?? ''} instead of ${wanted} ${member ?? ''}, left: ${left}`
