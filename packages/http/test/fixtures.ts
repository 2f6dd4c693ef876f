/**
 * A service that writes down what it is asked and answers what the test says: the border of the door, nothing
 * behind it. And a door on a free port, closed when the test file ends.
 */
import { afterAll } from 'vitest'
import { NodeError } from '@csb/core'
import type { Caller, PerformOptions, Service } from '@csb/service'
import { createHttp, type Http, type HttpInit } from '../src/index.ts'

export type Asked = {
  readonly caller: Caller
  readonly operation: string
  readonly input: unknown
  readonly options: PerformOptions
}
export type Answer = (input: Record<string, unknown>, options: PerformOptions) => unknown
export type Flow = (input: Record<string, unknown>, options: PerformOptions) => AsyncIterable<unknown>

export type RecordingService = Service & {
  readonly asked: Asked[]
  readonly answers: Map<string, Answer>
  readonly flows: Map<string, Flow>
}

export function createRecordingService(): RecordingService {
  const asked: Asked[] = []
  const answers = new Map<string, Answer>()
  const flows = new Map<string, Flow>()
  return {
    asked,
    answers,
    flows,
    perform: async (caller, operation, input, options = {}) => {
      asked.push({ caller, operation, input, options })
      return answers.get(operation)?.(input as Record<string, unknown>, options) ?? { did: operation }
    },
    open: async function* (caller, operation, input, options = {}) {
      asked.push({ caller, operation, input, options })
      yield* flows.get(operation)?.(input as Record<string, unknown>, options) ?? []
    },
    attend: () => Promise.reject(new NodeError('UNKNOWN_OPERATION')),
    watch: () => () => undefined,
    close: () => Promise.resolve(),
  }
}

const closing: (() => Promise<void>)[] = []

afterAll(async () => {
  for (const close of closing) await close()
})

export type Door = Http & {
  readonly service: RecordingService
  request(path: string, init?: RequestInit): Promise<Response>
}

export async function openDoor(init: Partial<HttpInit> = {}): Promise<Door> {
  const service = createRecordingService()
  const http = await createHttp({ service, port: 0, ...init })
  closing.push(() => http.close())
  return { ...http, service, request: (path, options) => fetch(`http://127.0.0.1:${http.port}${path}`, options) }
}

export const TOKEN = 'csb_token-1'
export const auth = { Authorization: `Bearer ${TOKEN}` }
export const json = { 'Content-Type': 'application/json' }

export const post = (body: unknown, headers: Record<string, string> = {}): RequestInit => ({
  method: 'POST',
  headers: { ...json, ...auth, ...headers },
  body: typeof body === 'string' ? body : JSON.stringify(body),
})
