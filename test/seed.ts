/**
 * One seed for every property test of a run, so that a run is a function of the commit. `npm run soak` draws others;
 * `CSB_TEST_SEED=<seed> npm run unit -- <file>` repeats one. A test that names its own seed keeps it.
 */
import fc from 'fast-check'
import { inject } from 'vitest'

declare module 'vitest' {
  // vitest asks for this very name, and for an interface that can be added to
  interface ProvidedContext {
    seed: number
  }
}

fc.configureGlobal({ seed: inject('seed') })
