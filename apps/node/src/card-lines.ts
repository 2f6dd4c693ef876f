/** Text of somebody else below a line of ours: each line for itself, behind a margin. */
import { inline } from './terminal.ts'

/**
 * Lines that can neither pass for a line of a card nor steer the terminal. A tab stays one.
 * @param most lines that are given; `left` counts the others
 */
export function margined(text: string, most: number): { readonly lines: string[]; readonly left: number } {
  const lines = text === '' ? [] : text.split('\n')
  const shown = lines.slice(0, most).map((line) => `    | ${line.split('\t').map(inline).join('\t')}`)
  return { lines: shown, left: lines.length - shown.length }
}
