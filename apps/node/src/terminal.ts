/** How the command talks: one JSON line or plain text, errors with what to do next, a line of progress, a question. */
import { EXIT, toNodeError } from '@csb/core'
import { isPlain } from '@csb/node'
import { hintFor, t } from './texts.ts'

/** Untrusted text could steer a terminal or turn letters round: control, bidi and invisible characters are shown, not obeyed. */
export const visible = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (char) =>
    char === '\n' || char === '\t' ? char : `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`,
  )

export type Output = {
  /** the answer: `value` with --json, `text` otherwise */
  answer(value: unknown, text: string): void
  /** a line that goes on changing until it is done; nothing with --json or where lines should not move */
  progress(text: string): void
  notice(text: string): void
}

export function createOutput(isJson: boolean): Output {
  let moving = false
  const settle = () => {
    if (moving) process.stderr.write('\n')
    moving = false
  }
  return {
    answer: (value, text) => {
      settle()
      process.stdout.write(isJson ? `${JSON.stringify(value)}\n` : `${visible(text)}\n`)
    },
    progress: (text) => {
      if (isJson || isPlain() || !process.stderr.isTTY) return
      moving = true
      process.stderr.write(`\r\u001B[K${visible(text)}`)
    },
    notice: (text) => {
      settle()
      process.stderr.write(`${visible(text)}\n`)
    },
  }
}

/** Say what went wrong and what to do; set the exit code of the table. A person's mistake shows no stack. */
export function reportError(error: unknown, isJson: boolean): void {
  const reason = toNodeError(error)
  process.exitCode = reason.row.exit === EXIT.ok ? EXIT.fault : reason.row.exit
  if (isJson) {
    process.stdout.write(`${JSON.stringify({ error: reason.toJSON() })}\n`)
    return
  }
  const lines = [t('error.line', { message: reason.message, code: reason.code })]
  const told = Object.entries(reason.details).filter(([, value]) => value !== undefined)
  for (const [name, value] of told)
    lines.push(`  ${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
  const hint = hintFor(reason.code, reason.details)
  if (hint !== undefined) lines.push(`  ${hint}`)
  if (reason.code === 'INTERNAL' && reason.cause instanceof Error) lines.push(`  ${reason.cause.message}`)
  process.stderr.write(`${visible(lines.join('\n'))}\n`)
}

/** Ask for a secret at the terminal; undefined where there is none to ask at. */
export async function askSecret(question: string): Promise<string | undefined> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return undefined
  // loaded only when somebody is asked: it is slow to load
  const { isCancel, password } = await import('@clack/prompts')
  const answer = await password({ message: question })
  return isCancel(answer) ? undefined : String(answer)
}
