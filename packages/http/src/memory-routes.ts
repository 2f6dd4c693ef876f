/**
 * Memory over HTTP: the rows of MEM-003 3.1 that this node serves. A body may be the bare entry of the document,
 * or `{entry, label, home}`; the label beside the content of a bare one is its label.
 * @clause MEM-003.3.1, MEM-003.3.2
 */
import { isObject, type Route } from './route.ts'

const BARE = {
  type: 'object',
  description: 'The bare entry of the document; its label may stand beside the content.',
  not: { required: ['entry'] },
  properties: {
    content: { type: 'string' },
    type: { type: 'string' },
    level: { type: 'string' },
    tags: { type: 'array', items: { type: 'string' } },
    label: { type: 'string', description: 'level:integrity[:tags]' },
  },
  required: ['content'],
} as const

export const MEMORY_ROUTES: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/memory',
    operation: 'memory.create',
    input: 'MemoryCreate',
    summary: 'Remember one entry',
    status: 201,
    reads: (body) => (isObject(body) && !('entry' in body) ? itemOf(body) : body),
    bare: BARE,
  },
  {
    method: 'POST',
    path: '/v1/memory/batch',
    operation: 'memory.batch',
    input: 'MemoryBatch',
    summary: 'Remember up to 100 entries in one commit',
    status: 201,
    reads: (body) => (Array.isArray(body) ? { items: body.map(itemOf) } : body),
    bare: { type: 'array', items: BARE },
  },
  {
    method: 'GET',
    path: '/v1/memory',
    operation: 'memory.list',
    input: 'MemoryList',
    summary: 'List entries, newest first',
  },
  { method: 'GET', path: '/v1/memory/{id}', operation: 'memory.get', input: 'MemoryGet', summary: 'Read one entry' },
  {
    method: 'DELETE',
    path: '/v1/memory/{id}',
    operation: 'memory.delete',
    input: 'MemoryDelete',
    summary: 'Delete an entry so that it can be restored',
  },
  {
    method: 'POST',
    path: '/v1/memory/{id}/restore',
    operation: 'memory.restore',
    input: 'MemoryRestore',
    summary: 'Restore a deleted entry',
  },
  {
    method: 'DELETE',
    path: '/v1/memory/{ids}/hard',
    operation: 'memory.forget',
    input: 'MemoryForget',
    summary: 'Ask to forget entries, named with commas between them: answers GATE_REQUIRED with the card of it',
  },
  {
    method: 'POST',
    path: '/v1/memory/forget',
    operation: 'memory.forget',
    input: 'MemoryForget',
    summary: 'Ask to forget entries for good, here and on every synced node: answers GATE_REQUIRED with the card of it',
  },
]

function itemOf(entry: unknown): object {
  if (!isObject(entry) || entry['label'] === undefined) return { entry }
  const { label, ...bare } = entry
  return { entry: bare, label }
}
