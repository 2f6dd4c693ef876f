/**
 * Gossip of agent records on `csb/announce/1`: who is there is heard at once, and found later without a question.
 *
 * An announcement counts only from the node it speaks of. A malformed or wrongly signed one is rejected and costs
 * whoever forwarded it; a stale, repeated or foreign one is dropped without a word.
 * @clause A2A-012
 */
import { TopicValidatorResult, type Message } from '@libp2p/gossipsub'
import type { PeerId } from '@libp2p/interface'
import {
  LIMITS,
  canonicalize,
  didFromPeerId,
  fromUtf8,
  parseBounded,
  publicKeyFromPeerId,
  utf8,
  validate,
  type AgentRecord,
  type Clock,
} from '@csb/core'
import type { Directory } from './directory.ts'
import type { RecordBook } from './discovery.ts'
import { ANNOUNCE_TOPIC, type Host } from './host.ts'

export type Announcer = {
  /** Tell everybody. @returns how many peers it was sent to */
  announce(record: AgentRecord): Promise<number>
}

type Author = { seqno: bigint; announcedAt: number; tokens: number }

const MINUTE_MS = 60_000

/** Hear announcements from now on. */
export function createAnnouncer(host: Host, book: RecordBook, directory: Directory, clock: Clock): Announcer {
  const { pubsub } = host.libp2p.services
  const judge = createJudge(book, directory, clock)
  pubsub.topicValidators.set(ANNOUNCE_TOPIC, (peer, message) =>
    host.gater.blocked.has(peer.toString()) ? TopicValidatorResult.Ignore : judge(peer, message),
  )
  pubsub.subscribe(ANNOUNCE_TOPIC)
  return {
    announce: async (record) => {
      const { recipients } = await pubsub.publish(ANNOUNCE_TOPIC, utf8(canonicalize(record)))
      return recipients.length
    },
  }
}

/** Judges one message; what it accepts stands in the directory. */
export function createJudge(book: RecordBook, directory: Directory, clock: Clock) {
  /** longest silent first */
  const authors = new Map<string, Author>()

  /** Replays come through after the library's cache of two minutes: the author's own counter stops them. */
  const isFresh = (did: string, seqno: bigint): boolean => {
    const now = clock.now()
    const known = authors.get(did) ?? { seqno: -1n, announcedAt: now, tokens: LIMITS.announcesPerMinute }
    const gained = (Math.max(0, now - known.announcedAt) * LIMITS.announcesPerMinute) / MINUTE_MS
    const tokens = Math.min(LIMITS.announcesPerMinute, known.tokens + gained)
    if (seqno <= known.seqno || tokens < 1) return false
    authors.delete(did)
    authors.set(did, { seqno, announcedAt: now, tokens: tokens - 1 })
    const oldest = authors.size > LIMITS.directoryRecords ? authors.keys().next().value : undefined
    if (oldest !== undefined) authors.delete(oldest)
    return true
  }

  return async (_from: PeerId, message: Message): Promise<TopicValidatorResult> => {
    if (message.type !== 'signed') return TopicValidatorResult.Reject
    const record = parseRecord(message.data)
    if (record === undefined) return TopicValidatorResult.Reject
    const author = message.from.toString()
    if (publicKeyFromPeerId(author) === undefined || didFromPeerId(author) !== record.did)
      return TopicValidatorResult.Ignore
    // before the signature: an expired record is no attack, whoever passes it on
    if (record.expires_at <= clock.now()) return TopicValidatorResult.Ignore
    if (book.verify(record, record.did) === undefined) return TopicValidatorResult.Reject
    if (!isFresh(record.did, message.sequenceNumber)) return TopicValidatorResult.Ignore
    if (!(await book.accept(record))) return TopicValidatorResult.Ignore
    directory.keep(record)
    return TopicValidatorResult.Accept
  }
}

function parseRecord(data: Uint8Array): AgentRecord | undefined {
  if (data.byteLength > LIMITS.agentRecordBytes) return undefined
  try {
    return validate('AgentRecord', parseBounded(fromUtf8(data) ?? '', LIMITS.agentRecordBytes))
  } catch {
    return undefined
  }
}
