/**
 * All checks of the house, in order: generated files, types, lint, format, unused code, then every test.
 *
 * A static step counts as one test. A step that fails does not stop the others, so one run shows all. The last
 * line is always `N passed, N failed`, with `, N skipped` where something was skipped.
 * `--static` leaves the tests out. Exits with 1 where anything failed.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const env = { ...process.env, PATH: [join(root, 'node_modules', '.bin'), process.env.PATH ?? ''].join(delimiter) }
const isWindows = process.platform === 'win32'

const STATIC = [
  ['generated files are up to date', 'node', '--conditions=csb-source', 'schemas/generate.ts', '--check'],
  ['types of packages and apps', 'tsc', '-b'],
  ['types of tests', 'tsc', '-p', 'test/tsconfig.json'],
  ['lint', 'oxlint', '--type-aware'],
  ['format', 'oxfmt', '--check'],
  ['nothing unused', 'knip', '--no-config-hints'],
]

const counts = { passed: 0, failed: 0, skipped: 0 }
const failedSteps = []

for (const [title, ...command] of STATIC) await runStatic(title, command)
if (!process.argv.includes('--static')) await runTests()

if (failedSteps.length > 0) process.stdout.write(`\nfailed: ${failedSteps.join('; ')}\n`)
const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''
process.stdout.write(`\n${counts.passed} passed, ${counts.failed} failed${skipped}\n`)
process.exitCode = counts.failed > 0 ? 1 : 0

async function runStatic(title, command) {
  const begin = Date.now()
  let output = ''
  const code = await run(command, { stdio: ['ignore', 'pipe', 'pipe'] }, (text) => (output += text))
  const seconds = ((Date.now() - begin) / 1000).toFixed(1)
  process.stdout.write(`${code === 0 ? 'ok    ' : 'FAILED'} ${title} (${seconds} s)\n`)
  if (code === 0) {
    counts.passed++
    return
  }
  counts.failed++
  failedSteps.push(title)
  process.stdout.write(`${output.trimEnd()}\n\n`)
}

/** The counts come from the reporter in test/reporter.ts. A run that died without them is a failure, never a zero. */
async function runTests() {
  const folder = mkdtempSync(join(tmpdir(), 'csb-verify-'))
  const file = join(folder, 'counts.json')
  const command = ['vitest', 'run', '--config', 'test/vitest.config.ts']
  const reporters = ['--reporter=default', '--reporter=./test/reporter.ts']
  const code = await run([...command, ...reporters], { stdio: ['ignore', 'inherit', 'inherit'], counts: file })
  const tests = readCounts(file)
  rmSync(folder, { recursive: true, force: true })
  counts.passed += tests.passed
  counts.skipped += tests.skipped
  const isSilentFailure = code !== 0 && tests.failed === 0
  counts.failed += isSilentFailure ? 1 : tests.failed
  if (isSilentFailure) failedSteps.push(`vitest ended with ${code} and told of no failed test`)
  else if (tests.failed > 0) failedSteps.push('tests')
}

function readCounts(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return { passed: 0, failed: 1, skipped: 0 }
  }
}

/** Resolves with the exit code, 1 where the program could not be started or was killed. */
function run([program, ...args], { stdio, counts: file }, onOutput) {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd: root,
      env: file === undefined ? env : { ...env, CSB_TEST_COUNTS: file },
      stdio,
      shell: isWindows,
    })
    child.stdout?.on('data', onOutput)
    child.stderr?.on('data', onOutput)
    child.on('error', (error) => {
      onOutput?.(`${error.message}\n`)
      resolve(1)
    })
    child.on('close', (code) => resolve(code ?? 1))
  })
}
