/**
 * `npm run conformance`: the acceptance tests of the document, through the public doors of a running node.
 *
 *   --target URL --token FILE   a node that runs already: it is written into; tests that need nodes of their own are
 *                               not asked
 *   --out FILE                  where to write the declaration; default conformance.json at the root
 *   --only L1.5,L4              clauses or levels to run; the others are not asked
 *
 * Without a target it starts a fresh node. A clause that was not asked is left out of the declaration; one for which no
 * test is built stays planned. Exits with 1 where a test failed.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { validate } from '@csb/core'
import { readClauses } from '../../protocols/clauses.ts'
import type { Acceptance, Context } from './acceptance.ts'
import { createDoor } from './door.ts'
import { DEL } from './DEL-delegation.ts'
import { DEL_MESSAGES } from './DEL-messages.ts'
import { L0 } from './L0-files.ts'
import { L1 } from './L1-authority.ts'
import { L2 } from './L2-memory.ts'
import { L3 } from './L3-guard.ts'
import { L4 } from './L4-sync.ts'
import { createNodes, type LocalNode, type Nodes } from './nodes.ts'
import { createReport, type Result } from './report.ts'

type Target = { readonly url: string; readonly token: string }

const TESTS: readonly Acceptance[] = [...L0, ...L1, ...L2, ...L3, ...L4, ...DEL, ...DEL_MESSAGES]

const WRITES = `This run writes into the node at the target: a note, run branches and a snapshot. No door removes a snapshot
again: use a node that may be thrown away.
`

const { values } = parseArgs({
  options: {
    target: { type: 'string' },
    token: { type: 'string' },
    out: { type: 'string' },
    only: { type: 'string' },
  },
})
process.exitCode = await main().catch((error: unknown) => {
  process.stderr.write(`the run broke off: ${error instanceof Error ? error.message : String(error)}\n`)
  return 1
})

async function main(): Promise<number> {
  const clauses = await readClauses()
  const nodes = createNodes()
  const results = new Map<string, Result>()
  const notAsked = new Set<string>()
  try {
    const context = await contextFor(nodes)
    for (const clause of clauses.filter(
      ({ id, level }) => level !== undefined || TESTS.some((test) => test.clause === id),
    )) {
      const tests = TESTS.filter((test) => test.clause === clause.id)
      const isAsked = (test: Acceptance) => isWanted(test) && (test.needsOwnNodes !== true || context.own !== undefined)
      if (tests.length === 0) print('planned', clause.id, clause.title)
      // a clause counts only when all that shows it was run
      else if (tests.every(isAsked)) results.set(clause.id, await runAll(tests, context as Context))
      else {
        notAsked.add(clause.id)
        print('not asked', clause.id, clause.title)
      }
    }
  } finally {
    await nodes.close()
  }
  const report = createReport(clauses, results, await readDeviations(), await readVersion(), notAsked)
  validate('Conformance', report)
  const out = values.out ?? new URL('../../conformance.json', import.meta.url)
  await writeFile(out, `${JSON.stringify(report, null, 2)}\n`)
  const counted = Object.values(report.tests)
  const count = (result: Result) => counted.filter((one) => one === result).length
  process.stdout.write(
    `level ${report.level}: ${count('pass')} pass, ${count('fail')} fail, ${count('planned')} planned` +
      `${notAsked.size === 0 ? '' : `, ${notAsked.size} not asked`}\n`,
  )
  return count('fail') > 0 ? 1 : 0
}

type Given = Pick<Context, 'node' | 'spawn' | 'friend'> & { readonly own: LocalNode | undefined }

async function contextFor(nodes: Nodes): Promise<Given> {
  const target = await readTarget()
  let friend: Promise<LocalNode> | undefined
  const shared = { spawn: nodes.spawn, friend: () => (friend ??= nodes.spawn({ name: 'friend' })) }
  if (target !== undefined) {
    process.stdout.write(WRITES)
    return { node: createDoor(target.url, target.token), ...shared, own: undefined }
  }
  const own = await nodes.spawn({ name: 'conformance' })
  return { node: own.door, ...shared, own }
}

async function readTarget(): Promise<Target | undefined> {
  if (values.target === undefined) return undefined
  if (values.token === undefined) throw new Error('--target needs --token FILE')
  return { url: values.target.replace(/\/$/, ''), token: (await readFile(values.token, 'utf8')).trim() }
}

async function runAll(tests: readonly Acceptance[], context: Context): Promise<Result> {
  let result: Result = 'pass'
  for (const test of tests) {
    const begin = performance.now()
    try {
      await test.run(context)
      print('pass', test.clause, `${test.title} (${Math.round(performance.now() - begin)} ms)`)
    } catch (error) {
      result = 'fail'
      print('fail', test.clause, `${test.title}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return result
}

function print(result: Result | 'not asked', clause: string, text: string): void {
  process.stdout.write(`${result.padEnd(9)} ${clause.padEnd(6)} ${text.replaceAll('\n', ' ')}\n`)
}

function isWanted({ clause }: Acceptance): boolean {
  const wanted = values.only?.split(',')
  return wanted === undefined || wanted.some((name) => clause === name || clause.startsWith(`${name}.`))
}

async function readDeviations(): Promise<Record<string, string>> {
  return JSON.parse(await readFile(new URL('deviations.json', import.meta.url), 'utf8')) as Record<string, string>
}

async function readVersion(): Promise<string> {
  const text = await readFile(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
