/** A fetch in both dialects: what the client says becomes the input of `git.fetch`, its events become lines. */
import { fail, gitText, type GitText } from '@csb/core'
import type { ByteReader } from './byte-reader.ts'
import { DELIM, FLUSH, pkt, readSection } from './pkt-line.ts'
import { createBand, type Band, type Reply } from './reply.ts'

/** Input of `git.fetch`. */
export type FetchInput = {
  readonly wants: string[]
  readonly haves: string[]
  readonly done: boolean
  readonly shallow: string[]
  readonly not: string[]
  readonly thin: boolean
  readonly include_tags: boolean
  depth?: number
  relative?: boolean
  since?: number
}

/** How a client wants to be answered. */
export type FetchAsk = {
  readonly input: FetchInput
  readonly words: ReadonlySet<string>
  readonly isDeepening: boolean
  /** an old client that asks first where history will end, and says later what it has */
  readonly isFirst: boolean
}

type FetchEvent =
  | { readonly kind: 'common'; readonly oids: readonly string[]; readonly ready: boolean }
  | { readonly kind: 'ends'; readonly shallow: readonly string[]; readonly unshallow: readonly string[] }
  | { readonly kind: 'progress'; readonly told: GitText }
  | { readonly kind: 'pack'; readonly bytes: Uint8Array }

type Opening = {
  readonly common: readonly string[]
  readonly ready: boolean
  readonly ends: Extract<FetchEvent, { kind: 'ends' }> | undefined
}

/** A fetch of version 2: arguments up to a flush. */
export function readFetch(lines: readonly string[]): FetchAsk {
  return askOf(lines, new Set(lines), false)
}

/** A fetch of version 0 or 1: wants, then haves in groups. @returns undefined where nothing is asked */
export async function readOldFetch(reader: ByteReader): Promise<FetchAsk | undefined> {
  const first = await readSection(reader)
  const [want, ...others] = first.lines
  if (want === undefined) return undefined
  const [, oid = '', rest = ''] = /^want ([0-9a-f]+) ?(.*)$/.exec(want) ?? []
  const lines = [`want ${oid}`, ...others]
  let groups = 0
  for (let more = await readSection(reader); ; more = await readSection(reader)) {
    lines.push(...more.lines)
    if (more.mark !== 'end' || more.lines.length > 0) groups++
    if (more.mark === 'end' || more.lines.includes('done')) break
  }
  return askOf(lines, new Set(rest.split(' ')), groups === 0)
}

/** Answer of version 2. */
export const answerFetch = (reply: Reply, ask: FetchAsk, events: AsyncIterable<unknown>): Promise<void> =>
  following(events, (opening, rest) => answerNew(reply, ask, opening, rest))

/** Answer of versions 0 and 1. */
export const answerOldFetch = (reply: Reply, ask: FetchAsk, events: AsyncIterable<unknown>): Promise<void> =>
  following(events, (opening, rest) => answerOld(reply, ask, opening, rest))

async function answerNew(
  reply: Reply,
  ask: FetchAsk,
  opening: Opening,
  rest: AsyncIterator<FetchEvent>,
): Promise<void> {
  reply.begin('application/x-git-upload-pack-result')
  if (!ask.input.done) {
    await reply.write(pkt('acknowledgments\n'))
    if (opening.common.length === 0) await reply.write(pkt('NAK\n'))
    for (const oid of opening.common) await reply.write(pkt(`ACK ${oid}\n`))
    if (!opening.ready) {
      await reply.write(FLUSH)
      return
    }
    await reply.write(pkt('ready\n'))
    await reply.write(DELIM)
  }
  const { shallow = [], unshallow = [] } = opening.ends ?? {}
  if (ask.isDeepening || shallow.length + unshallow.length > 0) {
    await reply.write(pkt('shallow-info\n'))
    await endLines(reply, shallow, unshallow)
    await reply.write(DELIM)
  }
  await reply.write(pkt('packfile\n'))
  await sendPack(createBand(reply, true), ask, rest)
}

