/** From A2A methods to operations: one agent, here or on another node, asked on behalf of one caller. */
import type { Caller, Service } from '@csb/service'

const UNARY = {
  SendMessage: 'agents.send',
  'tasks/send': 'agents.tasksSend',
  GetTask: 'agents.getTask',
  ListTasks: 'agents.listTasks',
  CancelTask: 'agents.cancelTask',
} as const

const STREAMING = {
  SendStreamingMessage: 'agents.stream',
  SubscribeToTask: 'agents.subscribe',
} as const

export type UnaryMethod = keyof typeof UNARY
export type StreamingMethod = keyof typeof STREAMING

export const isUnary = (method: string): method is UnaryMethod => Object.hasOwn(UNARY, method)
export const isStreaming = (method: string): method is StreamingMethod => Object.hasOwn(STREAMING, method)

/** Where a request goes: `did` only for an agent of another node. */
export type AgentAddress = { readonly agent: string; readonly did?: string }

export type AgentCall = {
  ask(method: UnaryMethod, params: unknown): Promise<unknown>
  follow(method: StreamingMethod, params: unknown): AsyncIterable<unknown>
}

export type AgentCallInit = {
  readonly service: Service
  readonly caller: Caller
  readonly address: AgentAddress
  readonly requestId: string
  readonly signal: AbortSignal
}

export function createAgentCall({ service, caller, address, requestId, signal }: AgentCallInit): AgentCall {
  const options = { requestId, signal }
  return {
    ask: (method, params) => service.perform(caller, UNARY[method], { ...address, params: params ?? {} }, options),
    follow: (method, params) => service.open(caller, STREAMING[method], { ...address, params: params ?? {} }, options),
  }
}
