/** The service: the registry behind the pipeline, and nothing else. */
import { fail } from '@csb/core'
import { createChainCache, currentKey } from '@csb/authority'
import { chargeAnswer, meteredPort } from './session/metering.ts'
import type { Context, Operation, Parts } from './operation.ts'
import { createPipeline } from './pipeline.ts'
import { createFolding } from './refusals.ts'
import { OPERATIONS } from './registry.ts'
import { checkHearing, heldPort } from './session/standing.ts'
import type { PerformOptions, Service, ServiceEvent } from './service.ts'

export function createService(init: Parts): Service {
  const parts = withOwner(init)
  const listeners = new Set<(event: ServiceEvent) => void>()
  const emit = (event: ServiceEvent) => {
    for (const listener of listeners) listener(event)
  }
  const pipeline = createPipeline(parts, createFolding(parts.clock), emit, createChainCache())

  const admitted = async <K extends Operation['kind']>(
    kinds: readonly K[],
    name: string,
    enter: (operation: Operation & { kind: K }) => Promise<Context>,
  ) => {
    const operation = OPERATIONS.get(name) ?? fail('UNKNOWN_OPERATION', { operation: name })
    if (!isOf(operation, kinds)) fail('UNKNOWN_OPERATION', { operation: name, kind: operation.kind })
    return { operation, context: await enter(operation) }
  }

  return {
    perform: async (caller, name, input, options: PerformOptions = {}) => {
      const { operation, context } = await admitted(['read', 'write', 'call'], name, (found) =>
        pipeline.admit(caller, found, input, options),
      )
      return pipeline.conclude(context, { operation, input }, async () =>
        chargeAnswer(context, operation, await operation.run(context, input as never)),
      )
    },

    open: async function* (caller, name, input, options: PerformOptions = {}) {
      const { operation, context } = await admitted(['stream'], name, (found) =>
        pipeline.admit(caller, found, input, options),
      )
      const iterator = operation.run(context, input as never)[Symbol.asyncIterator]()
      try {
        for (;;) {
          const step = await pipeline.conclude(context, { operation, input }, async () => {
            const next = await iterator.next()
            checkHearing(context, operation, input)
            if (next.done !== true) await chargeAnswer(context, operation, next.value)
            return next
          })
          if (step.done === true) return
          yield step.value
        }
      } finally {
        await iterator.return?.()
      }
    },

    attend: async (caller, name, input, port, options: PerformOptions = {}) => {
      const { operation, context } = await admitted(['session'], name, (found) =>
        pipeline.admit(caller, found, input, options),
      )
      await pipeline.conclude(context, { operation, input }, () =>
        operation.run(context, input as never, heldPort(context, operation, input, meteredPort(context, port))),
      )
    },

    watch: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },

    close: async () => {
      listeners.clear()
      parts.runs.projecting.stop()
    },
  }
}

/** Who the owner is by now: the key may have changed since the node was made, or started. */
function withOwner(parts: Parts): Parts {
  const { identity, store } = parts
  return {
    ...parts,
    get identity() {
      return { ...identity, owner: { ...identity.owner, did: currentKey(store.view(), identity.owner.did) } }
    },
  }
}

function isOf<K extends Operation['kind']>(
  operation: Operation,
  kinds: readonly K[],
): operation is Operation & { kind: K } {
  return (kinds as readonly string[]).includes(operation.kind)
}
