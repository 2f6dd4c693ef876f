/**
 * A request's life, once, for every door: validate, identify, authorize, guard, run, record, commit, emit.
 * Each step has one error exit; a refusal at any of them is written into the record before it is answered.
 * @clause L1.1, L1.5
 */
import { EXIT, checkSchema, isNodeError, newId, toNodeError, type NodeError } from '@csb/core'
import {
  appendRecord,
  clearanceOfLease,
  heldOf,
  isExternal,
  recordEnding,
  type ChainCache,
  type Principal,
  type RecordEntry,
} from '@csb/authority'
import type { ReadEntry, Transaction, View } from '@csb/store'
import type { Caller } from './caller.ts'
import type { Context, Effect, Operation, Parts } from './operation.ts'
import { readHere } from './session/foreign-home.ts'
import { chargeCall } from './session/metering.ts'
import { readsFor } from './session/reads.ts'
import { authorize, checkActing, checkStanding, identify } from './session/standing.ts'
import { heard, keepTaint, refuseOutside } from './session/taint.ts'
import type { Folding } from './refusals.ts'
import type { PerformOptions, ServiceEvent } from './service.ts'

export type Pipeline = {
  /** Steps 1 to 4: check, and give the context in which the operation runs. Refusals are recorded. */
  admit(caller: Caller, operation: Operation, input: unknown, options: PerformOptions): Promise<Context>
  /** Steps 5 to 8 for an operation's whole life: run it, keep what it has heard, record how it failed. */
  conclude<T>(context: Context, asked: Asked, work: () => Promise<T>): Promise<T>
}

/** An operation and what it was asked. */
export type Asked = { readonly operation: Operation; readonly input: unknown }

/** The words in which another node says no are its own, whatever was asked of it: an answer may be numbers all the same. */
const REFUSAL = 'how another node refused'

type Work<T> = (tx: Transaction) => Promise<T> | T

type Emit = (event: ServiceEvent) => void

/** What is known of a request when something goes wrong with it. */
type Known = {
  readonly caller: Caller
  readonly operation: Operation
  readonly run: string
  readonly principal?: Principal
  /** hash of the grant on whose word it is done, where the lease is another one */
  readonly basis?: string
  /** the node's own work for a run */
  readonly isForRun?: boolean
}

export function createPipeline(parts: Parts, folding: Folding, emit: Emit, chains: ChainCache): Pipeline {
  const refuse = async (known: Known, error: NodeError): Promise<void> => {
    const folded = folding.admit([actorOf(known), known.operation.name, error.code].join(' '))
    if (folded === undefined) return
    const entry = entryOf(known, 'refused', { details: error.details, folded })
    await record(parts, { ...entry, code: error.code }, emit).catch((late: unknown) => {
      // while nothing may be written, what was refused stays refused; the log has it
      if (!isNodeError(late, 'RECORD_HELD')) throw late
      parts.log('warn', 'refused while the record is held', { operation: known.operation.name, code: error.code })
    })
  }

  return {
    admit: async (caller, operation, input, options) => {
      let run = newId('run', parts.clock.now())
      let principal: Principal | undefined
      try {
        checkSchema(operation.input, input)
        principal = identify({ ...parts, chains }, caller, operation, input)
        run = principal.chain.at(-1)?.delegation.task ?? run
        authorize(parts, principal, operation, input)
        checkActing(parts, operation, input, run)
        await chargeCall({ ...parts, principal }, operation, input)
      } catch (error) {
        const reason = toNodeError(error)
        await refuse({ caller, operation, run, ...(principal === undefined ? {} : { principal }) }, reason)
        throw reason
      }
      return createContext(parts, { caller, operation, run, principal }, options, emit)
    },

    conclude: async (context, { operation, input }, work) => {
      try {
        const value = await work()
        await takeHeard(context, operation, input)
        context.keepReads()
        return value
      } catch (error) {
        const failed = toNodeError(error)
        // what was read before it failed may show in how it failed, and another node may have said how
        const taken = failed.isTold ? takeHeard(context, operation, input, REFUSAL) : keepTaint(context)
        const reason = await taken.then(() => failed, toNodeError)
        // what a lease takes nothing of was not shown
        if (reason === failed) context.keepReads()
        const known: Known = { caller: context.caller, operation, run: context.run, principal: context.principal }
        if (reason.row.exit === EXIT.refused) await refuse(known, reason)
        else if (reason.code === 'INTERNAL')
          parts.log('error', 'operation failed', { operation: operation.name, error: String(reason.cause) })
        throw reason
      }
    },
  }
}

/**
 * @param otherwise what was heard where the operation names nobody whom it hears
 * @throws DENIED where the lease takes nothing from outside
 */
