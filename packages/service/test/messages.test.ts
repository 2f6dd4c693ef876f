import { describe, expect, test } from 'vitest'
import { LIMITS, createKeyPair, until } from '@csb/core'
import { getTask } from '@csb/agents'
import { attach, codeOf, createHouse, messageOf, taskIn, visitor, wordsOf, type House, type Task } from './house.ts'
import { createSpeaker, deliver, envelopeOf, say, taskOf } from './speech.ts'

const send = (house: House, text: string, more: object = {}, configuration?: object) =>
  house
    .owned<{ task: Task }>('agents.send', {
      agent: 'clerk',
      params: { message: messageOf(text, more), ...(configuration === undefined ? {} : { configuration }) },
    })
    .then(({ task }) => task)

async function stream(house: House, operation: string, input: object): Promise<Record<string, unknown>[]> {
  const events: Record<string, unknown>[] = []
  for await (const event of house.service.open(house.owning, operation, input))
    events.push(event as Record<string, unknown>)
  return events
}

const failureOf = (task: Task) => ({ state: task.status.state, ...task.metadata?.['urn:csb:ext:error:v1'] })

describe('a message to an agent here', () => {
  test('A2A-004 is answered when the task has ended', async () => {
    const house = await createHouse()
    await attach(house)
    const task = await send(house, 'count')
    expect(task.status.state).toBe('TASK_STATE_COMPLETED')
    expect(JSON.stringify(task.artifacts)).toContain('counted')
  })

  test('A2A-004 or at once, where that is asked for', async () => {
    const house = await createHouse()
    await attach(house)
    const task = await send(house, 'hang', {}, { returnImmediately: true })
    expect(['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING']).toContain(task.status.state)
  })

  test('A2A-OP-3.1.2 or as a stream, in order, to its end', async () => {
    const house = await createHouse()
    await attach(house)
    const events = await stream(house, 'agents.stream', { agent: 'clerk', params: { message: messageOf('count') } })
    expect(Object.keys(events[0] ?? {})).toEqual(['task'])
    const states = events.flatMap((event) => {
      const { status } = (event['statusUpdate'] ?? {}) as { status?: { state: string } }
      return status === undefined ? [] : [status.state]
    })
    expect(states.map((state) => state.slice('TASK_STATE_'.length))).toEqual([
      'SUBMITTED',
      'WORKING',
      'WORKING',
      'COMPLETED',
    ])
  })

  test('A2A-004 sent again gives the same task, and another one under its id is refused', async () => {
    const house = await createHouse()
    await attach(house)
    const message = messageOf('count')
    const first = await send(house, 'count', message)
    const again = await send(house, 'count', message)
    expect(again.id).toBe(first.id)
    expect(await codeOf(send(house, 'count', { ...message, parts: [{ text: 'other' }] }))).toBe('REPLAYED')
    await expect(
      house.owned<{ totalSize: number }>('agents.listTasks', { agent: 'clerk', params: {} }),
    ).resolves.toMatchObject({ totalSize: 1 })
  })

  test('is refused without parts, to no agent, or to one that is not here', async () => {
    const house = await createHouse()
    await attach(house)
    const ask = (agent: string, params: object) => codeOf(house.owned('agents.send', { agent, params }))
    expect(await ask('clerk', {})).toBe('INVALID_INPUT')
    expect(await ask('clerk', { message: { ...messageOf('x'), parts: [] } })).toBe('INVALID_INPUT')
    expect(await ask('nobody', { message: messageOf('x') })).toBe('NOT_FOUND')
    expect(await ask('Not An Id', { message: messageOf('x') })).toBe('INVALID_INPUT')
  })

  test('L1.5 its work names who asked, and under which lease it was done', async () => {
    const house = await createHouse()
    await attach(house)
    const task = await send(house, 'write report.md done')
    const told = (await house.records()).findLast(({ effect }) => typeof effect['commit'] === 'string')
    expect(told).toMatchObject({ run: task.id, effect: { branch: `runs/${task.id}`, agent: 'clerk' } })
  })
})

