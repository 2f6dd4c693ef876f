/** Public test vectors that lie beside the repository; where they are absent the tests that need them say so and skip. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('../../../../shared/vectors/', import.meta.url))

/** True where the named vectors are not here. */
export function areMissing(name: string): boolean {
  const missing = !existsSync(`${folder}${name}`)
  if (missing) process.stdout.write(`skipped: the public vectors ${name} are not here\n`)
  return missing
}

export const readVector = (name: string): string => readFileSync(`${folder}${name}`, 'utf8')
