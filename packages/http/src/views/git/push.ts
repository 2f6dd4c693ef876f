/** A push: commands and options become the input of `git.push`, the pack goes through as it comes, its report comes back. */
import { fail, gitText, type ErrorCode, type ErrorDetails, type GitText } from '@csb/core'
import type { MessagePort } from '@csb/service'
import { adviceOn } from './advice.ts'
import type { ByteReader } from './byte-reader.ts'
import { FLUSH, pkt, readSection } from './pkt-line.ts'
import { createBand, type Reply } from './reply.ts'
import { sentenceOf } from './visitor.ts'

export type PushAsk = {
  readonly input: {
    readonly changes: { name: string; from: string | null; to: string | null }[]
    readonly atomic: boolean
    readonly options: string[]
  }
  readonly words: ReadonlySet<string>
}

type Refusal = { readonly code: ErrorCode; readonly message: string; readonly details: ErrorDetails }
type Report = {
  readonly kind: 'report'
  readonly unpack: Refusal | null
  readonly refs: readonly {
    readonly name: string
    readonly refused: Refusal | null
    readonly hints: readonly GitText[]
  }[]
}
type PushEvent = Report | { readonly kind: 'progress'; readonly told: GitText }

/** @returns undefined for the empty request by which git asks whether it may */
export async function readPush(reader: ByteReader): Promise<PushAsk | undefined> {
  const { lines } = await readSection(reader)
  const [first, ...others] = lines.filter((line) => !line.startsWith('shallow '))
  if (first === undefined) return undefined
  const [command = '', rest = ''] = first.split('\0')
  const words = new Set(rest.trim().split(' '))
  const changes = [command, ...others].map((line) => {
    const [, from = '', to = '', name = ''] =
      /^([0-9a-f]+) ([0-9a-f]+) (.+)$/.exec(line) ?? fail('MALFORMED', { reason: 'command of a push' })
    return { name, from: orNull(from), to: orNull(to) }
  })
  const options = words.has('push-options') ? (await readSection(reader)).lines : []
  return { input: { changes, atomic: words.has('atomic'), options }, words }
}

/** The service's end of a push. Nothing is answered before everything was read: git listens only then. */
export function createPushPort(
  reader: ByteReader,
  reply: Reply,
  { words }: PushAsk,
): MessagePort & { finish(): Promise<void> } {
  const band = createBand(reply, words.has('side-band-64k'))
  let isRead = false
  let report: Report | undefined
  const begin = (): void => {
    if (!reply.isBegun) reply.begin('application/x-git-receive-pack-result')
  }
  return {
    receive: async () => {
      const chunk = isRead ? undefined : await reader.next()
      isRead = chunk === undefined
      return chunk
    },
    send: async (message) => {
      const event = message as PushEvent
      if (event.kind === 'report') report = event
      else if (isRead && !words.has('quiet')) {
        begin()
        await band.words(`${gitText(event.told)}\n`)
      }
    },
    close: () => Promise.resolve(),
    abort: () => reply.abort(),
    finish: async () => {
      while (!isRead) isRead = (await reader.next()) === undefined
      begin()
      const { unpack, refs } = report ?? fail('INTERNAL', { reason: 'no report of a push' })
      for (const hint of refs.flatMap(hintsOf)) await band.words(`${hint}\n`)
      if (!words.has('report-status') && !words.has('report-status-v2')) return band.close()
      const lines = [
        `unpack ${unpack === null ? 'ok' : sentenceOf(unpack)}\n`,
        ...refs.map(({ name, refused }) => (refused === null ? `ok ${name}\n` : `ng ${name} ${sentenceOf(refused)}\n`)),
      ]
      await band.data(Buffer.concat([...lines.map((line) => pkt(line)), FLUSH]))
      return band.close()
    },
  }
}

function hintsOf({ name, refused, hints }: Report['refs'][number]): string[] {
  const advice = refused === null ? undefined : adviceOn(refused)
  return [...hints.map(gitText), ...(advice === undefined ? [] : [`${name}: ${gitText(advice)}`])]
}

const orNull = (oid: string): string | null => (/^0+$/.test(oid) ? null : oid)