async function answerOld(
  reply: Reply,
  ask: FetchAsk,
  { common, ready, ends }: Opening,
  rest: AsyncIterator<FetchEvent>,
): Promise<void> {
  const detailed = ask.words.has('multi_ack_detailed')
  reply.begin('application/x-git-upload-pack-result')
  if (ask.isDeepening) {
    await endLines(reply, ends?.shallow ?? [], ends?.unshallow ?? [])
    await reply.write(FLUSH)
  }
  if (ask.isFirst) return
  const last = common.at(-1)
  if (!ask.input.done) {
    if (detailed) for (const oid of common) await reply.write(pkt(`ACK ${oid} common\n`))
    if (detailed && ready && last !== undefined) await reply.write(pkt(`ACK ${last} ready\n`))
    if (last === undefined || detailed) await reply.write(pkt('NAK\n'))
    else await reply.write(pkt(`ACK ${last}\n`))
    if (!ready || !detailed || !ask.words.has('no-done')) return
  }
  await reply.write(pkt(last === undefined ? 'NAK\n' : `ACK ${last}\n`))
  const framed = ask.words.has('side-band-64k') || ask.words.has('side-band')
  await sendPack(createBand(reply, framed), ask, rest)
}

function askOf(lines: readonly string[], words: ReadonlySet<string>, isFirst: boolean): FetchAsk {
  const valuesOf = (name: string) =>
    lines.filter((line) => line.startsWith(`${name} `)).map((line) => line.slice(name.length + 1))
  const input: FetchInput = {
    wants: [...new Set(valuesOf('want'))],
    haves: valuesOf('have'),
    done: lines.includes('done'),
    shallow: valuesOf('shallow'),
    not: valuesOf('deepen-not'),
    thin: words.has('thin-pack'),
    include_tags: words.has('include-tag'),
  }
  const [depth] = valuesOf('deepen')
  const [since] = valuesOf('deepen-since')
  if (depth !== undefined && Number(depth) > 0) input.depth = Number(depth)
  if (words.has('deepen-relative')) input.relative = true
  if (since !== undefined) input.since = Number(since)
  return {
    input,
    words,
    isFirst,
    isDeepening: input.depth !== undefined || since !== undefined || input.not.length > 0,
  }
}

/** Follow a fetch as far as the answer goes, and end it there: what it holds it lets go of. */
async function following(
  events: AsyncIterable<unknown>,
  answer: (opening: Opening, rest: AsyncIterator<FetchEvent>) => Promise<void>,
): Promise<void> {
  const rest = events[Symbol.asyncIterator]() as AsyncIterator<FetchEvent>
  try {
    await answer(await openingOf(rest), rest)
  } finally {
    await rest.return?.()
  }
}

/** What comes before the pack. An error there is an answer of its own. */
async function openingOf(rest: AsyncIterator<FetchEvent>): Promise<Opening> {
  const first = await rest.next()
  if (first.done === true || first.value.kind !== 'common') return fail('INTERNAL', { reason: 'order of a fetch' })
  const { oids, ready } = first.value
  const second = await rest.next()
  const ends = second.done !== true && second.value.kind === 'ends' ? second.value : undefined
  return { common: oids, ready, ends }
}

async function endLines(reply: Reply, shallow: readonly string[], unshallow: readonly string[]): Promise<void> {
  for (const oid of shallow) await reply.write(pkt(`shallow ${oid}\n`))
  for (const oid of unshallow) await reply.write(pkt(`unshallow ${oid}\n`))
}

async function sendPack(band: Band, { words }: FetchAsk, events: AsyncIterator<FetchEvent>): Promise<void> {
  for (let step = await events.next(); step.done !== true; step = await events.next()) {
    const event = step.value
    if (event.kind === 'pack') await band.data(event.bytes)
    if (event.kind === 'progress' && !words.has('no-progress')) await band.words(`${gitText(event.told)}\n`)
  }
  await band.close()
}
