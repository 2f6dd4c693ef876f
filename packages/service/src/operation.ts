/**
 * What an operation is: a name, the schema of its input, who may ask, how far the lease must reach, and one
 * function that calls one level package. Doors never see this; they call by name.
 */
import {
  EVERY_TAG,
  fail,
  type Clearance,
  type Clock,
  type Config,
  type Identity,
  type KeyPair,
  type Label,
  type NodeError,
} from '@csb/core'
import { allows, type LeaseRequest, type Principal } from '@csb/authority'
import type { ReadEntry, Store, Transaction, View } from '@csb/store'
import type { Caller } from './caller.ts'
import type { MessagePort, Peers } from './peers.ts'
import type { Runs } from './runs/active.ts'

/** What every operation can rely on: the node's parts, handed in once. */
export type Parts = {
  readonly store: Store
  readonly clock: Clock
  /** the node's key: its did and peer id */
  readonly key: KeyPair
  readonly identity: Identity
  readonly config: Config
  readonly peers: Peers
  readonly log: Log
  readonly version: string
  /** where agents on this node can be reached over HTTP; ends without a slash */
  httpUrl(): string
  /** what an attached agent sees of the environment */
  readonly agentEnvironment: Readonly<Record<string, string>>
  readonly runs: Runs
  /** Let it go on after the answer; its end is awaited when the node stops. */
  background(work: Promise<unknown>): void
}

/** Structured, no secrets, no content. */
export type Log = (
  level: 'debug' | 'info' | 'warn' | 'error',
  event: string,
  fields?: Readonly<Record<string, unknown>>,
) => void

/** What an outcome tells the record: ids, digests and codes. */
export type Effect = Readonly<Record<string, unknown>>

/** What an operation is given. */
export type Context = Parts & {
  readonly caller: Caller
  readonly principal: Principal
  /** what the caller may see, from its lease */
  readonly clearance: Clearance
  /** id of the run this belongs to */
  readonly run: string
  readonly requestId: string
  readonly signal: AbortSignal
  /** A view whose reads are noted for this run. */
  readonly view: View
  /**
   * Write state and its record in one batch.
   * @param effect what the record tells, made from the value; a `commit` member is indexed for explain
   */
  write<T>(work: (tx: Transaction) => Promise<T> | T, effect: (value: T) => Effect): Promise<T>
  /** The same, and the record's place: its number and leaf hash. */
  tell<T>(
    work: (tx: Transaction) => Promise<T> | T,
    effect: (value: T) => Effect,
  ): Promise<{ value: T; seq: { seq: number; leaf: string } }>
  /** The same for what ends rights, and nothing else: it is done while the record is held, too, and its entry waits. */
  end<T>(work: (tx: Transaction) => Promise<T> | T, effect: (value: T) => Effect): Promise<T>
  /** What the run has read so far. */
  reads(): readonly ReadEntry[]
  /** Keep what was read and stands in no entry of the record yet, behind the answer. */
  keepReads(): void
  /** What this request has read that came from outside and is not kept with its lease yet. */
  readonly outside: ReadEntry[]
  /** Record an outcome that is no success, together with what it leaves behind. */
  note(error: NodeError, effect: Effect, work?: (tx: Transaction) => void): Promise<void>
  /** The same request, carried on by somebody else: an agent under the lease of its run. */
  become(principal: Principal, run: string, basis?: string): Context
}

/**
 * Who may ask: `owner` the owner's own command line, whatever others hold; `lease` needs one that reaches; `peer` a Noise
 * peer; `nobody` anyone, for public cards and health.
 */
export type Openness = 'owner' | 'lease' | 'peer' | 'nobody'

export type Operation = {
  readonly name: string
  /** definition in schemas/operations-v1 */
  readonly input: string
  readonly open: Openness
  /** What the lease must cover for this input; undefined where holding any valid lease is enough. */
  needs?(input: never, parts: Parts): LeaseRequest
  /** It is a write, and its answer shows what was there before: that is counted as read. */
  readonly shows?: true
  /**
   * Does it only look here, for this input? Then it goes on where nothing may be changed or sent. Absent: a read does, and
   * nothing else. What asks other nodes never does: a question carries words.
   */
  looks?(input: never, parts: Parts): boolean
  /** It is let in while the record is held: what it writes by {@link Context.end} is done, and nothing else. */
  readonly evenHeld?: true
  /**
   * Whom it hears: what of its answer is the word of others that no label tells, as a person reads it; undefined where
   * nothing is. Absent: nothing ever. How another node refused is heard in any case.
   * @clause L1.7
   */
  hears?(input: never, parts: Parts): string | undefined
} & (
  | { readonly kind: 'read' | 'write' | 'call'; run(context: Context, input: never): unknown }
  | { readonly kind: 'stream'; run(context: Context, input: never): AsyncIterable<unknown> }
  | { readonly kind: 'session'; run(context: Context, input: never, port: MessagePort): Promise<void> }
)

/** Does it leave everything as it is, here and elsewhere? */
export const onlyLooks = ({ kind, looks }: Pick<Operation, 'kind' | 'looks'>, input: unknown, parts: Parts): boolean =>
  looks?.(input as never, parts) ?? kind === 'read'

/** Is what an input speaks of on this node? */
export const isHere = ({ did }: { readonly did?: string }, { key }: Pick<Parts, 'key'>): boolean =>
  did === undefined || did === key.did

/** The home an input speaks of, or the node's own. */
export const homeOf = (input: { readonly home?: string | undefined }, parts: Pick<Parts, 'identity'>): string =>
  input.home ?? parts.identity.home ?? 'none'

/**
 * What it takes to change who may do what here: whom the node trusts, which grants it keeps, which commands it runs.
 * The owner's command line has it; no run of an agent ever does.
 */
export const ruling = (_input: unknown, parts: Parts): LeaseRequest => ({
  location: locationOf(parts, homeOf({}, parts)),
  action: 'exec',
  capability: 'C',
})

/** What may speak of anything, as the record does, is for those who may see everything. */
export const EVERYTHING: Label = { level: 'sealed', integrity: 'owner', tags: [EVERY_TAG] }

/** What is told with ids, paths and words of any branch is for those who may read every branch as a whole. */
export const EVERYWHERE = { path: '/', below: true, branch: '*', label: EVERYTHING } as const

/** What it takes to be told what speaks of everything. */
export const readingAll = (_input: unknown, parts: Parts): LeaseRequest => ({
  location: locationOf(parts, homeOf({}, parts)),
  action: 'read',
  ...EVERYWHERE,
})

/** Does the caller's lease reach what turns up only while the operation runs? */
export const reaches = ({ principal }: Pick<Context, 'principal'>, needs: LeaseRequest): boolean =>
  principal.lease !== null && allows(principal.lease, needs).ok

/** @throws LEASE_REQUIRED, SCOPE_EXCEEDED with the field that does not reach */
export function checkReach({ principal }: Pick<Context, 'principal'>, needs: LeaseRequest): void {
  if (principal.lease === null) fail('LEASE_REQUIRED', { action: needs.action })
  const verdict = allows(principal.lease, needs)
  if (!verdict.ok) fail('SCOPE_EXCEEDED', { field: verdict.field, action: needs.action })
}

/** How a home at this node is named in leases. */
export const locationOf = (parts: Pick<Parts, 'key'>, home: string): string => `nas://${parts.key.peerId}/${home}`
