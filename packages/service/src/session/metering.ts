/**
 * Counting what is done under a lease with a budget, or under one that hangs below such a lease: calls and bytes, and
 * what agents say they used. A use is counted before it counts for anybody, so that what was refused or broken off has
 * been used all the same.
 * @clause L1.2
 */
import { charge, isMetered, leftOf, spend, type Principal } from '@csb/authority'
import { fail, type Lease } from '@csb/core'
import type { Usage } from '@csb/agents'
import type { Operation, Parts } from '../operation.ts'
import type { MessagePort } from '../peers.ts'

type Counted = Pick<Operation, 'kind' | 'shows'>

type Payer = Pick<Parts, 'store'> & { readonly principal: Principal }

/**
 * Count a call and what it brings.
 * @throws SCOPE_EXCEEDED with `budget.<unit>`
 */
export async function chargeCall(
  { store, principal: { leaseHash } }: Payer,
  operation: Counted,
  input: unknown,
): Promise<void> {
  const view = store.view()
  if (leaseHash === null || !isMetered(view, leaseHash)) return
  // what is read is known only afterwards; who has nothing left does not begin
  if (isReading(operation) && leftOf(view, leaseHash, 'bytes_read') === 0)
    fail('SCOPE_EXCEEDED', { field: 'budget.bytes_read', lease: leaseHash })
  const written = operation.kind === 'write' ? { bytes_written: bytesOf(input) } : {}
  await store.transact((tx) => charge(tx, leaseHash, { calls: 1, ...written }))
}

/**
 * Count an answer before it is given.
 * @throws SCOPE_EXCEEDED with `budget.bytes_read`
 */
export async function chargeAnswer<T>(
  { store, principal: { leaseHash } }: Payer,
  operation: Counted,
  answer: T,
): Promise<T> {
  if (leaseHash === null || !isReading(operation) || !isMetered(store.view(), leaseHash)) return answer
  await store.transact((tx) => charge(tx, leaseHash, { bytes_read: bytesOf(answer) }))
  return answer
}

/** What a run may use only as much of as there is. */
const RUN_UNITS = ['wall_ms', 'tokens', 'cost_micro'] as const

/**
 * Is there something left for another run?
 * @param payer hash of the lease on whose account it is
 * @throws SCOPE_EXCEEDED with `budget.<unit>`
 */
export function checkLeft({ store }: Pick<Parts, 'store'>, payer: string): void {
  const view = store.view()
  for (const unit of RUN_UNITS) {
    if (leftOf(view, payer, unit) === 0) fail('SCOPE_EXCEEDED', { field: `budget.${unit}`, lease: payer })
  }
}

/** Of the units that a lease has a budget of, what is left. */
export function leftIn({ store }: Pick<Parts, 'store'>, leaseHash: string, lease: Lease): Lease['budget'] {
  if (lease.budget === undefined) return undefined
  const view = store.view()
  const units = Object.keys(lease.budget) as (keyof NonNullable<Lease['budget']>)[]
  return Object.fromEntries(units.map((unit) => [unit, leftOf(view, leaseHash, unit)])) as Lease['budget']
}

/**
 * Count what an agent says it used, before it is heard any further. It is used: what is over the budget takes all that
 * there is, and nothing of it comes back.
 * @throws SCOPE_EXCEEDED with `budget.<unit>` where there was too little
 * @clause L1.2
 */
export async function spendUsage({ store }: Pick<Parts, 'store'>, leaseHash: string, usage: Usage): Promise<void> {
  if (!isMetered(store.view(), leaseHash)) return
  const short = await store.transact((tx) => spend(tx, leaseHash, usage))
  if (short !== undefined) fail('SCOPE_EXCEEDED', short)
}

/** A port whose every message is counted, in either direction, before it goes on. */
export function meteredPort({ store, principal: { leaseHash } }: Payer, port: MessagePort): MessagePort {
  if (leaseHash === null || !isMetered(store.view(), leaseHash)) return port
  const count = (unit: 'bytes_read' | 'bytes_written', message: unknown) =>
    store.transact((tx) => charge(tx, leaseHash, { [unit]: bytesOf(message) }))
  return {
    ...port,
    send: async (message) => {
      await count('bytes_read', message)
      await port.send(message)
    },
    receive: async () => {
      const message = await port.receive()
      if (message !== undefined) await count('bytes_written', message)
      return message
    },
  }
}

/** What a write answers is what was written, and what it came to; each message of a session is counted by itself. */
const isReading = ({ kind, shows }: Counted): boolean => (kind !== 'write' && kind !== 'session') || shows === true

/** Bytes of a value as JSON; of one that carries bytes, those. */
function bytesOf(value: unknown): number {
  if (value instanceof Uint8Array) return value.byteLength
  const { bytes } = (value ?? {}) as { bytes?: unknown }
  return bytes instanceof Uint8Array ? bytes.byteLength : Buffer.byteLength(JSON.stringify(value) ?? '')
}
