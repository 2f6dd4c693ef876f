import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { EXTENSIONS, createFakeClock, createKeyPair, until, type Authority } from '@csb/core'
import { cancelTask } from '@csb/agents'
import { draftGrant, grantHash, signGrant, signRevocation, untrust } from '@csb/authority'
import { getRef } from '@csb/files'
import type { Caller } from '../src/index.ts'
import {
  HOUR,
  NOW,
  attach,
  codeOf,
  createHouse,
  messageOf,
  shownBy,
  taskIn,
  wordsOf,
  type House,
  type Task,
} from './house.ts'
import { createSpeaker, deliver, envelopeOf, listed, say, taskOf, type Saying, type Speaker } from './speech.ts'

async function stage() {
  const clock = createFakeClock(NOW)
  const house = await createHouse({ clock })
  await attach(house)
  const speaker = createSpeaker()
  await listed(house, speaker)
  return { house, speaker, clock }
}

const markOf = (task: Task) => task.metadata?.[EXTENSIONS.authority]

describe('a delegated message', () => {
  test.each(['request', 'execute', 'override'] as const)(
    "DEL-002.2.3 at level %s is worked on, and says by whose authority under this node's own name for it",
    async (level) => {
      const { house, speaker } = await stage()
      const grants = [
        level === 'override'
          ? speaker.grant(house, { type: 'global', scope: ['*'], level, ttlMs: null })
          : speaker.grant(house, { level }),
      ]
      const task = await say(house, speaker, { grants, level })
      expect(task.status.state).toBe('TASK_STATE_COMPLETED')
      expect(wordsOf(task)).toBe('with authority from Ines')
      expect(markOf(task)).toMatchObject({ accepted: true, level, delegated_by: 'Ines' })
      expect(shownBy(task).input['authority']).toMatchObject({ level, delegated_by: 'Ines' })
    },
  )

  test.each([
    [
      'tasks/send of the document',
      'tasks/send',
      { id: 'task_1', sessionId: 's-1', message: { role: 'agent', parts: [{ type: 'text', text: 'hello' }] } },
    ],
    [
      'snake_case',
      'SendMessage',
      { message: { message_id: 'm-1', context_id: 's-1', role: 'ROLE_USER', parts: [{ text: 'hello' }] } },
    ],
  ])('DEL-002.2.1 as %s is verified by its body as it came', async (_, method, params) => {
    const { house, speaker } = await stage()
    const saying = { grants: [speaker.grant(house)], method, params }
    const [reply] = await deliver(house, speaker, envelopeOf(house, speaker, saying))
    const { result } = (reply?.body ?? {}) as { result: Record<string, unknown> }
    const id = method === 'tasks/send' ? result['id'] : taskOf(reply === undefined ? [] : [reply]).id
    const task = await taskIn(house, speaker.key.did, String(id), 'TASK_STATE_COMPLETED')
    expect(wordsOf(task)).toBe('with authority from Ines')
    expect(task.contextId).toBe('s-1')
    expect(shownBy(task).input['message']).toMatchObject({ role: 'ROLE_USER', parts: [{ text: 'hello' }] })
    if (method === 'tasks/send') expect(result).toMatchObject({ sessionId: 's-1', status: { state: 'completed' } })
  })

  test('DEL-002.2.3 at level inform is noted, and nothing runs', async () => {
    const { house, speaker } = await stage()
    const task = await say(house, speaker, { grants: [speaker.grant(house)], level: 'inform' })
    expect(task.status.state).toBe('TASK_STATE_COMPLETED')
    expect(wordsOf(task)).toBe('noted, with authority from Ines')
    expect(task.artifacts ?? []).toEqual([])
  })

  test('DEL-002.2.4, L0.1: its work is a commit on a branch of its own, which the answer names', async () => {
    const { house, speaker } = await stage()
    const main = getRef(house.store.view(), house.home, 'main')
    const task = await say(house, speaker, { grants: [speaker.grant(house)], text: 'write report.md all is well' })
    const branch = `runs/${task.id}`
    await expect(house.owned('files.read', { branch, path: 'report.md' })).resolves.toMatchObject({
      text: 'all is well',
    })
    expect(getRef(house.store.view(), house.home, 'main')).toEqual(main)
    const commit = getRef(house.store.view(), house.home, branch)?.commit ?? ''
    const told = JSON.stringify(task.status.message)
    expect(told).toContain(branch)
    // it is a digest of all that lies on the branch, what the sender may not see too
    expect(told).not.toContain(commit)
    const explained = JSON.stringify(await house.owned('record.explain', { commit }))
    expect(explained).toContain(house.owner.did)
    expect(explained).toContain(task.id)
  })

  test('DEL-001 ordinary: without authority it says so, and its agent gets no way to ask the node', async () => {
    const { house, speaker } = await stage()
    const task = await say(house, speaker, {})
    expect(wordsOf(task)).toBe('processed without authority: absent')
    const { env, input } = shownBy(task)
    expect(
      Object.keys(env)
        .filter((name) => name.startsWith('CSB_'))
        .sort(),
    ).toEqual(['CSB_RUN'])
    expect(input).toMatchObject({ authority: null, from: speaker.key.did })
  })

  test('L1.2 ordinary: its files are refused, told and recorded', async () => {
    const { house, speaker } = await stage()
    const task = await say(house, speaker, { text: 'write report.md x' })
    expect(task.status.state).toBe('TASK_STATE_FAILED')
    expect(getRef(house.store.view(), house.home, `runs/${task.id}`)).toBeUndefined()
    const told = (await house.records()).findLast(({ effect }) => effect['task'] === task.id)
    expect(told).toMatchObject({ outcome: 'refused', code: 'SCOPE_EXCEEDED' })
  })
})