async function takeHeard(
  context: Context,
  { hears }: Operation,
  input: unknown,
  otherwise?: typeof REFUSAL,
): Promise<void> {
  const place = hears?.(input as never, context) ?? otherwise
  if (place !== undefined) context.outside.push(heard(context, place))
  await keepTaint(context)
}

function createContext(
  parts: Parts,
  known: Known & { readonly principal: Principal },
  options: PerformOptions,
  emit: Emit,
): Context {
  const { principal, run } = known
  const reads = readsFor(parts, known)
  const outside: ReadEntry[] = []
  const noteRead = (noted: ReadEntry) => {
    const entry = readHere(parts, parts.store.view(), noted)
    if (isExternal(entry)) outside.push(entry)
    reads.noteRead(entry)
  }
  const noted = <V extends View>(view: V): V => Object.defineProperty(view, 'noteRead', { value: noteRead })
  const requestId = options.requestId ?? newId('request', parts.clock.now())
  const signal = options.signal ?? new AbortController().signal

  const stage = async <T>(tx: Transaction, work: Work<T>): Promise<T> => {
    checkStanding(tx, parts, known)
    const done = await work(noted(tx))
    refuseOutside({ principal, outside })
    return done
  }
  const tell: Context['tell'] = async (work, effect) => {
    const { value, seq } = await parts.store.transact(async (tx) => {
      const done = await stage(tx, work)
      const told = effect(done)
      const commit = typeof told['commit'] === 'string' ? { commit: told['commit'] } : {}
      const commits = isStrings(told['commits']) ? { commits: told['commits'] } : {}
      const entry = { ...entryOf(known, 'done', told), ...(await reads.listed(tx)), ...commit, ...commits }
      return { value: done, seq: appendRecord(tx, entry, parts.clock.now()) }
    })
    reads.wereListed()
    emit({ kind: 'record', operation: known.operation.name, outcome: 'done', seq: seq.seq })
    return { value, seq }
  }
  const end: Context['end'] = async (work, effect) => {
    const { value, seq } = await parts.store.transact(async (tx) => {
      const done = await stage(tx, work)
      const listed = heldOf(tx) === undefined ? await reads.listed(tx) : {}
      const entry = { ...entryOf(known, 'done', effect(done)), ...listed }
      return { value: done, seq: recordEnding(tx, entry, parts.clock.now())?.seq }
    })
    if (seq === undefined) return value
    reads.wereListed()
    emit({ kind: 'record', operation: known.operation.name, outcome: 'done', seq })
    return value
  }

  return {
    ...parts,
    caller: known.caller,
    principal,
    clearance: principal.lease === null ? { level: 'public', tags: [] } : clearanceOfLease(principal.lease),
    run,
    requestId,
    signal,
    get view() {
      return noted(parts.store.view())
    },
    reads: () => reads.reads,
    keepReads: () =>
      reads.keep(async (tx) => {
        appendRecord(tx, { ...entryOf(known, 'done', {}), ...(await reads.listed(tx)) }, parts.clock.now())
      }),
    outside,
    tell,
    end,
    write: async (work, effect) => (await tell(work, effect)).value,
    note: async (error, effect, work) => {
      const outcome = error.row.exit === EXIT.refused ? 'refused' : 'failed'
      const seq = await parts.store.transact(async (tx) => {
        work?.(tx)
        const entry = { ...entryOf(known, outcome, effect), code: error.code, ...(await reads.listed(tx)) }
        return appendRecord(tx, entry, parts.clock.now()).seq
      })
      reads.wereListed()
      emit({ kind: 'record', operation: known.operation.name, outcome, seq })
    },
    become: (other, otherRun, basis) =>
      createContext(
        parts,
        {
          ...known,
          principal: other,
          run: otherRun,
          isForRun: otherRun !== run,
          ...(basis === undefined ? {} : { basis }),
        },
        { requestId, signal: new AbortController().signal },
        emit,
      ),
  }
}

const isStrings = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string')

const actorOf = ({ principal, caller }: Known): string =>
  principal?.did ?? (caller.kind === 'peer' ? caller.did : `${caller.door}:${caller.kind}`)

function entryOf(known: Known, outcome: RecordEntry['outcome'], effect: Effect): RecordEntry {
  return {
    operation: known.operation.name,
    outcome,
    actor: actorOf(known),
    door: known.caller.door,
    run: known.run,
    lease: known.principal?.leaseHash ?? null,
    ...(known.basis === undefined ? {} : { basis: known.basis }),
    reads: [],
    effect,
  }
}

async function record(parts: Parts, entry: RecordEntry, emit: Emit): Promise<void> {
  const { seq } = await parts.store.transact((tx) => appendRecord(tx, entry, parts.clock.now()))
  emit({ kind: 'record', operation: entry.operation, outcome: entry.outcome, seq })
}
