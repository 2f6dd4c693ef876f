/**
 * A node seen through its HTTP door, and nothing else. The paths of all calls that acceptance tests make stand in
 * this file, so that a change of the door is a change here.
 */
import { randomUUID } from 'node:crypto'

export type Answer<T = Record<string, unknown>> = { readonly status: number; readonly body: T }
export type Problem = { readonly code?: string }
export type Item<T> = { readonly items: readonly T[] }

export type Status = {
  readonly did: string
  readonly home: string
  readonly owner: { readonly did: string; readonly name: string }
  readonly addresses: readonly string[]
}
export type Ref = { readonly branch: string; readonly commit: string }
export type Entry = { readonly path: string; readonly oid: string; readonly kind: string }
export type Note = { readonly id: string; readonly content: string; readonly commit: string; readonly label: string }
export type RecordItem = {
  readonly header: {
    readonly seq: number
    readonly operation: string
    readonly outcome: string
    readonly code: string | null
    readonly lease: string | null
  }
}
export type Explanation = {
  readonly commit: string
  readonly run: string | null
  readonly lease: { readonly hash: string; readonly chain: readonly unknown[] } | null
  readonly basis: {
    readonly hash: string
    readonly chain: readonly { readonly from: { readonly did: string } }[]
  } | null
  readonly reads: readonly { readonly path: string; readonly oid: string }[] | null
  readonly approval: { readonly card: string; readonly diff: string } | null
}
export type ShownCard = {
  readonly card: { readonly id: string; readonly diff: string }
  readonly digest: string
  readonly state: string
  readonly changes: readonly { readonly op: string; readonly path: string }[]
}
export type Deleted = {
  readonly path: string | null
  readonly branch: string
  readonly label: string
  readonly until: number
}
export type Attached = {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly command: readonly string[]
  readonly skills: readonly { readonly id: string; readonly name: string; readonly description: string }[]
}
/** A message that came in, and by what authority. */
type Received = { readonly agent: string; readonly authority: { readonly reason?: string } | null }
/** What a refused attenuation names. */
type Refused = Problem & { readonly details?: { readonly field?: string; readonly card?: string } }
export type Task = {
  readonly id: string
  readonly status: {
    readonly state: string
    readonly message?: { readonly parts: readonly { readonly text?: string }[] }
  }
  readonly artifacts?: readonly { readonly parts: readonly { readonly text?: string }[] }[]
  readonly metadata?: Readonly<Record<string, unknown>>
}
export type HandoffDone = { readonly outcome: string; readonly code: string | null; readonly branch?: string }

/** The last words of a task. */
export const wordsOf = ({ status }: Pick<Task, 'status'>): string =>
  status.message?.parts.map(({ text }) => text ?? '').join('') ?? ''

export type Door = ReturnType<typeof createDoor>

/**
 * @param url without a slash at its end
 * @param token null to knock without one
 */