describe('a message whose authority fails a step is an ordinary one, and the answer names the step', () => {
  const other = createSpeaker()
  const changed =
    (more: Partial<Authority>) =>
    (authority: Authority): unknown => ({ ...authority, ...more })

  type Case = [
    step: number,
    name: string,
    reason: string,
    saying: (house: House, speaker: Speaker) => Saying | Promise<Saying>,
  ]
  const cases: Case[] = [
    [1, 'attached', 'malformed', (h, s) => ({ grants: [s.grant(h)], change: () => ({ delegated_by: 'Ines' }) })],
    [
      1,
      'attached',
      'bad_signature',
      (h, s) => ({ grants: [s.grant(h)], change: changed({ signature: 'sha256:abc' }) }),
    ],
    [
      1,
      'attached',
      'ambiguous',
      (h, s) => ({
        grants: [s.grant(h)],
        message: messageOf('x', { metadata: { [EXTENSIONS.authority]: { delegated_by: 'somebody else' } } }),
      }),
    ],
    [
      2,
      'received',
      'wrong_audience',
      (h, s) => ({ grants: [s.grant(h)], change: changed({ aud: createKeyPair().did }) }),
    ],
    [
      2,
      'received',
      'payload_mismatch',
      (h, s) => ({ grants: [s.grant(h)], change: changed({ payload: `sha256:${'0'.repeat(64)}` }) }),
    ],
    [2, 'received', 'bad_signature', (h, s) => ({ grants: [s.grant(h)], change: changed({ level: 'inform' }) })],
    [
      3,
      'trusted',
      'untrusted_root',
      async (h, s) => {
        await h.store.transact((tx) => untrust(tx, s.origin.did))
        return { grants: [s.grant(h)] }
      },
    ],
    [
      3,
      'trusted',
      'revoked',
      async (h, s) => {
        const grant = s.grant(h)
        await h.owned('authority.accept', { grant })
        await h.owned('authority.revoke', signRevocation({ target: grantHash(grant), now: h.clock.now() }, s.origin))
        return { grants: [grant] }
      },
    ],
    [4, 'scope', 'out_of_scope', (h, s) => ({ grants: [s.grant(h)], scope: ['payments'] })],
    [4, 'scope', 'out_of_scope', (h, s) => ({ grants: [s.grant(h)], scope: ['reports-of-others'] })],
    [5, 'level', 'level_exceeds', (h, s) => ({ grants: [s.grant(h, { level: 'request' })], level: 'execute' })],
    [
      5,
      'level',
      'over_ceiling',
      async (h, s) => {
        await listed(h, s, 'request')
        return { grants: [s.grant(h)], level: 'execute' }
      },
    ],
    [6, 'expiry', 'expired', (h, s) => ({ grants: [s.grant(h, { now: h.clock.now() - 2 * HOUR, ttlMs: HOUR })] })],
    [6, 'expiry', 'not_yet_valid', (h, s) => ({ grants: [s.grant(h, { now: h.clock.now() + HOUR })] })],
  ]

  test.each(cases)('DEL-003.3.2 step %i, %s: %s', async (step, name, reason, sayingOf) => {
    const { house, speaker } = await stage()
    const task = await say(house, speaker, { text: 'echo', ...(await sayingOf(house, speaker)) })
    expect(wordsOf(task)).toBe(`processed without authority: ${reason}`)
    expect(markOf(task)).toMatchObject({ accepted: false, step, step_name: name, reason })
    const shown = shownBy(task)
    expect(shown.input['authority']).toBeNull()
    expect(shown.env).not.toHaveProperty('CSB_TOKEN')
    expect(other.key.did).not.toBe(speaker.key.did)
  })

  test('DEL-003.3.2 step 2: forwarded by another node than its holder', async () => {
    const { house, speaker } = await stage()
    const envelope = envelopeOf(house, speaker, { grants: [speaker.grant(house)] })
    const task = taskOf(await deliver(house, other, { ...envelope, from: other.key.did }))
    expect(markOf(task)).toMatchObject({ accepted: false, step: 2, reason: 'holder_mismatch' })
  })

  test('DEL-003.3.2 attack 6: step 2: the same message a second time, also after a restart', async () => {
    const { house, speaker } = await stage()
    const envelope = envelopeOf(house, speaker, { grants: [speaker.grant(house)] })
    await deliver(house, speaker, envelope)
    // the message itself is known by its id; the authority alone on another message is a replay
    const again = { ...envelope, body: { ...envelope.body, params: { message: messageOf('other') } } }
    const first = taskOf(await deliver(house, speaker, again))
    expect(markOf(first)).toMatchObject({ step: 2, reason: 'replayed' })
    const later = await house.reopen()
    const third = { ...envelope, body: { ...envelope.body, params: { message: messageOf('third') } } }
    expect(markOf(taskOf(await deliver(later, speaker, third)))).toMatchObject({ step: 2, reason: 'replayed' })
  })

  test('DEL-003.3.2 attack 7: step 7: a single grant works once, two messages at the same moment too', async () => {
    const { house, speaker } = await stage()
    const grants = [speaker.grant(house, { type: 'single', task: 'one task' })]
    const tasks = await Promise.all([say(house, speaker, { grants }), say(house, speaker, { grants })])
    const marks = tasks.map(markOf)
    expect(marks.filter((mark) => mark?.['accepted'] === true)).toHaveLength(1)
    expect(marks.find((mark) => mark?.['accepted'] === false)).toMatchObject({ step: 7, reason: 'already_used' })
    const later = await house.reopen()
    expect(markOf(await say(later, speaker, { grants }))).toMatchObject({ step: 7, reason: 'already_used' })
  })
})

