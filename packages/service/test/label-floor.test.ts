/** A lease may say how restricted at least is what is written under it: by whatever way it is written; by git see git-authorship. */
import { describe, expect, test } from 'vitest'
import { type Lease } from '@csb/core'
import { labelAt, listFiles } from '@csb/files'
import { getNote } from '@csb/memory'
import { codeOf, holdingIn, messageOf, type House, type Task } from './house.ts'
import { EVERYTHING, createWorld, remember, session, type World } from './every-operation-rig.ts'

const FLOOR = { label_floor: 'private' } as const

const levelOf = ({ store, home }: House, branch: string, path: string): string =>
  labelAt(store.view(), { home, at: branch, path }).label.level

describe('L1.2 under a floor of private nothing is written that is less', () => {
  test.each<[string, (world: World) => object | Promise<object>, (world: World, input: never) => string]>([
    [
      'files.write',
      () => ({ branch: 'runs/x', path: 'drafts/a.md', text: 'over what was public' }),
      ({ house }) => levelOf(house, 'runs/x', 'drafts/a.md'),
    ],
    [
      'files.label',
      () => ({ branch: 'runs/x', path: 'drafts/a.md', label: 'trusted:owner' }),
      ({ house }) => levelOf(house, 'runs/x', 'drafts/a.md'),
    ],
    [
      'memory.label',
      async (world) => ({ id: await remember(world), label: 'trusted:owner' }),
      ({ house }, { id }: { id: string }) =>
        getNote(house.store.view(), house.home, id, { level: 'sealed', tags: ['*'] }).label.level,
    ],
  ])('L1.2 by %s', async (operation, inputOf, levelAfter) => {
    const world = await createWorld()
    const input = await inputOf(world)
    const code = await codeOf(world.house.service.perform(await session(world, FLOOR), operation, input))
    // what is asked below it is refused, what asks for nothing is raised
    expect(code).toBe(operation === 'files.write' ? 'done' : 'SCOPE_EXCEEDED')
    if (code === 'done') expect(levelAfter(world, input as never)).toBe('private')
  })

  test('L1.2 by an agent that a lease asks', async () => {
    const { house } = await createWorld()
    const lease: Partial<Lease> = { ...EVERYTHING, locations: [`nas://*/${house.home}`], label_floor: 'sealed' }
    const params = { message: messageOf('write a.md x') }
    const { task } = (await house.service.perform(await holdingIn(house, lease), 'agents.send', {
      agent: 'clerk',
      params,
    })) as { task: Task }
    const branch = `runs/${task.id}`
    expect(task.status.state).toBe('TASK_STATE_COMPLETED')
    expect(listFiles(house.store.view(), { home: house.home, at: branch }).length).toBeGreaterThan(0)
    expect(levelOf(house, branch, 'a.md')).toBe('sealed')
  })
})

test('L3.2 what a session writes is never labelled as the word of the owner', async () => {
  const world = await createWorld()
  const { house } = world
  const agent = await session(world)
  for (const [path, more] of [
    ['drafts/new.md', {}],
    ['drafts/said.md', { label: 'private:owner' }],
    ['drafts/a.md', {}],
  ] as const) {
    await house.service.perform(agent, 'files.write', { branch: 'runs/x', path, text: 'as an agent says', ...more })
    const { label } = labelAt(house.store.view(), { home: house.home, at: 'runs/x', path })
    expect([path, label.integrity]).toEqual([path, 'agent'])
  }
})
