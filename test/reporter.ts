/**
 * Counts what really ran and writes it to the file that `CSB_TEST_COUNTS` names, for the last line of `npm test`.
 * A test file that could not be loaded, a hook that failed and an error outside any test count as one failure each.
 */
import { writeFileSync } from 'node:fs'
import type { Reporter, SerializedError, TestModule, TestSuite } from 'vitest/node'

type Counts = { passed: number; failed: number; skipped: number }

export default class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const file = process.env['CSB_TEST_COUNTS']
    if (file !== undefined) writeFileSync(file, JSON.stringify(countTests(modules, unhandled)))
  }
}

function countTests(modules: readonly TestModule[], unhandled: readonly SerializedError[]): Counts {
  const counts: Counts = { passed: 0, failed: unhandled.length, skipped: 0 }
  for (const module of modules) {
    counts.failed += brokenIn(module)
    for (const suite of module.children.allSuites()) counts.failed += brokenIn(suite)
    for (const test of module.children.allTests()) {
      const { state } = test.result()
      if (state === 'passed') counts.passed++
      else if (state === 'skipped') counts.skipped++
      else counts.failed++
    }
  }
  return counts
}

/** Errors of the file or of the group itself: it did not load, or a hook around its tests threw. */
function brokenIn(part: TestModule | TestSuite): number {
  return part.errors().length > 0 ? 1 : 0
}
