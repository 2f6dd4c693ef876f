/** What a scenario is given: a cluster, words for whoever watches, and a list of what was proved. */
import { createCluster, type Cluster } from './cluster.ts'

export type Scenario = {
  readonly name: string
  readonly about: string
  run(stage: Stage): Promise<void>
}

export type Stage = {
  readonly cluster: Cluster
  /** what the person asked for on the command line */
  readonly options: { readonly vault?: string; readonly transcript?: string }
  /** begin a step of the story */
  step(title: string): void
  /** one plain sentence, with the ids involved */
  say(text: string): void
  /** one row of the table at the end */
  prove(title: string, holds: boolean, detail: string): void
}

export type Outcome = { readonly rows: readonly Row[]; readonly ms: number }
export type Row = { readonly title: string; readonly holds: boolean; readonly detail: string }

/** Play a scenario. @param write takes lines for a person */
export async function play(
  scenario: Scenario,
  options: Stage['options'],
  write: (line: string) => void,
): Promise<Outcome> {
  const began = performance.now()
  const rows: Row[] = []
  const cluster = await createCluster()
  let steps = 0
  try {
    await scenario.run({
      cluster,
      options,
      step: (title) => write(`\n${++steps}. ${title}`),
      say: (text) => write(`   ${text}`),
      prove: (title, holds, detail) => {
        rows.push({ title, holds, detail })
        write(`   ${holds ? 'proved' : 'NOT PROVED'}: ${title}`)
      },
    })
  } finally {
    await cluster.close()
  }
  return { rows, ms: performance.now() - began }
}

/** The closing table. */
export function tableOf({ rows, ms }: Outcome): string {
  const width = Math.max(...rows.map(({ title }) => title.length))
  const lines = rows.map(({ title, holds, detail }) => `${holds ? 'yes' : 'NO '}  ${title.padEnd(width)}  ${detail}`)
  const proved = rows.filter(({ holds }) => holds).length
  return ['', 'Proved', ...lines, '', `${proved} of ${rows.length} proved in ${(ms / 1000).toFixed(1)} s`].join('\n')
}
