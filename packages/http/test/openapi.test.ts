import { describe, expect, test } from 'vitest'
import { SCHEMAS, createFakeClock } from '@csb/core'
import { createApp } from '../src/app.ts'
import { createRecordingService, openDoor } from './fixtures.ts'

type Document = {
  openapi: string
  paths: Record<string, Record<string, { operationId: string; parameters: { name: string; in: string }[] }>>
  components: { schemas: Record<string, unknown> }
}

const door = await openDoor()
const document = (await (await door.request('/openapi.json')).json()) as Document

/** What the app really answers to. */
function mounted(): string[] {
  const desk = {
    service: createRecordingService(),
    clock: createFakeClock(),
    log: () => undefined,
    defaultAgent: () => undefined,
    heartbeatMs: 1_000,
    closing: new AbortController().signal,
  }
  const app = createApp(
    desk,
    () => undefined,
    () => '',
  )
  return app.routes
    .filter(({ method }) => method !== 'ALL')
    .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)(?:\{\.\+\})?/g, '{$1}')}`)
}

describe('the OpenAPI document', () => {
  test('has every route, and no other', () => {
    const described = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    expect(described.sort()).toEqual(mounted().sort())
  })

  test('names each operation once and describes every member of a path', () => {
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.values(methods).map((operation) => ({ path, ...operation })),
    )
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length)
    for (const { path, parameters } of operations) {
      const named = parameters.filter((one) => one.in === 'path').map(({ name }) => name)
      expect(named).toEqual([...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]))
    }
  })

  test('tells both forms that a note is taken in', () => {
    const create = document.paths['/v1/memory']?.['post'] as unknown as { requestBody: unknown }
    expect(JSON.stringify(create.requestBody)).toMatch(/"oneOf":\[\{"\$ref".+"content".+"label"/)
  })

  test('points only at what it holds, with the schemas of the operations', () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(
      (match) => match[1] ?? '',
    )
    expect(references.length).toBeGreaterThan(10)
    for (const name of references) expect(document.components.schemas).toHaveProperty(name)
    expect(JSON.stringify(document)).not.toContain('"$ref":"#/$defs')
    const { $defs } = SCHEMAS['Operations'] as { $defs: Record<string, unknown> }
    expect(document.components.schemas['MemoryCreate']).toEqual($defs['MemoryCreate'])
  })
})
