/**
 * A process that opens a store and says `open`, then either holds it or writes without end: each transaction sets
 * three keys at once, and its number is printed only when it was acknowledged.
 */
import { openStore } from '@csb/store'

const [directory = '', mode = 'hold'] = process.argv.slice(2)
const store = await openStore(directory)
process.stdout.write('open\n')

if (mode === 'hold') setInterval(() => undefined, 60_000)
else await Promise.all([0, 1, 2, 3].map(write))

/** One of several writers, so that transactions share batches. */
async function write(lane: number): Promise<void> {
  for (let i = lane; ; i += 4) {
    const value = new TextEncoder().encode(`${i} ${'x'.repeat(i % 900)}`)
    await store.transact((tx) => {
      for (const part of ['a', 'b', 'c']) tx.put(`m/${part}/${String(i).padStart(9, '0')}`, value)
    })
    process.stdout.write(`${i}\n`)
  }
}
