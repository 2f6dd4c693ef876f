/** csb agent, find, send, peers, sync, handoff: agents here and elsewhere. */
import type { Command } from 'commander'
import { newId, systemClock, type AgentRecord } from '@csb/core'
import type { Client } from '@csb/node'
import { acting, collect, durationOf, listOf } from '../context.ts'
import { t } from '../texts.ts'

type Part = { readonly text?: string; readonly data?: unknown }
type Status = { readonly state: string; readonly message?: { readonly parts: readonly Part[] } }
type Task = {
  readonly id: string
  readonly status: Status
  readonly artifacts?: readonly { readonly name?: string; readonly parts: readonly Part[] }[]
}

export function agentCommands(program: Command): void {
  program.commandsGroup(t('group.agents'))
  attachCommands(program)
  program
    .command('find')
    .description(t('find.about'))
    .option('--capability <id>')
    .option('--did <did>')
    .action(
      acting(async (stand, _args, { capability, did }) => {
        const asked = new URLSearchParams(
          Object.entries({ capability, did }).flatMap(([name, value]) =>
            value === undefined ? [] : [[name, String(value)] as [string, string]],
          ),
        )
        const found = await (await stand.client()).call<{ items: AgentRecord[] }>('GET', `/v1/agents/find?${asked}`)
        const line = ({ name, did: id, agents, capabilities }: AgentRecord) =>
          `${name}  ${id}\n  agents ${agents.map((agent) => agent.id).join(', ')}; capabilities ${capabilities.join(', ')}`
        stand.out.answer(found, found.items.length === 0 ? t('find.none') : found.items.map(line).join('\n'))
      }),
    )
  program
    .command('send <agent> <text>')
    .description(t('send.about'))
    .option('--to <did>')
    .option('--delegation <id>')
    .option('--level <level>')
    .option('--scope <tokens>')
    .option('--stream')
    .action(
      acting(async (stand, [agent = '', text = ''], { to, delegation, level, scope, stream }) => {
        const input = {
          ...(to === undefined ? {} : { did: to }),
          ...(delegation === undefined ? {} : { delegation }),
          ...(level === undefined ? {} : { level }),
          ...(scope === undefined ? {} : { scope: listOf(scope) }),
          params: { message: messageOf(text) },
        }
        const client = await stand.client()
        if (stream === true) {
          for await (const event of streamed(client, agent, to, input.params)) stand.out.answer(event, eventText(event))
          return
        }
        const { task } = await client.call<{ task: Task }>('POST', `/v1/agents/${agent}/send`, input)
        stand.out.answer({ task }, taskText(task))
      }),
    )
  peerCommands(program)
}

function attachCommands(program: Command): void {
  const agent = program.command('agent').description(t('agent.about'))
  agent
    .command('attach <id> <command...>')
    .description(t('agent.attach.about'))
    .option('--name <name>')
    .option('--description <text>')
    .option('--skill <id>', '', collect)
    .option('--accept <who>')
    .option('--timeout <duration>')
    .option('--cwd <dir>')
    .passThroughOptions()
    .action(
      acting(async (stand, [id = '', ...rest], { name, description, skill, accept, timeout, cwd }) => {
        const command = rest.flat()
        const skills = listOf(skill)
        const body = {
          id,
          name: name ?? id,
          description: description ?? `the command ${command[0] ?? ''}`,
          command,
          skills: (skills.length === 0 ? [id] : skills).map((one) => ({ id: one, name: one, description: one })),
          ...(accept === undefined ? {} : { accept }),
          ...(timeout === undefined ? {} : { timeout_ms: durationOf(String(timeout)) }),
          cwd: cwd ?? process.cwd(),
        }
        const done = await (
          await stand.client()
        ).call<{ id: string; skills: { id: string }[] }>('POST', '/v1/agents', body)
        stand.out.answer(done, t('agent.attached', { id, skills: done.skills.map((one) => one.id).join(', ') }))
      }),
    )
  agent
    .command('list')
    .description(t('agent.list.about'))
    .action(
      acting(async (stand) => {
        type Agents = { items: { id: string; name: string; command: string[] }[] }
        const found = await (await stand.client()).call<Agents>('GET', '/v1/agents')
        const lines = found.items.map((one) => `${one.id}  ${one.name}  ${one.command.join(' ')}`)
        stand.out.answer(found, lines.length === 0 ? t('agent.none') : lines.join('\n'))
      }),
    )
  agent
    .command('detach <id>')
    .description(t('agent.detach.about'))
    .action(
      acting(async (stand, [id]) => {
        stand.out.answer(await (await stand.client()).call('DELETE', `/v1/agents/${id}`), t('agent.detached', { id }))
      }),
    )
  agent
    .command('card <id>')
    .description(t('agent.card.about'))
    .option('--did <did>')
    .action(
      acting(async (stand, [id], { did }) => {
        const path = did === undefined ? `/agents/${id}/agent-card.json` : `/v1/agents/${id}/card?did=${String(did)}`
        const card = await (await stand.client()).call('GET', path)
        stand.out.answer(card, JSON.stringify(card, null, 2))
      }),
    )
}