describe('an agent that fails', () => {
  const told = async (more: object, text: string) => {
    const house = await createHouse()
    await attach(house, more)
    const task = await send(house, text)
    const record = (await house.records()).findLast(({ outcome }) => outcome === 'failed')
    return { task, record }
  }

  test('by crashing is told with its code; how it ended is told to its own people and to nobody else', async () => {
    const { task, record } = await told({}, 'crash')
    expect(failureOf(task)).toMatchObject({ state: 'TASK_STATE_FAILED', code: 'AGENT_FAILED', details: { exit: 3 } })
    expect(JSON.stringify(task)).toContain('secret of the machine')
    expect(record).toMatchObject({ code: 'AGENT_FAILED', run: task.id })
    const house = await createHouse()
    await attach(house)
    const foreign = await say(house, createSpeaker(), { text: 'crash' })
    expect(failureOf(foreign)).toMatchObject({ state: 'TASK_STATE_FAILED', code: 'AGENT_FAILED' })
    expect(JSON.stringify(foreign)).not.toContain('secret of the machine')
  })

  test('by taking too long is ended at its deadline', async () => {
    const { task, record } = await told({ timeout_ms: 200 }, 'hang')
    expect(failureOf(task)).toMatchObject({ state: 'TASK_STATE_FAILED', code: 'AGENT_TIMEOUT', retryable: true })
    expect(record?.code).toBe('AGENT_TIMEOUT')
  })

  test('by saying too much is ended at its bound', async () => {
    const { task } = await told({ output_bytes: 8192 }, 'flood')
    expect(failureOf(task)).toMatchObject({ state: 'TASK_STATE_FAILED', code: 'AGENT_OUTPUT_TOO_LARGE' })
  })

  test('by not being there is told as well', async () => {
    const { task } = await told({ command: ['/no/such/command'] }, 'x')
    expect(failureOf(task)).toMatchObject({ state: 'TASK_STATE_FAILED', code: 'AGENT_FAILED' })
  })

  test.each(['../out.md', '/etc/passwd', '.csb/labels.json', '.git/config'])(
    'by writing to %s commits nothing',
    async (path) => {
      const house = await createHouse()
      await attach(house)
      const task = await send(house, `write ${path} x`)
      expect(task.status.state).toBe('TASK_STATE_FAILED')
      expect(JSON.stringify(await house.owned('files.refs'))).not.toContain(task.id)
    },
  )
})

describe('a task', () => {
  test('A2A-OP-3.1.5 is canceled, its agent ended, and stays canceled', async () => {
    const house = await createHouse()
    await attach(house)
    const { id } = await send(house, 'hang', {}, { returnImmediately: true })
    await house.owned('agents.cancelTask', { agent: 'clerk', params: { id } })
    await until(() => house.parts.runs.active.size === 0, 30_000, 'the agent has ended')
    const task = await taskIn(house, house.owner.did, id, 'TASK_STATE_CANCELED')
    expect(task.id).toBe(id)
    await house.owned('agents.cancelTask', { agent: 'clerk', params: { id } })
    const done = await send(house, 'count')
    const cancel = house.owned('agents.cancelTask', { agent: 'clerk', params: { id: done.id } })
    expect(await codeOf(cancel)).toBe('TASK_NOT_CANCELABLE')
  })

  test('A2A-OP-3.1.6 is followed to its end, and one that has ended is not', async () => {
    const house = await createHouse()
    await attach(house)
    const { id } = await send(house, 'hang', {}, { returnImmediately: true })
    const following = stream(house, 'agents.subscribe', { agent: 'clerk', params: { id } })
    await house.owned('agents.cancelTask', { agent: 'clerk', params: { id } })
    expect(JSON.stringify((await following).at(-1))).toContain('TASK_STATE_CANCELED')
    const late = stream(house, 'agents.subscribe', { agent: 'clerk', params: { id } })
    expect(await codeOf(late)).toBe('UNSUPPORTED_OPERATION')
  })

  test("L1.2 is nobody else's: to others it does not exist", async () => {
    const house = await createHouse()
    await attach(house)
    const speaker = createSpeaker()
    const mine = await send(house, 'count')
    const theirs = await say(house, speaker, { text: 'count' })
    expect(await codeOf(house.owned('agents.getTask', { agent: 'clerk', params: { id: theirs.id } }))).toBe('NOT_FOUND')
    for (const method of ['GetTask', 'CancelTask', 'SubscribeToTask']) {
      const envelope = envelopeOf(house, speaker, { method, params: { id: mine.id } })
      expect(await codeOf(deliver(house, speaker, envelope))).toBe('NOT_FOUND')
    }
    const listed = await deliver(house, speaker, envelopeOf(house, speaker, { method: 'ListTasks', params: {} }))
    expect(JSON.stringify(listed)).toContain(theirs.id)
    expect(JSON.stringify(listed)).not.toContain(mine.id)
    const agent = await house.leased()
    expect(
      await codeOf(house.service.perform(agent, 'agents.getTask', { agent: 'clerk', params: { id: mine.id } })),
    ).toBe('NOT_FOUND')
  })

  test('waits for its turn where others run, and runs then', async () => {
    const house = await createHouse({ config: { agents: { runs: 1 } } })
    await attach(house)
    const first = await send(house, 'hang', {}, { returnImmediately: true })
    await taskIn(house, house.owner.did, first.id, 'TASK_STATE_WORKING')
    const second = await send(house, 'count', {}, { returnImmediately: true })
    const third = await send(house, 'count', {}, { returnImmediately: true })
    expect((await getTask(house.store.view(), house.owner.did, second.id)).status.state).toBe('TASK_STATE_SUBMITTED')
    await house.owned('agents.cancelTask', { agent: 'clerk', params: { id: third.id } })
    await house.owned('agents.cancelTask', { agent: 'clerk', params: { id: first.id } })
    await taskIn(house, house.owner.did, second.id, 'TASK_STATE_COMPLETED')
    await taskIn(house, house.owner.did, third.id, 'TASK_STATE_CANCELED')
    await until(() => house.parts.runs.active.size === 0, 30_000, 'nothing runs')
  })

  test('one sender does not take all the room', async () => {
    const house = await createHouse({ config: { agents: { runs: 1 } } })
    await attach(house)
    const speaker = createSpeaker()
    const hanging = () => say(house, speaker, { text: 'hang', configuration: { returnImmediately: true } })
    for (let n = 0; n < LIMITS.agentRunsPerSender; n++) await hanging()
    expect(await codeOf(hanging())).toBe('BUSY')
    const other = await say(house, createSpeaker(), { text: 'hang', configuration: { returnImmediately: true } })
    expect(other.status.state).toBe('TASK_STATE_SUBMITTED')
  })
})

