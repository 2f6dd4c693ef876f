/** npm run demo, and the other scenarios: `demo [--vault DIR | --transcript FILE]`, `run NAME`, `list`. */
import { parseArgs } from 'node:util'
import { play, tableOf } from './stage.ts'
import { SCENARIOS } from './scenarios/index.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { vault: { type: 'string' }, transcript: { type: 'string' } },
})
const [verb = 'list', name = verb] = positionals
const write = (line: string) => process.stdout.write(`${line}\n`)
const scenario = SCENARIOS.find((one) => one.name === name)

if (scenario === undefined) {
  for (const one of SCENARIOS) write(`${one.name.padEnd(12)} ${one.about}`)
  process.exitCode = verb === 'list' ? 0 : 2
} else {
  const options = {
    ...(values.vault === undefined ? {} : { vault: values.vault }),
    ...(values.transcript === undefined ? {} : { transcript: values.transcript }),
  }
  const outcome = await play(scenario, options, write)
  write(tableOf(outcome))
  process.exitCode = outcome.rows.every(({ holds }) => holds) ? 0 : 1
}