describe('what a delegated run may reach', () => {
  async function holding(saying: (house: House, speaker: Speaker) => Saying) {
    const { house, speaker, clock } = await stage()
    const folder = await mkdtemp(join(tmpdir(), 'csb-hold-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const file = join(folder, 'go')
    const given = saying(house, speaker)
    const started = await say(house, speaker, {
      ...given,
      text: `hold ${file}`,
      configuration: { returnImmediately: true },
    })
    const shown = await until(
      async () => {
        const task = await taskIn(house, speaker.key.did, started.id, 'TASK_STATE_WORKING')
        return (task.artifacts?.length ?? 0) > 0 ? shownBy(task) : undefined
      },
      30_000,
      'the agent has told its token',
    )
    const token: Caller = { kind: 'bearer', token: shown.env['CSB_TOKEN'] ?? '', door: 'http' }
    const release = () => writeFile(file, '')
    return { house, speaker, clock, task: started, token, release }
  }

  test('L1.2 its token writes its own branch and nothing else, speaks for nobody, changes no rights', async () => {
    const { house, speaker, task, token, release } = await holding((h, s) => ({ grants: [s.grant(h)] }))
    const ask = (operation: string, input: object) => codeOf(house.service.perform(token, operation, input))
    const branch = `runs/${task.id}`
    expect(await ask('files.write', { branch, path: 'own.md', text: 'x' })).toBe('done')
    expect(await ask('files.write', { branch: 'runs/other', path: 'own.md', text: 'x' })).toBe('SCOPE_EXCEEDED')
    expect(await ask('files.write', { branch: 'main', path: 'own.md', text: 'x' })).toBe('SCOPE_EXCEEDED')
    expect(await ask('memory.create', { entry: { content: 'x', level: 'warm', type: 'lesson' } })).toBe(
      'SCOPE_EXCEEDED',
    )
    expect(await ask('memory.list', {})).toBe('SCOPE_EXCEEDED')
    expect(await ask('agents.send', { agent: 'clerk', params: { message: messageOf('x') } })).toBe('SCOPE_EXCEEDED')
    expect(await ask('authority.trust', { did: speaker.key.did, name: 'me', ceiling: 'override' })).toBe(
      'SCOPE_EXCEEDED',
    )
    expect(await ask('agents.detach', { id: 'clerk' })).toBe('SCOPE_EXCEEDED')
    expect(await ask('record.tail', {})).toBe('SCOPE_EXCEEDED')
    await release()
    await taskIn(house, speaker.key.did, task.id, 'TASK_STATE_COMPLETED')
    // with the run its token has ended, though its lease would have lived on
    expect(await ask('files.write', { branch, path: 'late.md', text: 'x' })).toBe('UNAUTHENTICATED')
    expect(await ask('files.list', { branch })).toBe('UNAUTHENTICATED')
  })

  test('L1.2 its token ends with its task, not when its command has been ended', async () => {
    const { house, speaker, clock, task, token } = await holding((h, s) => ({ grants: [s.grant(h)] }))
    const asked = () =>
      codeOf(house.service.perform(token, 'files.write', { branch: `runs/${task.id}`, path: 'late.md', text: 'x' }))
    expect(await asked()).toBe('done')
    await house.store.transact((tx) => cancelTask(tx, speaker.key.did, task.id, house.clock.now()))
    // the command goes on: nobody has told it to stop
    expect(await asked()).toBe('UNAUTHENTICATED')
    expect((await house.records()).at(-1)).toMatchObject({ outcome: 'refused', code: 'UNAUTHENTICATED' })
    // its lease is over as well by now, which changes nothing in the answer
    clock.advance(HOUR)
    expect(await asked()).toBe('UNAUTHENTICATED')
  })

  test('L1.5, L3.2: what it read through its token stands in the record of its commit', async () => {
    const { house, speaker, task, token, release } = await holding((h, s) => ({ grants: [s.grant(h)] }))
    const branch = `runs/${task.id}`
    await house.owned('files.write', { branch, path: 'source.md', text: 's', label: 'trusted:owner' })
    await house.service.perform(token, 'files.read', { branch, path: 'source.md' })
    await release()
    await taskIn(house, speaker.key.did, task.id, 'TASK_STATE_COMPLETED')
    const commit = getRef(house.store.view(), house.home, branch)?.commit
    const told = (await house.records()).find(({ effect }) => effect['commit'] === commit)
    expect(told?.reads.map(({ path }) => path)).toEqual(['source.md'])
    expect(told?.run).toBe(task.id)
  })

  test('DEL-002.2.3 an override sets aside what the same origin had running in that scope, and says so', async () => {
    const { house, speaker, task } = await holding((h, s) => ({ grants: [s.grant(h)] }))
    const grants = [speaker.grant(house, { type: 'global', scope: ['*'], level: 'override', ttlMs: null })]
    const next = await say(house, speaker, { grants, text: 'instead' })
    expect(next.status.state).toBe('TASK_STATE_COMPLETED')
    await taskIn(house, speaker.key.did, task.id, 'TASK_STATE_CANCELED')
    expect((await house.records()).some(({ effect }) => effect['canceled_by'] === 'override')).toBe(true)
  })

  test('DEL-002.2.3 an override of another origin leaves it alone', async () => {
    const { house, speaker, task, release } = await holding((h, s) => ({ grants: [s.grant(h)] }))
    const rival = createSpeaker()
    await listed(house, rival)
    const grants = [rival.grant(house, { type: 'global', scope: ['*'], level: 'override', ttlMs: null })]
    await say(house, rival, { grants, text: 'instead' })
    await release()
    await taskIn(house, speaker.key.did, task.id, 'TASK_STATE_COMPLETED')
  })
})

describe('who an agent takes messages from', () => {
  test.each([
    ['anyone', 'stranger', 'TASK_STATE_COMPLETED'],
    ['granted', 'stranger', 'TASK_STATE_REJECTED'],
    ['nobody', 'stranger', 'TASK_STATE_REJECTED'],
    ['granted', 'request', 'TASK_STATE_COMPLETED'],
    ['nobody', 'request', 'TASK_STATE_REJECTED'],
    ['nobody', 'execute', 'TASK_STATE_COMPLETED'],
  ] as const)('DEL-002.2.3 accept %s, asked by %s: %s', async (accept, by, state) => {
    const house = await createHouse()
    await attach(house, { accept })
    const speaker = createSpeaker()
    if (by !== 'stranger') await listed(house, speaker)
    const task = await say(house, speaker, by === 'stranger' ? {} : { grants: [speaker.grant(house)], level: by })
    expect(task.status.state).toBe(state)
  })

  test('DEL-002.2.3 who attaches one and says nothing has not asked strangers in', async () => {
    const house = await createHouse()
    await attach(house)
    const { items } = await house.owned<{ items: Record<string, unknown>[] }>('agents.list')
    const { accept: _, attachedAt: _at, ...silent } = items[0] ?? {}
    await house.owned('agents.attach', silent)
    expect((await say(house, createSpeaker(), {})).status.state).toBe('TASK_STATE_REJECTED')
  })

  test('a node that takes no messages of strangers takes none', async () => {
    const house = await createHouse({ config: { visitors: { messages: 'refuse' } } })
    await attach(house)
    expect((await say(house, createSpeaker(), {})).status.state).toBe('TASK_STATE_REJECTED')
  })

  test('DEL-001 a grant that hangs below another one works as far as both reach', async () => {
    const { house, speaker } = await stage()
    const parent = speaker.grant(house, { maxDepth: 1, level: 'execute' })
    const child = createSpeaker()
    const leaf = signGrant(
      draftGrant({
        type: 'scoped',
        from: { name: 'speaker', did: speaker.key.did },
        to: { name: 'child', did: child.key.did },
        audience: [house.key.did],
        scope: ['reports/weekly'],
        level: 'request',
        now: house.clock.now(),
        ttlMs: HOUR,
        parent,
      }),
      speaker.key,
    )
    const good = await say(house, child, { grants: [parent, leaf] })
    expect(markOf(good)).toMatchObject({ accepted: true, delegated_by: 'Ines' })
    const wide = await say(house, child, { grants: [parent, leaf], scope: ['reports'] })
    expect(markOf(wide)).toMatchObject({ accepted: false, step: 4 })
  })
})
