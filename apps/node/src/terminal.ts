/** How the command talks: one JSON line or plain text, errors with what to do next, a line of progress, a question. */
import { EXIT, delay, toNodeError, turn, type NodeError } from '@csb/core'
import { isPlain } from '@csb/node'
import { hintFor, messageFor, t } from './texts.ts'

/** Controls, bidi and zero-width marks, line ends in disguise, tags, variation selectors, fillers and blanks that are none, private and no characters. */
const STEERING =
  /[\u2800\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Variation_Selector}\p{Noncharacter_Code_Point}]/gu
const SECOND_MS = 1000

const escaped = (char: string): string => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`

/** Untrusted text could steer a terminal or turn letters round: control, bidi and invisible characters are shown, not obeyed. */
export const visible = (text: string): string =>
  text.replaceAll(STEERING, (char) => (char === '\n' || char === '\t' ? char : escaped(char)))

/** The same for a name or a title: it can not begin a line of its own either. */
export const inline = (text: string): string => text.replaceAll(STEERING, escaped)

/** JSON on one line in which nothing steers either: such a character is written as JSON writes it, and reads the same. */
export const jsonLine = (value: unknown): string =>
  JSON.stringify(value).replaceAll(STEERING, (char) =>
    char
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )

export type Output = {
  /** the answer: `value` with --json, `text` otherwise */
  answer(value: unknown, text: string): void
  /** bytes of a file: as they are to a pipe, visible at a terminal */
  bytes(value: unknown, content: Uint8Array): void
  /** Wait for `work`, with a line that moves while it takes longer than a second. */
  during<T>(text: string, work: Promise<T>): Promise<T>
  /** a line that goes on changing until it is done; nothing with --json or where lines should not move */
  progress(text: string): void
  notice(text: string): void
  /** Take the moving line away for good: what follows is no progress. */
  end(): void
}

export function createOutput(isJson: boolean): Output {
  const isMoving = !isJson && !isPlain() && process.stderr.isTTY
  let isShown = false
  let isOver = false
  const settle = () => {
    if (isShown) process.stderr.write('\r\u001B[K')
    isShown = false
  }
  const progress = (text: string) => {
    if (!isMoving || isOver) return
    isShown = true
    process.stderr.write(`\r\u001B[K${inline(text).slice(0, (process.stderr.columns || 80) - 1)}`)
  }
  const write = (text: string) => {
    settle()
    process.stdout.write(text)
  }
  return {
    answer: (value, text) => write(isJson ? `${jsonLine(value)}\n` : `${visible(text)}\n`),
    bytes: (value, content) => {
      if (isJson) write(`${jsonLine(value)}\n`)
      else if (process.stdout.isTTY) write(visible(Buffer.from(content).toString()))
      else process.stdout.write(content)
    },
    during: async (text, work) => {
      const ended = new AbortController()
      const moving = move((seconds) => progress(t('progress.seconds', { text, seconds })), ended.signal)
      try {
        return await work
      } finally {
        ended.abort()
        await moving
        settle()
      }
    },
    progress,
    notice: (text) => {
      settle()
      process.stderr.write(`${visible(text)}\n`)
    },
    end: () => {
      isOver = true
      settle()
    },
  }
}

/** Every second until the signal. */
async function move(show: (seconds: number) => void, signal: AbortSignal): Promise<void> {
  for (let seconds = 1; ; seconds++) {
    try {
      await delay(SECOND_MS, signal)
    } catch {
      return
    }
    show(seconds)
  }
}

/** Say what went wrong and what to do; set the exit code of the table. A person's mistake shows no stack. */
export function reportError(thrown: unknown, isJson: boolean): void {
  const error = toNodeError(thrown)
  process.exitCode = error.row.exit === EXIT.ok ? EXIT.fault : error.row.exit
  if (isJson) process.stdout.write(`${jsonLine({ error: error.toJSON() })}\n`)
  else process.stderr.write(`${visible(linesOf(error).join('\n'))}\n`)
}

type Problem = { readonly path: string; readonly message: string; readonly member?: string }

function linesOf(error: NodeError): string[] {
  const { code, details } = error
  const { errors, schema, ...told } = details
  const lines = [t('error.line', { message: inline(messageFor(code, details) ?? error.message), code })]
  for (const { path, message, member } of (Array.isArray(errors) ? errors : []) as readonly Problem[])
    lines.push(`  ${path} ${message}${member === undefined ? '' : `: ${member}`}`)
  if (schema !== undefined && !Array.isArray(errors)) lines.push(`  schema: ${shown(schema)}`)
  for (const [name, value] of Object.entries(told)) if (value !== undefined) lines.push(`  ${name}: ${shown(value)}`)
  // the first line only: the rest of a foreign message is a stack as often as not
  if (code === 'INTERNAL' && error.cause instanceof Error)
    lines.push(`  ${error.cause.message.split('\n', 1)[0] ?? ''}`)
  const hint = hintFor(code, details)
  return hint === undefined ? lines : [...lines, inline(hint)]
}

const shown = (value: unknown): string => (typeof value === 'string' ? inline(value) : JSON.stringify(value))

/** Ask for a secret at the terminal; undefined where there is none to ask at, or nothing was said. */
export async function askSecret(question: string): Promise<string | undefined> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return undefined
  // loaded only when somebody is asked: it is slow to load
  const { isCancel, password } = await import('@clack/prompts')
  const answer = await whileOpen((signal) => password({ message: question, signal }))
  return isCancel(answer) ? undefined : answer
}

/**
 * Ask for a word that has to be typed; there is no answer that Enter gives. Undefined where there is nobody to ask, empty
 * where the person broke it off or ended the input.
 */
export async function askWord(question: string): Promise<string | undefined> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return undefined
  const { isCancel, text } = await import('@clack/prompts')
  const answer = await whileOpen((signal) => text({ message: question, output: process.stderr, signal }))
  return isCancel(answer) ? '' : answer
}

/** An input that ends, as by Ctrl-D, is paused and answers nothing any more: the question is broken off then. */
async function whileOpen<T>(ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const ended = new AbortController()
  let isAnswered = false
  // an answer pauses it too, and is known a turn later
  const breakOff = () => void turn().then(() => (isAnswered ? undefined : ended.abort()))
  process.stdin.once('pause', breakOff)
  try {
    return await ask(ended.signal)
  } finally {
    isAnswered = true
    process.stdin.off('pause', breakOff)
  }
}
