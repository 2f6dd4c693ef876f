export type { Caller, Door } from './caller.ts'
export type { CallOptions, EnvelopeReply, MessagePort, Peers, PeerSummary, SessionKind } from './peers.ts'
export type { Service, PerformOptions, ServiceEvent } from './service.ts'