describe('an envelope', () => {
  test.each<[string, Record<string, unknown>, string]>([
    ['from somebody else than the peer', { from: createKeyPair().did }, 'SENDER_MISMATCH'],
    ['to another node', { to: createKeyPair().did }, 'NOT_FOUND'],
    ['past its time to live', { sent_at: 1_800_000_000_000 - 400_000 }, 'EXPIRED'],
    ['from the future', { sent_at: 1_800_000_000_000 + 120_000 }, 'EXPIRED'],
    ['of another major version', { version: '2.0' }, 'VERSION_MISMATCH'],
    ['without a version', { version: 5 }, 'MALFORMED'],
    ['with a member too many', { extra: true }, 'MALFORMED'],
    ['with a body that is none', { body: 'SendMessage' }, 'MALFORMED'],
    ['to an agent that is not here', { agent: 'nobody' }, 'NOT_FOUND'],
  ])('A2A-011 %s is refused: nothing runs', async (_name, envelope, code) => {
    const house = await createHouse()
    await attach(house)
    const speaker = createSpeaker()
    expect(await codeOf(deliver(house, speaker, envelopeOf(house, speaker, { envelope })))).toBe(code)
    const { items } = await house.owned<{ items: unknown[] }>('record.tail', {})
    expect(JSON.stringify(items)).not.toContain('"task"')
  })

  test('of a newer minor version is read', async () => {
    const house = await createHouse()
    await attach(house)
    const speaker = createSpeaker()
    const reply = await deliver(house, speaker, envelopeOf(house, speaker, { envelope: { version: '1.7' } }))
    expect(taskOf(reply).status.state).toBe('TASK_STATE_COMPLETED')
  })

  test('with a method that is none is answered so', async () => {
    const house = await createHouse()
    await attach(house)
    const speaker = createSpeaker()
    const envelope = envelopeOf(house, speaker, { method: 'DeleteEverything' })
    expect(await codeOf(deliver(house, speaker, envelope))).toBe('UNSUPPORTED_OPERATION')
  })

  test('A2A-011 a stream is answered piece by piece, and says when it is over', async () => {
    const house = await createHouse()
    await attach(house)
    const speaker = createSpeaker()
    const envelope = envelopeOf(house, speaker, { method: 'SendStreamingMessage', text: 'count' })
    const replies = await deliver(house, speaker, envelope)
    expect(replies.map(({ id }) => id)).toEqual(replies.map(() => envelope.id))
    expect(replies.map(({ done }) => done)).toEqual([...replies.slice(1).map(() => false), true])
    expect(replies.length).toBeGreaterThan(5)
  })

  test('a stranger can have the card of an agent, and have this node dial nobody', async () => {
    const house = await createHouse()
    await attach(house)
    const stranger = visitor(createKeyPair().did)
    await expect(house.service.perform(stranger, 'agents.card', { agent: 'clerk' })).resolves.toMatchObject({
      name: 'Clerk',
    })
    const elsewhere = house.service.perform(stranger, 'agents.card', { agent: 'clerk', did: createKeyPair().did })
    expect(await codeOf(elsewhere)).toBe('LEASE_REQUIRED')
    expect(wordsOf(await say(house, createSpeaker(), {}))).toContain('without authority')
  })
})
