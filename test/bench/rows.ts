/** One form for every table of figures: rate, ratio to the anchor of the same run, CPU per operation. */

export type Row = { readonly what: string; readonly perSecond: number; readonly cpuUs: number }

/** @param anchor index of the row that is 1.00 */
export function printRows(title: string, rows: readonly Row[], anchor: number): void {
  const base = rows[anchor]?.perSecond ?? 1
  const width = Math.max(...rows.map(({ what }) => what.length))
  process.stdout.write(
    `\n${title.padEnd(width)}  ${'per second'.padStart(12)}  ${'ratio'.padStart(8)}  ${'CPU us/op'.padStart(10)}\n`,
  )
  for (const { what, perSecond, cpuUs } of rows) {
    const cells = [
      perSecond.toFixed(0).padStart(12),
      (perSecond / base).toFixed(2).padStart(8),
      cpuUs.toFixed(1).padStart(10),
    ]
    process.stdout.write(`${what.padEnd(width)}  ${cells.join('  ')}\n`)
  }
}
