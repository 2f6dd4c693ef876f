/** Why a task failed, in lines: what the node tells its own people of how the agent's command ended. */
import { EXTENSIONS } from '@csb/core'
import { inline } from './terminal.ts'
import { t } from './texts.ts'

export type Metadata = Readonly<Record<string, unknown>>

/** What an agent wrote stands behind a bar on every line, so that none of it can pass for a line of the command. */
export function failureText(metadata: Metadata = {}): string[] {
  const { details } = (metadata[EXTENSIONS.error] ?? {}) as { details?: unknown }
  if (typeof details !== 'object' || details === null) return []
  const { stderr, ...told } = details as Metadata
  const lines = Object.entries(told).map(([name, value]) =>
    t('send.failed', { name: inline(name), value: inline(typeof value === 'string' ? value : JSON.stringify(value)) }),
  )
  if (typeof stderr !== 'string' || stderr.trim() === '') return lines
  return [
    ...lines,
    t('send.stderr'),
    ...stderr
      .trim()
      .split(/\r?\n/)
      .map((line) => `  | ${inline(line)}`),
  ]
}
