/** The daily collection of garbage: of every home that this node keeps, its own and the copies of others'. */
import { toNodeError } from '@csb/core'
import { listHomes } from '@csb/files'
import type { Parts } from './operation.ts'
import type { Service } from './service.ts'

const NODE = { kind: 'node', door: 'timer' } as const

/** One home after the other, each in bounded steps. One that is damaged keeps the others from nothing. */
export async function collectHomes({ store, log }: Parts, service: Service, signal: AbortSignal): Promise<void> {
  for (const { id: home } of await listHomes(store.view())) {
    await service.perform(NODE, 'files.gc', { home }, { signal }).catch((error: unknown) => {
      signal.throwIfAborted()
      log('warn', 'garbage of a home is not collected', { home, code: toNodeError(error).code })
    })
  }
}
