/** The attacks on authority that the design names, and the tests that say in their names which one they show. */
import { stringsOf } from './code.ts'
import type { SourceFile } from './house.ts'

/** How many there are; they are numbered from 1. */
const ATTACKS = 40

/** Attacks that nothing stands against yet, each with the reason. */
export const OPEN: ReadonlyMap<number, string> = new Map([])

/** Numbers of the attacks that names in test files speak of. */
export function attacksIn(files: readonly SourceFile[]): ReadonlySet<number> {
  const found = new Set<number>()
  for (const { path, text } of files) {
    if (!path.endsWith('.test.ts') || path.startsWith('test/structure/')) continue
    for (const { value } of stringsOf(text))
      for (const match of value.matchAll(/\battack (\d+)\b/g)) found.add(Number(match[1]))
  }
  return found
}

/** Each attack has a test or a reason, not both, and there are no others. */
export function checkAttacks(shown: ReadonlySet<number>, open: ReadonlyMap<number, string>): string[] {
  const all = Array.from({ length: ATTACKS }, (_, at) => at + 1)
  return [
    ...all.filter((n) => !shown.has(n) && !open.has(n)).map((n) => `no test names attack ${n}`),
    ...all.filter((n) => shown.has(n) && open.has(n)).map((n) => `attack ${n} has a test and is listed as open`),
    ...[...shown, ...open.keys()].filter((n) => !all.includes(n)).map((n) => `there is no attack ${n}`),
    ...[...open].filter(([, reason]) => reason.trim() === '').map(([n]) => `attack ${n} is open without a reason`),
  ]
}