function peerCommands(program: Command): void {
  program
    .command('peers [multiaddr]')
    .description(t('peers.about'))
    .action(
      acting(async (stand, [address]) => {
        const client = await stand.client()
        if (address !== undefined) {
          const dialled = await client.call<{ did: string }>('POST', '/v1/peers', { address })
          stand.out.answer(dialled, t('peers.dialled', dialled))
          return
        }
        type Found = { items: { did: string; connected: boolean; addresses: string[] }[] }
        const found = await client.call<Found>('GET', '/v1/peers')
        const lines = found.items.map((peer) => `${peer.connected ? '*' : ' '} ${peer.did}  ${peer.addresses[0] ?? ''}`)
        stand.out.answer(found, lines.length === 0 ? t('peers.none') : lines.join('\n'))
      }),
    )
  program
    .command('sync <did>')
    .description(t('sync.about'))
    .option('--home <home>')
    .action(
      acting(async (stand, [did], { home }) => {
        const body = { did, ...(home === undefined ? {} : { home }) }
        const report = await (await stand.client()).call<Record<string, unknown>>('POST', '/v1/sync', body)
        stand.out.answer(report, t('sync.done', report))
      }),
    )
  program
    .command('handoff <did> <agent> <text>')
    .description(t('handoff.about'))
    .option('--note <id>', '', collect)
    .option('--max-level <level>')
    .option('--ttl <duration>')
    .action(
      acting(async (stand, [did, agent, text], { note, maxLevel, ttl }) => {
        const body = {
          did,
          agent,
          text,
          notes: listOf(note),
          ...(maxLevel === undefined ? {} : { labels_max: maxLevel }),
          ...(ttl === undefined ? {} : { ttl_ms: durationOf(String(ttl)) }),
        }
        const done = await (
          await stand.client()
        ).call<{ withheld: string[] } & Record<string, unknown>>('POST', '/v1/handoff', body)
        const withheld = done.withheld.length === 0 ? [] : [t('handoff.withheld', { ids: done.withheld.join(', ') })]
        stand.out.answer(done, [t('handoff.done', done), ...withheld].join('\n'))
      }),
    )
}

const messageOf = (text: string) => ({
  messageId: newId('message', systemClock.now()),
  role: 'ROLE_USER',
  parts: [{ text }],
})

function streamed(client: Client, agent: string, to: unknown, params: unknown): AsyncGenerator<unknown> {
  const path = to === undefined ? `/a2a/${agent}` : `/a2a/${String(to)}/${agent}`
  return client.stream(path, { jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params })
}

const textOf = (parts: readonly Part[] = []): string =>
  parts.map(({ text, data }) => text ?? (data === undefined ? '' : JSON.stringify(data))).join('\n')

function taskText({ id, status, artifacts = [] }: Task): string {
  const shown = artifacts.map(({ name, parts }) =>
    name === undefined ? textOf(parts) : `--- ${name}\n${textOf(parts)}`,
  )
  const said = textOf(status.message?.parts)
  return [t('send.task', { id, state: status.state }), ...shown, ...(said === '' ? [] : [`(${said})`])].join('\n')
}

function eventText(event: unknown): string {
  const { task, statusUpdate, artifactUpdate } = event as {
    task?: Task
    statusUpdate?: { status: Status }
    artifactUpdate?: { artifact: { parts: Part[] } }
  }
  if (task !== undefined) return t('send.task', { id: task.id, state: task.status.state })
  if (artifactUpdate !== undefined) return textOf(artifactUpdate.artifact.parts)
  const said = textOf(statusUpdate?.status.message?.parts)
  return said === '' ? (statusUpdate?.status.state ?? '') : `${statusUpdate?.status.state ?? ''} (${said})`
}
