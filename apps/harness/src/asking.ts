/** What scenarios ask of a node, each over its HTTP door as anybody would. */
import { newId, systemClock, until, type AgentRecord, type Memory } from '@csb/core'
import type { Member } from './cluster.ts'

const FIND_MS = 60_000

export type Note = Memory & { readonly label: string }

export type Task = {
  readonly id: string
  readonly status: {
    readonly state: string
    readonly message?: {
      readonly parts: readonly { readonly text?: string }[]
      readonly metadata?: Record<string, unknown>
    }
  }
}

export type Entry = {
  readonly seq: number
  readonly operation: string
  readonly outcome: string
  readonly code: string | null
}

type Refs = { readonly refs: readonly { readonly branch: string; readonly tree: string }[] }
type Page = { readonly items: readonly Note[]; readonly next_cursor: string | null }
type SyncReport = { readonly sent: number; readonly received: number; readonly equal: boolean }

/** Enough of a did to tell it from others. */
export const short = (did: string): string => `…${did.slice(-8)}`

/** @returns id of the new note */
export async function addNote(member: Member, content: string, label = 'private:owner'): Promise<string> {
  const entry = { content, type: 'decision', level: 'hot' }
  return (await member.client.call<Note>('POST', '/v1/memory', { entry, label })).id
}

/** Every note of a home that a node holds. */
export async function notesAt(member: Member, home: string | null): Promise<Note[]> {
  const all: Note[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const after: string = cursor === '' ? '' : `&cursor=${cursor}`
    const page: Page = await member.client.call('GET', `/v1/memory?limit=200&home=${home ?? ''}${after}`)
    all.push(...page.items)
    cursor = page.next_cursor
  }
  return all
}

/** The tree of the memory branch of a home, as a node holds it. */
export async function treeOf(member: Member, home: string | null): Promise<string> {
  const { refs } = await member.client.call<Refs>('GET', `/v1/files/refs?home=${home ?? ''}`)
  return refs.find(({ branch }) => branch === 'memory')?.tree ?? ''
}

/** One round of sync, begun by the first. */
export const inStep = (from: Member, to: Member): Promise<SyncReport> =>
  from.client.call<SyncReport>('POST', '/v1/sync', { did: to.did })

/** Params of an A2A SendMessage with one text. */
export const message = (text: string) => ({
  message: { messageId: newId('message', systemClock.now()), role: 'ROLE_USER', parts: [{ text }] },
})

export type Sending = {
  readonly to: Member
  readonly agent: string
  readonly params: Readonly<Record<string, unknown>>
  readonly delegation?: string
  readonly level?: string
  readonly scope?: readonly string[]
}

/** Send a message to an agent of another node and wait for its task. */
export async function send(from: Member, { to, agent, ...rest }: Sending): Promise<Task> {
  const input = { did: to.did, ...rest }
  return (await from.client.call<{ task: Task }>('POST', `/v1/agents/${agent}/send`, input)).task
}

/** What the node says about a task, in words. */
export const noteOf = ({ status }: Task): string => status.message?.parts.map(({ text }) => text ?? '').join(' ') ?? ''

/** Look in the DHT until the record of a certain node is among those that can do something. */
export async function findProvider(member: Member, capability: string, provider: Member): Promise<AgentRecord> {
  const path = `/v1/agents/find?capability=${capability}`
  const look = async () =>
    (await member.client.call<{ items: AgentRecord[] }>('GET', path)).items.find(({ did }) => did === provider.did)
  return until(look, FIND_MS, `${member.name} finds ${capability} in the DHT`)
}

/** The newest entries of the record, newest first. */
export async function tailOf(member: Member, limit: number): Promise<Entry[]> {
  const { items } = await member.client.call<{ items: { header: Entry }[] }>('GET', `/v1/record?limit=${limit}`)
  return items.map(({ header }) => header)
}

/** @returns how many entries verify */
export async function verifyRecord(member: Member): Promise<{ ok: boolean; size: number; root: string }> {
  return member.client.call('GET', '/v1/record/verify')
}

/** The code of the error that a call ends with; undefined where it succeeds. */
export const codeOf = (call: Promise<unknown>): Promise<string | undefined> =>
  call.then(
    () => undefined,
    (error: unknown) => String((error as { code?: unknown }).code ?? error),
  )