export function createDoor(url: string, token: string | null) {
  const call = async <T>(method: string, path: string, body?: unknown): Promise<Answer<T>> => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(30_000),
    })
    const text = await answer.text()
    return { status: answer.status, body: (text === '' ? {} : JSON.parse(text)) as T }
  }
  /** The body of a success; anything else rejects with what came. */
  const get = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const answer = await call<T & Problem>(method, path, body)
    if (answer.status < 300) return answer.body
    throw new Error(`${method} ${path} answered ${answer.status} ${answer.body.code ?? ''}`.trim())
  }
  const send = async (agent: string, did: string, more: object, params: object = {}): Promise<Task> => {
    const message = { messageId: `msg_${randomUUID()}`, role: 'ROLE_USER', parts: [{ text: 'Good morning.' }] }
    const body = { did, params: { message, ...params }, ...more }
    return (await get<{ task: Task }>('POST', `/v1/agents/${agent}/send`, body)).task
  }
  const query = (values: Readonly<Record<string, string>>) => new URLSearchParams(values).toString()

  return {
    url,
    call,
    as: (other: string | null) => createDoor(url, other),
    status: () => get<Status>('GET', '/v1/status'),

    refs: async () => (await get<{ refs: readonly Ref[] }>('GET', '/v1/files/refs')).refs,
    list: async (branch: string, home?: string) =>
      (await get<Item<Entry>>('GET', `/v1/files/tree?${query({ branch, ...(home === undefined ? {} : { home }) })}`))
        .items,
    read: (branch: string, path: string) =>
      call<{ text: string; oid: string; label: unknown } & Problem>('GET', `/v1/files/file?${query({ branch, path })}`),
    write: (branch: string, path: string, text: string) =>
      call<{ commit: string } & Problem>('PUT', '/v1/files/file', { branch, path, text }),

    /** @param resume the ETag of an export that broke off, and how many of its bytes are there */
    exportHome: async (home?: string, resume?: { tag: string; offset: number }) => {
      const answer = await fetch(`${url}/v1/files/export${home === undefined ? '' : `?${query({ home })}`}`, {
        headers: {
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(resume === undefined ? {} : { range: `bytes=${resume.offset}-`, 'if-range': resume.tag }),
        },
        signal: AbortSignal.timeout(30_000),
      })
      const bytes = Buffer.from(await answer.arrayBuffer())
      return { status: answer.status, tag: answer.headers.get('etag') ?? '', bytes }
    },
    importHome: async (archive: Uint8Array): Promise<Answer<{ home?: string } & Problem>> => {
      const answer = await fetch(`${url}/v1/files/import`, {
        method: 'POST',
        headers: {
          'content-type': 'application/octet-stream',
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        },
        body: new Uint8Array(archive),
        signal: AbortSignal.timeout(30_000),
      })
      return { status: answer.status, body: (await answer.json()) as { home?: string } & Problem }
    },

    remove: (branch: string, path: string) => call<Problem>('PUT', '/v1/files/file', { branch, path, delete: true }),
    label: (branch: string, path: string, label: string) =>
      call<Problem>('PUT', '/v1/files/label', { branch, path, label }),
    recycled: async () => (await get<Item<Deleted>>('GET', '/v1/files/recycle?limit=200')).items,
    restore: (path: string, branch: string) => call<Problem>('POST', '/v1/files/restore', { path, branch }),
    snapshot: (name: string, of: string) =>
      call<{ branch: string } & Problem>('POST', '/v1/files/snapshots', { name, of }),
    removeBranch: (branch: string) => call<Problem>('DELETE', `/v1/files/branches/${branch}`),
    merge: (from: string, into: string) =>
      call<Problem & { readonly details?: { readonly card?: string } }>('POST', '/v1/files/merge', { from, into }),
    card: (id: string) => get<ShownCard>('GET', `/v1/gate/${id}`),

    remember: (content: string, options: { label?: string } = {}) =>
      get<Note>('POST', '/v1/memory', { entry: { type: 'discovery', level: 'warm', content }, ...options }),
    note: (id: string, home?: string) =>
      call<Note & Problem>('GET', `/v1/memory/${id}${home === undefined ? '' : `?${query({ home })}`}`),
    notes: async (home?: string) =>
      (await get<Item<Note>>('GET', `/v1/memory?${query({ limit: '200', ...(home === undefined ? {} : { home }) })}`))
        .items,
    softDelete: (id: string) => get<Note>('DELETE', `/v1/memory/${id}`),
    askToForget: (id: string) =>
      call<Problem & { readonly details?: { readonly card?: string } }>('DELETE', `/v1/memory/${id}/hard`),

    record: async () => (await get<Item<RecordItem>>('GET', '/v1/record?limit=200')).items,
    verifyRecord: () => call<{ size: number; root: string } & Problem>('GET', '/v1/record/verify'),
    explain: (commit: string) => get<Explanation>('GET', `/v1/record/explain/${commit}`),

    attenuate: (name: string, lease: object, ttlMs?: number) =>
      call<{ token: string } & Refused>('POST', '/v1/leases/attenuate', {
        name,
        lease,
        ...(ttlMs === undefined ? {} : { ttl_ms: ttlMs }),
      }),
    /** Say something to an agent of another node. Resolves with its task, when that has ended where no more is said. */
    send,
    /** The same, and the last words of its task. */
    say: async (agent: string, did: string, more: object) => wordsOf(await send(agent, did, more)),
    /** JSON-RPC of A2A 1.0, as any client speaks it. Rejects with what the node answered where that is an error. */
    rpc: async <T>(path: string, method: string, params: object): Promise<T> => {
      const answer = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: {
          'a2a-version': '1.0',
          'content-type': 'application/json',
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: randomUUID(), method, params }),
        signal: AbortSignal.timeout(30_000),
      })
      const { result, error } = (await answer.json()) as { result?: T; error?: object }
      if (result === undefined) throw new Error(`${method} answered ${JSON.stringify(error)}`)
      return result
    },
    inbox: async () => (await get<{ items: readonly Received[] }>('GET', '/v1/inbox')).items,
    grants: async () =>
      (await get<{ items: readonly { hash: string; used?: Readonly<Record<string, number>> }[] }>('GET', '/v1/grants'))
        .items,
    dial: (address: string) => get<{ did: string }>('POST', '/v1/peers', { address }),
    trust: (did: string, name: string) => get('POST', '/v1/trust', { did, name, ceiling: 'request' }),
    sync: (did: string) => get('POST', '/v1/sync', { did }),
    attach: (agent: Attached) => get('POST', '/v1/agents', agent),
    handoff: (offer: { did: string; agent: string; text: string; paths?: readonly string[] }) =>
      get<HandoffDone>('POST', '/v1/handoff', offer),
  }
}
