/**
 * Read a chat transcript: the LoCoMo form (sessions of turns with speakers and dates), exports with
 * `chat_messages`, and plain lists of messages with a role. Each turn becomes one entry.
 */
import { readFile, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { fail, fromUtf8, LIMITS, parseBounded } from '@csb/core'
import { isObject, parseDate, toTime, type JsonObject } from './coerce.ts'
import { itemsOf, type ImportItem } from './import-item.ts'

const FORMS = ['LoCoMo sessions', '[{role, content, timestamp?}]', '{messages: [...]}', '[{chat_messages: [...]}]']
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const SPOKEN_DATE = /^([0-9]{1,2}):([0-9]{2}) (am|pm) on ([0-9]{1,2}) ([a-z]{3})[a-z]*, ([0-9]{4})$/i
const MAX_DEPTH = 32
const LAST_ID_MS = 9_999_999_999_999

type Turn = {
  /** of the conversation, and of the turn within it */
  readonly conversation: string
  readonly name: string
  readonly speaker: string
  readonly text: string
  /** ms since epoch; undefined where nobody wrote it down */
  readonly at: number | undefined
  readonly rest: JsonObject
}

/**
 * Turns in the order they were said. Where a whole session bears one time, each turn lies a millisecond after
 * the one before, so that their order stays; where nobody wrote a time down it is that of the file.
 * @param file at most LIMITS.importTranscriptBytes
 * @throws NOT_FOUND, TOO_LARGE; MALFORMED where it is not JSON or none of the known forms
 */
export async function* readTranscript(file: string): AsyncGenerator<ImportItem> {
  const about = await stat(file).catch((error: unknown) => fail('NOT_FOUND', { file }, error))
  if (about.size > LIMITS.importTranscriptBytes) fail('TOO_LARGE', { maxBytes: LIMITS.importTranscriptBytes })
  const text = fromUtf8(await readFile(file)) ?? fail('MALFORMED', { reason: 'not text in UTF-8' })
  const name = basename(file).normalize('NFC')
  const turns = turnsOf(parseBounded(text.replace(/^\uFEFF/, ''), LIMITS.importTranscriptBytes, MAX_DEPTH), name)
  const places = new Map<string, number>()
  for (const turn of turns ?? fail('MALFORMED', { reason: 'not a transcript of a known form', known: FORMS })) {
    const since = turn.at ?? Math.floor(about.mtimeMs)
    const group = `${turn.conversation}\0${since}`
    const place = places.get(group) ?? 0
    places.set(group, place + 1)
    yield* itemOf(turn, name, Math.min(Math.max(0, since) + place, LAST_ID_MS))
  }
}

function* itemOf(
  { conversation, name, speaker, text, rest }: Turn,
  file: string,
  timestamp: number,
): Generator<ImportItem> {
  const path = `${file}#${conversation}/${name}`
  if (text.trim() === '' || text.includes('\0')) {
    yield { kind: 'skipped', path, reason: 'no text' }
    return
  }
  yield* itemsOf({
    path,
    origin: [conversation, name, speaker, text],
    timestamp,
    text: `${speaker}: ${text}`,
    entry: { type: 'event', source: 'session' },
    about: { origin: path, conversation, turn: name, speaker },
    extra: rest,
    warnings: [],
  })
}

function turnsOf(value: unknown, file: string): Turn[] | undefined {
  if (isMessage(value)) return undefined
  if (!Array.isArray(value)) return conversationOf(value, file)
  if (value.length > 0 && value.every(isMessage)) return messagesOf(value, file)
  const conversations = value.map((item, at) => conversationOf(item, `${file}/${at + 1}`))
  return conversations.length === 0 || conversations.includes(undefined)
    ? undefined
    : conversations.flatMap((turns) => turns ?? [])
}

function conversationOf(value: unknown, fallbackName: string): Turn[] | undefined {
  if (!isObject(value)) return undefined
  const name = [value['sample_id'], value['uuid'], value['id'], value['name']].find(
    (id) => typeof id === 'string' && id !== '',
  )
  const conversation = typeof name === 'string' ? name : fallbackName
  for (const list of [value['messages'], value['chat_messages']]) {
    if (Array.isArray(list) && list.every(isMessage)) return messagesOf(list, conversation)
  }
  return sessionsOf(isObject(value['conversation']) ? value['conversation'] : value, conversation)
}

/** LoCoMo: `session_1: [{speaker, dia_id, text}]` and `session_1_date_time`, sessions by number. */
function sessionsOf(value: JsonObject, conversation: string): Turn[] | undefined {
  const numbers = Object.keys(value).map((name) => /^session_([0-9]{1,6})$/.exec(name)?.[1])
  const sessions = numbers.filter((number) => number !== undefined).sort((a, b) => Number(a) - Number(b))
  if (sessions.length === 0) return undefined
  return sessions.flatMap((session) => {
    const turns = value[`session_${session}`]
    const at = readSpokenDate(value[`session_${session}_date_time`])
    return (Array.isArray(turns) ? turns : []).filter(isObject).map((turn, place) => {
      const { speaker, text, dia_id: id, ...rest } = turn
      const caption = typeof turn['blip_caption'] === 'string' ? `[image: ${turn['blip_caption']}]` : ''
      return {
        conversation,
        name: typeof id === 'string' ? id : `${session}:${place + 1}`,
        speaker: typeof speaker === 'string' ? speaker : 'unknown',
        text: [typeof text === 'string' ? text : '', caption].filter((part) => part !== '').join('\n'),
        at,
        rest: { session: Number(session), ...rest },
      }
    })
  })
}

const isMessage = (value: unknown): value is JsonObject =>
  isObject(value) && (typeof value['role'] === 'string' || typeof value['sender'] === 'string')

function messagesOf(messages: readonly JsonObject[], conversation: string): Turn[] {
  return messages.map((message, place) => {
    const { role, sender, content, text, id, uuid } = message
    const time = message['timestamp'] ?? message['created_at'] ?? message['create_time']
    return {
      conversation,
      name: [uuid, id].find((given) => typeof given === 'string') ?? String(place + 1),
      speaker: String(role ?? sender),
      text: textOf(content) || textOf(text),
      at: toTime(time),
      rest: {},
    }
  })
}

/** Text, or the text parts of a list of parts; what is no text (images, calls) is not told. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  const parts = content.map((part) => (isObject(part) ? part['text'] : part))
  return parts.filter((part) => typeof part === 'string').join('\n')
}

/** `1:56 pm on 8 May, 2023`, or an ISO date; read as UTC. */
function readSpokenDate(text: unknown): number | undefined {
  if (typeof text !== 'string') return undefined
  const match = SPOKEN_DATE.exec(text.trim())
  if (match === null) return parseDate(text)
  const [, hour, minute, half = '', day, month = '', year] = match
  const monthIndex = MONTHS.indexOf(month.toLowerCase())
  if (monthIndex === -1) return undefined
  const hours = (Number(hour) % 12) + (half.toLowerCase() === 'pm' ? 12 : 0)
  return Date.UTC(Number(year), monthIndex, Number(day), hours, Number(minute))
}
