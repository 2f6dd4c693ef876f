export {
  TASK_STATES,
  isInterrupted,
  isTerminal,
  type Artifact,
  type ArtifactUpdate,
  type JsonObject,
  type Message,
  type Part,
  type StatusUpdate,
  type StreamResponse,
  type Task,
  type TaskState,
  type TaskStatus,
} from './a2a.ts'
export { attachAgent, detachAgent, getAgent, listAgents, type AttachedAgent } from './attached.ts'
export {
  AUTHORITY_EXTENSION,
  LIBP2P_BINDING,
  agentCard,
  cardHash,
  signCard,
  verifyCard,
  type AgentCard,
  type CardInput,
} from './card.ts'
export { runCommand, type AgentEvent, type AgentResult, type RunOptions } from './command.ts'
export {
  ENVELOPE_VERSION,
  checkEnvelope,
  createEnvelope,
  type EnvelopeExpectation,
  type EnvelopeInput,
} from './envelope.ts'
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
export { ERROR_EXTENSION, createReply, failureUpdate, type Reply } from './reply.ts'
export { GENERATION, type TaskEvent } from './task-log.ts'
export { getTask, listTasks, type TaskFilter, type TaskPage } from './task-query.ts'
export {
  agentMessage,
  appendTaskEvent,
  cancelTask,
  continueTask,
  createTask,
  failInterruptedTasks,
  type Accepted,
  type MessageInput,
  type TaskUpdate,
} from './tasks.ts'
