/**
 * A2A 0.3 clients, by the SDK's compatibility layer: it translates, and this hands over to the same operations.
 * The layer checks little of what it reads; they check what comes of it.
 */
import {
  ListTasksResponse,
  SendMessageRequest,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
  CancelTaskRequest,
  GetTaskRequest,
  ListTasksRequest,
  AgentCard,
} from '@a2a-js/sdk'
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server'
import { JsonRpcTransportError } from '@a2a-js/sdk/errors'
import { ServerCallContext, type A2ARequestHandler } from '@a2a-js/sdk/server'
import { toNodeError } from '@csb/core'
import { RpcFault, rpcErrorOf } from './a2a-errors.ts'
import type { AgentCall } from './a2a-call.ts'

/** A response, or a stream of them, in the form of 0.3. */
export type LegacyAnswer = object | AsyncGenerator<object, void, undefined>

/**
 * @param body the JSON-RPC request, already known to be one
 * @returns errors are part of the answer
 */
export async function answerLegacy(
  body: Readonly<Record<string, unknown>>,
  call: AgentCall,
  requestId: string,
): Promise<LegacyAnswer> {
  const handler = new LegacyJsonRpcTransportHandler(createRequestHandler(call, requestId))
  return handler.handle({ ...body }, new ServerCallContext({ requestedVersion: '0.3' }))
}

/** An error as it ends a stream of 0.3. */
export const legacyErrorOf = (error: unknown, requestId: string): object => {
  const { code, message } = rpcErrorOf(error instanceof RpcFault ? error : toNodeError(error), requestId)
  return { code, message }
}

function createRequestHandler(call: AgentCall, requestId: string): A2ARequestHandler {
  /** The layer knows errors of its own only; ours keep their code through it. */
  const told = (error: unknown): never => {
    const known = error instanceof RpcFault ? error : toNodeError(error)
    const { code, message } = rpcErrorOf(known, requestId)
    throw new JsonRpcTransportError({ jsonrpc: '2.0', id: null, error: { code, message } })
  }
  const ask = async (method: Parameters<AgentCall['ask']>[0], params: unknown): Promise<unknown> => {
    try {
      return await call.ask(method, params)
    } catch (error) {
      return told(error)
    }
  }
  async function* follow(
    method: Parameters<AgentCall['follow']>[0],
    params: unknown,
  ): AsyncGenerator<StreamResponse, void, undefined> {
    try {
      for await (const event of call.follow(method, params)) yield StreamResponse.fromJSON(event)
    } catch (error) {
      told(error)
    }
  }
  const refuse = (reason: ConstructorParameters<typeof RpcFault>[0]) => async () => told(new RpcFault(reason))
  const noPush = refuse('PUSH_NOTIFICATION_NOT_SUPPORTED')

  return {
    // asked only whether streams are offered
    getAgentCard: () => Promise.resolve(AgentCard.fromJSON({ capabilities: { streaming: true } })),
    getAuthenticatedExtendedAgentCard: refuse('EXTENDED_AGENT_CARD_NOT_CONFIGURED'),
    sendMessage: async (params) => {
      const { task } = (await ask('SendMessage', SendMessageRequest.toJSON(params))) as { task?: unknown }
      return Task.fromJSON(task)
    },
    sendMessageStream: (params) => follow('SendStreamingMessage', SendMessageRequest.toJSON(params)),
    getTask: async (params) => Task.fromJSON(await ask('GetTask', GetTaskRequest.toJSON(params))),
    cancelTask: async (params) => Task.fromJSON(await ask('CancelTask', CancelTaskRequest.toJSON(params))),
    listTasks: async (params) => ListTasksResponse.fromJSON(await ask('ListTasks', ListTasksRequest.toJSON(params))),
    resubscribe: (params) => follow('SubscribeToTask', SubscribeToTaskRequest.toJSON(params)),
    createTaskPushNotificationConfig: noPush,
    getTaskPushNotificationConfig: noPush,
    listTaskPushNotificationConfigs: noPush,
    deleteTaskPushNotificationConfig: noPush,
  }
}
