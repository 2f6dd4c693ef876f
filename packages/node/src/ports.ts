/**
 * Asks whether the ports of a node are free before anything of it is built, and finds some that are where not.
 * It only looks: what really listens afterwards may still be told that a port is taken.
 */
import { createServer } from 'node:net'
import { fail } from '@csb/core'
import type { Settings } from './config.ts'

/** A node has its HTTP port and the two after it, so the next node stands ten further on. */
const STEP = 10
const TRIES = 50

type Address = { readonly host: string; readonly port: number }

/** @throws PORT_IN_USE with the port, what wants it, and a `next` for --port where one was found */
export async function checkPorts({ http, p2p }: Settings): Promise<void> {
  const wanted = [{ ...http, door: 'http' }, ...p2p.listen.flatMap(addressOf).map((one) => ({ ...one, door: 'peers' }))]
  for (const { host, port, door } of wanted) {
    if (await isFree({ host, port })) continue
    const next = await nextFree(http.host, http.port)
    fail('PORT_IN_USE', { host, port, door, ...(next === undefined ? {} : { next }) })
  }
}

/** True for an error in which a library tells, in whatever words, that an address is taken. */
export const isPortTaken = (error: unknown): boolean => error instanceof Error && error.message.includes('EADDRINUSE')

/** TCP addresses alone: `/ip4/0.0.0.0/tcp/7481`, with or without `/ws`. */
function addressOf(multiaddr: string): Address[] {
  const match = /^\/ip[46]\/([^/]+)\/tcp\/([0-9]+)(?:\/|$)/.exec(multiaddr)
  return match === null ? [] : [{ host: match[1] ?? '', port: Number(match[2]) }]
}

async function nextFree(host: string, from: number): Promise<number | undefined> {
  for (let port = from + STEP; port < from + STEP * TRIES && port <= 65_533; port += STEP) {
    const beside = [0, 1, 2].map((offset) => isFree({ host: offset === 0 ? host : '0.0.0.0', port: port + offset }))
    if ((await Promise.all(beside)).every(Boolean)) return port
  }
  return undefined
}

/** False only where somebody has it; whatever else is wrong with an address is told by who really listens there. */
function isFree({ host, port }: Address): Promise<boolean> {
  if (port === 0) return Promise.resolve(true)
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'EADDRINUSE'))
    server.listen({ host, port, exclusive: true }, () => {
      server.close(() => resolve(true))
    })
  })
}
