/**
 * Ports for nodes that are to come back where others know them. One that the system picks may be picked again for
 * somebody else while its node is down; these lie below all that it picks, and apart from those of other processes.
 */
import { createServer } from 'node:net'

const LOWEST = 10_000
/** What the system picks begins at 32,768 or above. */
const BLOCKS = 220
const BLOCK = 100

export type Ports = {
  /** The first of so many free ports in a row, each given once; 0, which lets the system pick, where none is left. */
  take(count?: number): Promise<number>
}

/** @param pid of the process that hands them out */
export function createPorts(pid: number): Ports {
  const first = LOWEST + (pid % BLOCKS) * BLOCK
  let next = first
  return {
    take: async (count = 1) => {
      while (next + count <= first + BLOCK) {
        const port = next
        next += count
        const row = Array.from({ length: count }, (_, at) => isFree(port + at))
        if ((await Promise.all(row)).every(Boolean)) return port
      }
      return 0
    },
  }
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer().once('error', () => resolve(false))
    server.listen({ host: '0.0.0.0', port, exclusive: true }, () => server.close(() => resolve(true)))
  })
