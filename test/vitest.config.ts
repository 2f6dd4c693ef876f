import { defineConfig } from 'vitest/config'

const seed = Number(process.env['CSB_TEST_SEED'] ?? 20_261_130)
if (!Number.isInteger(seed) || (seed | 0) !== seed) throw new Error('CSB_TEST_SEED is an integer of 32 bits')
process.stdout.write(`seed of the property tests: ${seed}\n`)

/** One process per file: LevelDB, libp2p and signals are real here, and files must not share them. */
export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  resolve: { conditions: ['csb-source'] },
  ssr: { resolve: { conditions: ['csb-source'], externalConditions: ['csb-source'] } },
  test: {
    include: ['packages/*/test/**/*.test.ts', 'apps/*/test/**/*.test.ts', 'test/**/*.test.ts'],
    provide: { seed },
    setupFiles: ['test/seed.ts'],
    pool: 'forks',
    maxWorkers: 2,
    execArgv: ['--conditions=csb-source'],
    // tests that start the command many times compile it once
    env: { NODE_COMPILE_CACHE: new URL('../node_modules/.cache/compile', import.meta.url).pathname },
    // these end what hangs and judge nothing else: a machine may be ten times slower and busy besides
    testTimeout: 300_000,
    hookTimeout: 180_000,
  },
})
