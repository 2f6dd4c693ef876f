/** csb agent, find, send: agents here and elsewhere, and words to them. */
import { Option, type Command } from 'commander'
import { newId, systemClock, type AgentRecord } from '@csb/core'
import { acting, collect, didOf, durationOf, exitBy, fromCaller, given, listOf, route, type Stand } from '../context.ts'
import { failureText, type Metadata } from '../failure-text.ts'
import { inline } from '../terminal.ts'
import { t } from '../texts.ts'

type Part = { readonly text?: string; readonly data?: unknown }
type Status = { readonly state: string; readonly message?: { readonly parts: readonly Part[] } }
type Task = {
  readonly id: string
  readonly status: Status
  readonly metadata?: Metadata
  readonly artifacts?: readonly { readonly name?: string; readonly parts: readonly Part[] }[]
}
type Attached = {
  readonly id: string
  readonly name: string
  readonly command: readonly string[]
  readonly skills: readonly { readonly id: string }[]
}
type Attaching = {
  readonly name?: string
  readonly description?: string
  readonly skill?: string[]
  readonly accept?: string
  readonly timeout?: number
  readonly cwd?: string
}
type Sending = {
  readonly to?: string
  readonly delegation?: string
  readonly level?: string
  readonly scope?: string
  readonly stream?: boolean
}

export function agentCommands(program: Command): void {
  program.commandsGroup(t('group.agents'))
  attachCommands(program)
  program
    .command('find')
    .description(t('find.about'))
    .option('--capability <id>', t('option.capability'))
    .option('--did <did>', t('option.node'), didOf)
    .action(
      acting<{ capability?: string; did?: string }>(async ({ client, out }, _args, { capability, did }) => {
        const node = await client()
        const asked = node.call<{ items: AgentRecord[] }>('GET', route(['v1', 'agents', 'find'], { capability, did }))
        const found = await out.during(t('find.progress'), asked)
        out.answer(found, found.items.length === 0 ? t('find.none') : found.items.map(recordText).join('\n'))
      }),
    )
  program
    .command('send <agent> <text>')
    .description(t('send.about'))
    .option('--to <did>', t('option.node'), didOf)
    .option('--delegation <id>', t('option.delegation'))
    .option('--level <level>', t('option.rank'))
    .option('--scope <tokens>', t('option.scope'))
    // a streamed answer is asked for as any A2A client asks, and such a client brings no authority
    .addOption(new Option('--stream', t('option.stream')).conflicts(['delegation', 'level', 'scope']))
    .action(acting<Sending, [string, string]>(send))
}

function attachCommands(program: Command): void {
  const agent = program.command('agent').description(t('agent.about'))
  agent
    .command('attach <id> <command...>')
    .usage(t('agent.attach.usage'))
    .description(t('agent.attach.about'))
    .option('--name <name>', t('option.name'))
    .option('--description <text>', t('option.description'))
    .option('--skill <id>', t('option.skill'), collect)
    .addOption(new Option('--accept <who>', t('option.accept')).choices(['anyone', 'granted', 'nobody']))
    .option('--timeout <duration>', t('option.timeout'), durationOf)
    .option('--cwd <dir>', t('option.cwd'))
    .addHelpText('after', t('agent.attach.example'))
    .action(acting<Attaching, [string, string[]]>(attach))
  agent
    .command('list')
    .description(t('agent.list.about'))
    .action(
      acting(async ({ client, out }) => {
        const found = await (await client()).call<{ items: Attached[] }>('GET', '/v1/agents')
        const lines = found.items.map(({ id, name, command }) => `${id}  ${inline(name)}  ${inline(command.join(' '))}`)
        out.answer(found, lines.length === 0 ? t('agent.none') : lines.join('\n'))
      }),
    )
  agent
    .command('detach <id>')
    .description(t('agent.detach.about'))
    .action(
      acting<object, [string]>(async ({ client, out }, [id]) => {
        out.answer(await (await client()).call('DELETE', route(['v1', 'agents', id])), t('agent.detached', { id }))
      }),
    )
  agent
    .command('card <id>')
    .description(t('agent.card.about'))
    .option('--did <did>', t('option.node'), didOf)
    .action(
      acting<{ did?: string }, [string]>(async ({ client, out }, [id], { did }) => {
        const card = await (await client()).call('GET', route(['v1', 'agents', id, 'card'], { did }))
        out.answer(card, JSON.stringify(card, null, 2))
      }),
    )
}

