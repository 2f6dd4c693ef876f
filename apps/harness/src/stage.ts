/** What a scenario is given: a cluster, words for whoever watches, and a list of what was proved. */
import { once } from 'node:events'
import { deadline, systemClock } from '@csb/core'
import { createCluster, type Cluster } from './cluster.ts'

/** A scenario that hangs is one that failed. */
const LIMIT_MS = 180_000
const LOG_LINES = 5

export type Scenario = {
  readonly name: string
  readonly about: string
  run(stage: Stage): Promise<void>
}

/** What the person asked for on the command line. */
export type Options = {
  readonly vault?: string
  readonly transcript?: string
  readonly nodes?: number
  /** leave the folder behind */
  readonly keep?: boolean
}

export type Stage = {
  readonly cluster: Cluster
  readonly options: Options
  /** begin a step of the story */
  step(title: string): void
  /** one plain sentence, with the ids involved */
  say(text: string): void
  /** one row of the table at the end */
  prove(title: string, holds: boolean, detail: string): void
}

export type Outcome = { readonly rows: readonly Row[]; readonly ms: number }
type Row = { readonly title: string; readonly holds: boolean; readonly detail: string }

/**
 * Play a scenario to its end, and clear away its processes and its folder however it ends. What it throws becomes a
 * row that is not proved.
 * @param write takes lines for a person
 * @param signal ends it early
 */
export async function play(
  scenario: Scenario,
  options: Options,
  write: (line: string) => void,
  signal?: AbortSignal,
): Promise<Outcome> {
  const began = systemClock.now()
  const rows: Row[] = []
  const cluster = await createCluster({ keep: options.keep === true })
  const ended = deadline(LIMIT_MS, signal)
  let steps = 0
  const stage: Stage = {
    cluster,
    options,
    step: (title) => write(`\n${++steps}. ${title}`),
    say: (text) => write(`   ${text}`),
    prove: (title, holds, detail) => {
      rows.push({ title, holds, detail })
      write(`   ${holds ? 'proved' : 'NOT PROVED'}: ${title}`)
    },
  }
  try {
    await Promise.race([scenario.run(stage), rejectionOf(ended)])
  } catch (error) {
    stage.prove('the scenario came to its end', false, textOf(error))
    for (const line of await lastWords(cluster)) write(`   ${line}`)
  } finally {
    await cluster.close()
    if (options.keep === true) write(`\nThe nodes and their logs are in ${cluster.directory}`)
  }
  return { rows, ms: systemClock.now() - began }
}

/** Nothing shown is nothing proved. */
export const isProved = ({ rows }: Outcome): boolean => rows.length > 0 && rows.every(({ holds }) => holds)

/** The closing table. */
export function tableOf({ rows, ms }: Outcome): string {
  const width = Math.max(0, ...rows.map(({ title }) => title.length))
  const lines = rows.map(({ title, holds, detail }) => `${holds ? 'yes' : 'NO '}  ${title.padEnd(width)}  ${detail}`)
  const proved = rows.filter(({ holds }) => holds).length
  return ['', 'Proved', ...lines, '', `${proved} of ${rows.length} proved in ${(ms / 1000).toFixed(1)} s`].join('\n')
}

async function rejectionOf(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, 'abort')
  throw signal.reason
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { code, details } = error as { code?: unknown; details?: unknown }
  return typeof code === 'string' ? `${code} ${JSON.stringify(details ?? {})}` : error.message
}

/** The end of every node's log. */
async function lastWords({ members }: Cluster): Promise<string[]> {
  const logs = await Promise.all(members.map(async (member) => ({ name: member.name, text: await member.log() })))
  return logs.flatMap(({ name, text }) =>
    text
      .trimEnd()
      .split('\n')
      .slice(-LOG_LINES)
      .map((line) => `${name}: ${line}`),
  )
}
