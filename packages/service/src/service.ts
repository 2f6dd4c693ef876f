/** The node's one way in. Every door, whatever it speaks, makes one of these three calls. */
import type { Caller } from './caller.ts'
import type { MessagePort } from './peers.ts'

export type PerformOptions = {
  readonly signal?: AbortSignal
  /** id of the request for logs and records; made when missing */
  readonly requestId?: string
}

/** What happened, for whoever watches: ids and codes, never content. */
export type ServiceEvent = {
  readonly kind: string
  readonly operation: string
  readonly outcome: 'done' | 'refused' | 'failed'
  readonly seq: number
}

export type Service = {
  /**
   * One request, one answer.
   * @param operation a name of the registry
   * @param input what the door read, not yet checked
   * @throws NodeError with a code of the table; a refusal is already in the record
   */
  perform(caller: Caller, operation: string, input: unknown, options?: PerformOptions): Promise<unknown>
  /** One request, a stream of answers. The same checks, at the start. */
  open(caller: Caller, operation: string, input: unknown, options?: PerformOptions): AsyncIterable<unknown>
  /** A session: messages both ways until one side ends it. The same checks, at the start. */
  attend(caller: Caller, operation: string, input: unknown, port: MessagePort, options?: PerformOptions): Promise<void>
  /** @returns a function that stops watching */
  watch(listener: (event: ServiceEvent) => void): () => void
  close(): Promise<void>
}
