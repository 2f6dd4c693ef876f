/**
 * `/csb/card/1.0.0`: fetch the full A2A card of an agent from its node.
 *
 * The DHT record names the card's hash; whoever fetches it checks hash and signature itself.
 * @clause A2A-012
 */
import type { Connection } from '@libp2p/interface'
import { LIMITS, deadline, fail } from '@csb/core'
import type { CallOptions, Service } from '@csb/service'
import type { Admission } from '../admission.ts'
import { errorIn } from '../frame.ts'
import type { Host } from '../host.ts'
import { openStream, serve, type Log } from '../protocol.ts'

export const PROTOCOL_CARD = '/csb/card/1.0.0'

/** The card and the object around it. */
const CARD_FRAMES = { maxFrameBytes: LIMITS.cardBytes + 1024 } as const

export type CardServer = {
  readonly host: Host
  readonly service: Pick<Service, 'perform'>
  readonly admission: Admission
  readonly log: Log
}

/** Answer questions for cards until the node stops. */
export async function serveCards({ host, service, admission, log }: CardServer): Promise<void> {
  await serve(host, { ...CARD_FRAMES, protocol: PROTOCOL_CARD, admission, log }, async ({ caller, frames, first }) => {
    const input = await first()
    const signal = frames.gone
    await frames.send({ card: await service.perform(caller, 'agents.card', input, { signal }) })
  })
}

/**
 * Ask the node at the other end for the card of one of its agents. The answer is not verified here.
 * @throws NOT_FOUND or another code of the peer, PEER_UNREACHABLE, PEER_MISBEHAVED, TIMEOUT
 */
export async function askCard(connection: Connection, agent: string, options: CallOptions = {}): Promise<unknown> {
  const signal = deadline(LIMITS.requestTimeoutMs, options.signal)
  const frames = await openStream(connection, PROTOCOL_CARD, { ...CARD_FRAMES, signal })
  try {
    await frames.send({ agent })
    await frames.close(signal)
    const frame = await frames.receive(signal)
    const error = errorIn(frame)
    if (error !== undefined) throw error
    const card = (frame as { card?: unknown } | undefined)?.card
    if (card === undefined) fail('PEER_MISBEHAVED', { reason: 'an answer without a card' })
    return card
  } finally {
    void frames.settle()
  }
}
