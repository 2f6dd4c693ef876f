/** Another node that speaks to a house: its key, its owner, what that owner let it say. */
import { createKeyPair, type Authority, type Envelope, type Grant, type KeyPair, type Status } from '@csb/core'
import { createEnvelope } from '@csb/agents'
import {
  draftGrant,
  payloadDigest,
  signAuthority,
  signGrant,
  signStatus,
  trust,
  type GrantInit,
  type Rank,
} from '@csb/authority'
import type { EnvelopeReply } from '../src/index.ts'
import { HOUR, messageOf, visitor, type House, type Task } from './house.ts'

export type Speaker = {
  readonly key: KeyPair
  readonly origin: KeyPair
  readonly grant: (house: House, more?: Partial<GrantInit>) => Grant
}

export function createSpeaker(): Speaker {
  const key = createKeyPair()
  const origin = createKeyPair()
  return {
    key,
    origin,
    grant: (house, more = {}) =>
      signGrant(
        draftGrant({
          type: 'scoped',
          from: { name: 'whoever', did: origin.did },
          to: { name: 'speaker', did: key.did },
          audience: [house.key.did],
          scope: ['reports'],
          level: 'execute',
          now: house.clock.now(),
          ttlMs: HOUR,
          statusKey: key.did,
          ...more,
        }),
        origin,
      ),
  }
}

/** The owner of the house lists the speaker's owner, under a name of its own. */
export const listed = (house: House, { origin }: Speaker, ceiling: Rank = 'override'): Promise<unknown> =>
  house.store.transact((tx) =>
    trust(tx, { did: origin.did, name: 'Ines', ceiling, clearance: { level: 'trusted', tags: [] } }),
  )

export type Saying = {
  readonly text?: string
  readonly message?: Record<string, unknown>
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly grants?: readonly Grant[]
  readonly level?: Rank
  /** what its status key said last; default that nothing is revoked */
  readonly status?: readonly Status[]
  readonly scope?: readonly string[]
  /** the authority after it was signed */
  readonly change?: (authority: Authority) => unknown
  readonly envelope?: Partial<Record<keyof Envelope, unknown>>
  readonly agent?: string
  readonly configuration?: object
}

/** The envelope with what is said. */
export function envelopeOf(house: House, { key }: Speaker, saying: Saying): Envelope {
  const { text = 'hello', grants, agent = 'clerk', method = 'SendMessage' } = saying
  const now = house.clock.now()
  const params = saying.params ?? {
    message: saying.message ?? messageOf(text),
    ...(saying.configuration === undefined ? {} : { configuration: saying.configuration }),
  }
  const body = { jsonrpc: '2.0' as const, id: 'r1', method, params }
  const signed =
    grants === undefined
      ? undefined
      : signAuthority(
          {
            chain: grants,
            payload: payloadDigest(body),
            level: saying.level ?? grants.at(-1)?.delegation.level ?? 'request',
            scope: saying.scope ?? grants.at(-1)?.delegation.scope ?? [],
            audience: house.key.did,
            now,
            ttlMs: 300_000,
            status: saying.status ?? [signStatus({ seq: 0, revoked: [], now }, key)],
          },
          key,
        )
  const authority = signed === undefined ? undefined : (saying.change ?? ((same) => same))(signed)
  const made = createEnvelope({ from: key.did, to: house.key.did, agent, body }, now)
  return { ...made, ...(authority === undefined ? {} : { authority }), ...saying.envelope } as Envelope
}

/** Deliver an envelope as the door does, and give what was answered. */
export async function deliver(
  house: House,
  { key }: Pick<Speaker, 'key'>,
  envelope: unknown,
): Promise<EnvelopeReply[]> {
  const replies: EnvelopeReply[] = []
  for await (const reply of house.service.open(visitor(key.did), 'agents.deliver', { envelope })) {
    replies.push(reply as EnvelopeReply)
  }
  return replies
}

/** The task that was answered with. */
export function taskOf([reply]: readonly EnvelopeReply[]): Task {
  const { result } = (reply?.body ?? {}) as { result?: { task?: Task } }
  if (result?.task === undefined) throw new Error('no task was answered')
  return result.task
}

/** Say something and wait for the task. */
export const say = async (house: House, speaker: Speaker, saying: Saying): Promise<Task> =>
  taskOf(await deliver(house, speaker, envelopeOf(house, speaker, saying)))
