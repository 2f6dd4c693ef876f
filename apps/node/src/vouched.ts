/** Who vouches for a record, in one line. */
import { inline } from './terminal.ts'
import { t } from './texts.ts'

export type Settled = {
  readonly size: number
  /** ms since epoch */
  readonly at: number
  readonly cosigners: readonly { readonly did: string; readonly name?: string | null }[]
}

export type Vouching = {
  readonly size: number
  readonly settled: Settled | null
  readonly held: { readonly reason: string; readonly witness: string; readonly checkpoint: string } | null
}

export const vouchedText = ({ settled, held }: Vouching): string =>
  held === null ? settledText(settled) : t('record.held')

/** Without a witness nothing is said that only the node itself could vouch for. */
export function settledText(settled: Settled | null): string {
  if (settled === null) return t('record.unvouched')
  const cosigners = settled.cosigners.map(({ did, name }) => inline(name ?? `…${did.slice(-8)}`)).join(', ')
  return t('record.vouched', { size: settled.size, at: new Date(settled.at).toISOString(), cosigners })
}
