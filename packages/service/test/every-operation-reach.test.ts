/** Every operation under a lease that lacks one thing: refused with the name of what it lacks, and nothing else left. */
import { createRequire } from 'node:module'
import { describe, expect, test } from 'vitest'
import { fail, type Lease } from '@csb/core'
import { OPERATIONS } from '../src/index.ts'
import { LEASED, refused, unlike, wrong } from './every-operation-checks.ts'
import { EVERYTHING, createWorld, session } from './every-operation-rig.ts'
import { ROWS, type Row } from './every-operation-rows.ts'

describe('L1.2 every operation refuses', () => {
  type Schemas = { readonly $defs: Readonly<Record<string, { readonly properties?: object }>> }
  const schemas = createRequire(import.meta.url)('../../../schemas/operations-v1.schema.json') as Schemas
  // the disk is this node's, whoever's home lies on it
  const hasHome = ({ operation }: Row): boolean =>
    operation !== 'files.gc' && 'home' in (schemas.$defs[OPERATIONS.get(operation)?.input ?? '']?.properties ?? {})
  const OTHER_HOME = 'home_bbbbbbbbbbbbbbbbbbbbbbbbbb'
  const less = (row: Row): Record<string, Partial<Lease>> => ({
    locations: { locations: [`nas://*/${OTHER_HOME}`] },
    actions: { actions: EVERYTHING.actions?.filter((action) => action !== row.action) ?? [] },
    paths: { paths: ['/elsewhere'] },
    deny_paths: { deny_paths: ['/'] },
    branches: { branches: ['elsewhere'] },
    labels_max: { labels_max: 'private' },
    label_tags: { label_tags: [] },
    capabilities: { capabilities: ['B'] },
    gates: { gates: row.action === null ? [] : [row.action] },
  })

  test.each([
    'locations',
    'actions',
    'paths',
    'deny_paths',
    'branches',
    'labels_max',
    'label_tags',
    'capabilities',
    'gates',
  ] as const)('L1.2 a lease that does not reach in %s, and names it', async (member) => {
    const world = await createWorld()
    const rows = LEASED.filter(({ needs, action }) =>
      member === 'gates' ? action !== null && action !== 'propose' : needs.includes(member),
    )
    const found = await wrong(rows, async (row) =>
      unlike(await refused(world, row, await session(world, less(row)[member])), 'SCOPE_EXCEEDED', member),
    )
    expect(found).toEqual([])
  })

  test('L1.2 what is about a whole, where a part of it is left out', async () => {
    const world = await createWorld()
    const whole = LEASED.filter(
      ({ operation, needs }) =>
        (needs.includes('deny_paths') && needs.includes('labels_max')) ||
        ['files.removeBranch', 'files.export'].includes(operation),
    )
    const found = await wrong(whole, async (row) =>
      unlike(
        await refused(world, row, await session(world, { deny_paths: ['/other/part'] })),
        'SCOPE_EXCEEDED',
        'deny_paths',
      ),
    )
    expect(found).toEqual([])
  })

  test.each([
    ['files.diff', { from: 'runs/x', to: 'runs/y' }],
    ['files.diff', { from: 'runs/y', to: 'runs/x' }],
    ['files.preview', { from: 'runs/x', into: 'runs/y' }],
    ['files.preview', { from: 'runs/y', into: 'runs/x' }],
    ['files.merge', { from: 'runs/x', into: 'runs/y' }],
    ['files.merge', { from: 'runs/y', into: 'runs/x' }],
    ['files.branch', { branch: 'runs/x/2', from: 'runs/y' }],
    ['files.restore', { branch: 'runs/x', as: 'runs/y' }],
    ['files.restore', { branch: 'runs/y', as: 'runs/x' }],
  ])('L1.2 %s where it reaches one of two branches: %j', async (operation, input) => {
    const world = await createWorld()
    const row = ROWS.find((one) => one.operation === operation) ?? fail('NOT_FOUND', { operation })
    const caller = await session(world, { branches: ['runs/x', 'runs/x/*'] })
    const heard = await refused(world, { ...row, input: () => input }, caller)
    expect(unlike(heard, 'SCOPE_EXCEEDED', 'branches')).toBe('')
  })

  test('L1.2 an export, where it does not see everything', async () => {
    const world = await createWorld()
    const rows = LEASED.filter(({ operation }) => operation === 'files.export')
    const limits: readonly Partial<Lease>[] = [{ labels_max: 'private' }, { label_tags: ['work'] }]
    for (const limit of limits) {
      const found = await wrong(rows, async (row) =>
        unlike(await refused(world, row, await session(world, limit)), 'CLEARANCE'),
      )
      expect(found).toEqual([])
    }
  })

  test('L1.2 a lease of this home, asked for another', async () => {
    const world = await createWorld()
    const found = await wrong(LEASED.filter(hasHome), async (row) => {
      const elsewhere: Row = {
        ...row,
        input: async (...given) => ({ ...(await row.input(...given)), home: OTHER_HOME }),
      }
      return unlike(await refused(world, elsewhere, await session(world)), 'SCOPE_EXCEEDED', 'locations')
    })
    expect(found).toEqual([])
  })

  test.each(['calls', 'bytes_read', 'bytes_written'] as const)(
    'L1.2 a lease with nothing left of its %s',
    async (unit) => {
      const world = await createWorld()
      const rows = LEASED.filter(
        ({ kind, open }) =>
          open === 'lease' &&
          (unit === 'calls' || (unit === 'bytes_read' ? kind === 'read' || kind === 'stream' : kind === 'write')),
      )
      const found = await wrong(rows, async (row) =>
        unlike(
          await refused(world, row, await session(world, { budget: { [unit]: 0 } })),
          'SCOPE_EXCEEDED',
          `budget.${unit}`,
        ),
      )
      expect(found).toEqual([])
    },
  )
})
