/**
 * Runs the property tests and the crash tests again and again, each time with another seed, for a bounded time.
 *
 * `npm run soak -- --minutes 30` (10 where nothing is said; no round begins later), `--property` leaves the crash tests
 * out, whatever else is said goes to vitest. Stops at the first failure with what repeats it, and exits with 1.
 */
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const isWindows = process.platform === 'win32'
const PROPERTY = /from 'fast-check'/
const CRASH = /\b(?:test|describe)\b[^\n]*\b(?:kill|power cut)/

const options = optionsOf(process.argv.slice(2))
const files = globSync(['packages/*/test/*.test.ts', 'apps/*/test/*.test.ts', 'test/*/*.test.ts'], { cwd: root })
  .filter((file) => isWanted(readFileSync(join(root, file), 'utf8')))
  .sort()

process.stdout.write(
  `${files.length} files of ${options.isPropertyOnly ? 'property' : 'property and crash'} tests, ${options.minutes} min\n`,
)
const end = Date.now() + options.minutes * 60_000
let rounds = 0
while (process.exitCode === undefined && Date.now() < end) await runRound(randomInt(2 ** 31))
process.stdout.write(`${rounds} rounds, ${process.exitCode === 1 ? 'the last one failed' : 'none failed'}\n`)

async function runRound(seed) {
  rounds++
  const began = Date.now()
  process.stdout.write(`seed ${seed} `)
  const { code, output } = await run(seed)
  const seconds = ((Date.now() - began) / 1000).toFixed(0)
  process.stdout.write(`${code === 0 ? 'ok' : 'FAILED'} (${seconds} s)\n`)
  if (code === 0) return
  process.exitCode = 1
  process.stdout.write(`${output}\nto repeat it: CSB_TEST_SEED=${seed} npm run unit -- <the file that failed>\n`)
}

function run(seed) {
  return new Promise((resolve) => {
    let output = ''
    const args = ['run', '--config', 'test/vitest.config.ts', '--bail=1', ...options.rest, ...files]
    const path = [join(root, 'node_modules', '.bin'), process.env.PATH ?? ''].join(delimiter)
    const child = spawn('vitest', args, {
      cwd: root,
      env: { ...process.env, PATH: path, CSB_TEST_SEED: String(seed) },
      stdio: ['ignore', 'pipe', 'pipe'],
      shell: isWindows,
    })
    child.stdout.on('data', (text) => (output += text))
    child.stderr.on('data', (text) => (output += text))
    child.on('error', (error) => resolve({ code: 1, output: `${output}${error.message}` }))
    child.on('close', (code) => resolve({ code, output }))
  })
}

function isWanted(text) {
  return PROPERTY.test(text) || (!options.isPropertyOnly && CRASH.test(text))
}

function optionsOf(words) {
  const others = [...words]
  const at = others.indexOf('--minutes')
  const minutes = at < 0 ? 10 : Number(others.splice(at, 2)[1])
  if (!(minutes > 0)) throw new Error('--minutes is a number above 0')
  const isPropertyOnly = others.includes('--property')
  return { minutes, isPropertyOnly, rest: others.filter((word) => word !== '--property') }
}
