/** npm run demo, and the other scenarios: `list`, `run NAME`, `demo`. */
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { EXIT } from '@csb/core'
import { isProved, play, tableOf, type Options } from './stage.ts'
import { SCENARIOS } from './scenarios.ts'

const USAGE = `Usage: harness list
       harness demo [--vault DIR | --transcript FILE] [--keep]
       harness run NAME [--nodes N] [--keep]

  --vault DIR        the demo takes in this folder of Markdown; it is only read
  --transcript FILE  the demo takes in this chat transcript
  --nodes N          how many nodes the crowd has (default 8)
  --keep             leave the folder with the nodes and their logs
Exit codes: 0 every row is proved, 1 one is not, 2 bad input.
`

const write = (line: string) => process.stdout.write(`${line}\n`)

process.exitCode = await run()

async function run(): Promise<number> {
  const asked = readArguments()
  if (asked === undefined) {
    process.stderr.write(USAGE)
    return EXIT.input
  }
  const { name, options } = asked
  if (name === 'list') {
    for (const scenario of SCENARIOS) write(`${scenario.name.padEnd(12)} ${scenario.about}`)
    return EXIT.ok
  }
  const scenario = SCENARIOS.find((one) => one.name === name)
  if (scenario === undefined) {
    process.stderr.write(`There is no scenario ${name}. There are: ${SCENARIOS.map((one) => one.name).join(', ')}\n`)
    return EXIT.input
  }
  const stopped = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    void once(process, signal).then(() => stopped.abort(new Error(`stopped by ${signal}`)))
  const outcome = await play(scenario, options, write, stopped.signal)
  write(tableOf(outcome))
  return isProved(outcome) ? EXIT.ok : EXIT.fault
}

function readArguments(): { name: string; options: Options } | undefined {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        vault: { type: 'string' },
        transcript: { type: 'string' },
        nodes: { type: 'string' },
        keep: { type: 'boolean' },
      },
    })
    const [verb = 'list', name = verb] = positionals
    const { nodes = '8', ...rest } = values
    const isKnown = ['list', 'demo'].includes(verb)
      ? positionals.length < 2
      : verb === 'run' && positionals.length === 2
    return isKnown && /^[1-9][0-9]?$/.test(nodes) ? { name, options: { ...rest, nodes: Number(nodes) } } : undefined
  } catch {
    return undefined
  }
}
