/**
 * Reads what an agent writes to stdout: JSON lines, or one JSON text. It is foreign: bounded, checked for form, and
 * never interpreted.
 */
import { fail, fromUtf8, parseBounded } from '@csb/core'
import type { JsonObject } from './a2a.ts'

const KINDS = ['status', 'text', 'artifact', 'result'] as const
/** What an agent may say it used: whole numbers, counted on since the last time it said so. */
const UNITS = ['tokens', 'cost_micro'] as const

/** Tokens of a model, millionths of a currency. */
export type Usage = Readonly<Partial<Record<(typeof UNITS)[number], number>>>

/** What an agent ends with: any of a text, a JSON value, files by path. */
export type AgentResult = {
  readonly text?: string
  readonly data?: unknown
  readonly files?: readonly { readonly path: string; readonly text: string }[]
}

/** What an agent tells, in order. The last one is always the result; what it used for it stands before it. */
export type AgentEvent =
  | { readonly kind: 'usage'; readonly usage: Usage }
  | { readonly kind: 'status'; readonly text: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'artifact'; readonly artifact: JsonObject }
  | { readonly kind: 'result'; readonly result: AgentResult }

/** `take` gives what a chunk completes, `finish` what is left when the output ends. */
export type OutputReader = { take(chunk: Buffer): Generator<AgentEvent>; finish(): Generator<AgentEvent> }

/**
 * Splits stdout into JSON lines. Where the first line is not JSON by itself, all of stdout is read as one
 * JSON text at the end, so an agent may also print one object over several lines.
 */
export function createOutputReader(outputBytes: number): OutputReader {
  let bytes = 0
  let pending: Buffer[] = []
  let lines = 0
  let whole = false
  let told = ''
  let done = false

  const read = (line: Buffer): readonly AgentEvent[] => {
    const text = (fromUtf8(line) ?? fail('AGENT_FAILED', { reason: 'stdout is not UTF-8' })).trim()
    if (text === '') return []
    if (done) fail('AGENT_FAILED', { reason: 'something was written after the result' })
    const events = eventsOf(text, outputBytes, lines === 0)
    lines++
    for (const event of events) if (event.kind === 'text') told += event.text
    done = events.at(-1)?.kind === 'result'
    return events
  }

  return {
    *take(chunk) {
      bytes += chunk.byteLength
      if (bytes > outputBytes) fail('AGENT_OUTPUT_TOO_LARGE', { outputBytes })
      let rest = chunk
      for (let at = rest.indexOf(10); at >= 0 && !whole; at = rest.indexOf(10)) {
        const line = Buffer.concat([...pending, rest.subarray(0, at)])
        if (lines === 0 && !isJson(line)) {
          whole = true
          break
        }
        pending = []
        rest = rest.subarray(at + 1)
        yield* read(line)
      }
      if (rest.byteLength > 0) pending.push(rest)
    },
    *finish() {
      yield* read(Buffer.concat(pending))
      if (done) return
      if (lines === 0) fail('AGENT_FAILED', { reason: 'nothing was written to stdout' })
      yield { kind: 'result', result: told === '' ? {} : { text: told } }
    },
  }
}

function isJson(line: Buffer): boolean {
  try {
    JSON.parse(line.toString('utf8') || '0')
    return true
  } catch {
    return line.toString('utf8').trim() === ''
  }
}

/** @param alone true for the first line, which may be a result without its wrapping */
function eventsOf(text: string, outputBytes: number, alone: boolean): readonly AgentEvent[] {
  let value: unknown
  try {
    value = parseBounded(text, outputBytes)
  } catch (error) {
    fail('AGENT_FAILED', { reason: 'a line of stdout is not JSON; logs belong on stderr' }, error)
  }
  if (!isObject(value)) fail('AGENT_FAILED', { reason: 'a line of stdout is not a JSON object' })
  const kind = KINDS.find((member) => Object.hasOwn(value, member))
  const used = usageOf(value['usage'])
  if (kind === undefined) {
    if (used.length > 0) return used
    if (alone) return [{ kind: 'result', result: { data: value } }]
    return fail('AGENT_FAILED', { reason: 'a line has none of status, text, artifact, usage, result' })
  }
  const told = value[kind]
  if (kind === 'status' || kind === 'text') {
    if (typeof told !== 'string') fail('AGENT_FAILED', { reason: `${kind} is not a string` })
    return [...used, { kind, text: told }]
  }
  if (kind === 'artifact') {
    if (!isObject(told)) fail('AGENT_FAILED', { reason: 'artifact is not an object' })
    return [...used, { kind, artifact: told }]
  }
  const inside = isObject(told) ? usageOf(told['usage']) : []
  return [...used, ...inside, { kind, result: resultOf(told) }]
}

/** What is not understood would go uncounted: it ends the run. */
function usageOf(told: unknown): AgentEvent[] {
  if (told === undefined) return []
  const isAmount = (amount: unknown) => Number.isSafeInteger(amount) && (amount as number) >= 0
  const isUsage =
    isObject(told) &&
    Object.keys(told).every((name) => UNITS.some((unit) => unit === name)) &&
    Object.values(told).every(isAmount)
  if (!isUsage) fail('AGENT_FAILED', { reason: 'usage is not {tokens, cost_micro} in whole numbers' })
  return [{ kind: 'usage', usage: told }]
}

/** A result that is a string is its text; an object is read member by member. */
function resultOf(told: unknown): AgentResult {
  if (typeof told === 'string') return { text: told }
  if (!isObject(told)) fail('AGENT_FAILED', { reason: 'result is neither an object nor a string' })
  const { text, data, files } = told
  if (text !== undefined && typeof text !== 'string') fail('AGENT_FAILED', { reason: 'result.text is not a string' })
  if (files !== undefined && !(Array.isArray(files) && files.every(isFile))) {
    fail('AGENT_FAILED', { reason: 'result.files is not a list of {path, text}' })
  }
  return {
    ...(text === undefined ? {} : { text }),
    ...(data === undefined ? {} : { data }),
    ...(files === undefined ? {} : { files: files.map(({ path, text: content }) => ({ path, text: content })) }),
  }
}

const isFile = (value: unknown): value is { path: string; text: string } =>
  isObject(value) && typeof value['path'] === 'string' && typeof value['text'] === 'string'

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
