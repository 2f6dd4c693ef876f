export { isTerminal, type JsonObject, type Message, type StreamResponse, type Task, type TaskState } from './a2a.ts'
export { attachAgent, detachAgent, getAgent, listAgents, type AttachedAgent } from './attached.ts'
export { agentCard, cardHash, signCard, verifyCard, type AgentCard } from './card.ts'
export { runCommand, type RunOptions } from './command.ts'
export { checkEnvelope, createEnvelope } from './envelope.ts'
export { createTaskBus, followTask, waitForTask, type FollowOptions, type TaskBus } from './follow.ts'
export {
  acceptAgentRecord,
  agentRecord,
  getAgentRecord,
  listAgentRecords,
  nextRecordSeq,
  verifyAgentRecord,
  type AgentRecordInput,
} from './record.ts'
export type { AgentEvent, AgentResult, Usage } from './output.ts'
export { createReply, endedUpdate, failureUpdate } from './reply.ts'
export { questionOf, readRequest, type Request } from './request.ts'
export { listReceived } from './inbox.ts'
export { TASKS_SEND, toTasksSend } from './tasks-send.ts'
export { hasEnded, type Owner } from './task-log.ts'
export { getTask, listTasks } from './task-query.ts'
export {
  agentMessage,
  appendTaskEvent,
  cancelTask,
  continueTask,
  createTask,
  failInterruptedTasks,
  type Accepted,
  type TaskUpdate,
} from './tasks.ts'