async function attach({ client, out }: Stand, [id, command]: [string, string[]], options: Attaching): Promise<void> {
  const { name = id, skill = [id], accept, timeout, cwd = '.' } = options
  const description = options.description ?? t('agent.attach.described', { command: command[0] })
  const body = {
    id,
    name,
    description,
    command,
    skills: skill.map((one) => ({ id: one, name: one, description: one })),
    // where the person stands: so a script is named as it would be to run it by hand
    cwd: fromCaller(cwd),
    ...given({ accept, timeout_ms: timeout }),
  }
  const done = await (await client()).call<Attached>('POST', '/v1/agents', body)
  out.answer(done, t('agent.attached', { id, skills: done.skills.map((one) => one.id).join(', ') }))
}

async function send({ client, out }: Stand, [agent, text]: [string, string], options: Sending): Promise<void> {
  const { to, delegation, level, scope, stream } = options
  const params = {
    message: { messageId: newId('message', systemClock.now()), role: 'ROLE_USER', parts: [{ text }] },
  }
  const node = await client()
  if (stream === true) {
    const path = route(['a2a', ...(to === undefined ? [] : [to]), agent])
    const body = { jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params }
    for await (const event of node.stream(path, body)) out.answer(event, eventText(event))
    return
  }
  const input = {
    params,
    ...given({ did: to, delegation, level }),
    ...(scope === undefined ? {} : { scope: listOf(scope) }),
  }
  const asked = node.call<{ task: Task }>('POST', route(['v1', 'agents', agent, 'send']), input)
  const { task } = await out.during(t('send.progress', { agent }), asked)
  out.answer({ task }, taskText(task))
  exitBy(task.status.state)
}

const recordText = ({ name, did, agents, capabilities }: AgentRecord): string =>
  t('find.found', {
    name: inline(name),
    did,
    agents: agents.map(({ id }) => inline(id)).join(', '),
    capabilities: capabilities.map(inline).join(', '),
  })

const textOf = (parts: readonly Part[] = []): string =>
  parts.map(({ text, data }) => text ?? (data === undefined ? '' : JSON.stringify(data))).join('\n')

function taskText({ id, status, metadata, artifacts = [] }: Task): string {
  const shown = artifacts.map(({ name, parts }) =>
    name === undefined ? textOf(parts) : `--- ${inline(name)}\n${textOf(parts)}`,
  )
  const said = textOf(status.message?.parts)
  return [
    t('send.task', { id, state: status.state }),
    ...shown,
    ...(said === '' ? [] : [`(${said})`]),
    ...failureText(metadata),
  ].join('\n')
}

type Event = {
  readonly task?: Task
  readonly statusUpdate?: { readonly status: Status; readonly metadata?: Metadata }
  readonly artifactUpdate?: { readonly artifact: { readonly parts: readonly Part[] } }
}

function eventText(event: unknown): string {
  const { task, statusUpdate, artifactUpdate } = event as Event
  if (task !== undefined) return t('send.task', { id: task.id, state: task.status.state })
  if (artifactUpdate !== undefined) return textOf(artifactUpdate.artifact.parts)
  const state = statusUpdate?.status.state ?? ''
  exitBy(state)
  const said = textOf(statusUpdate?.status.message?.parts)
  return [said === '' ? state : `${state} (${said})`, ...failureText(statusUpdate?.metadata)].join('\n')
}
