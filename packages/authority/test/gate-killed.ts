/** A process that approves: killed inside the act (`during`), or approving without end (`loop`), a line for each answer. */
import { openStore } from '@csb/store'
import { NOW } from './cast.ts'
import { decided, opened, signed, subjectOf, workDone } from './gate-cast.ts'

const [folder = '', mode = 'loop'] = process.argv.slice(2)
const store = await openStore(folder)
await workDone(store)

for (let i = 0; ; i++) {
  const subject = subjectOf({ source: `runs/${i}` })
  const card = await opened(store, subject)
  const act = () => {
    if (mode === 'during') process.kill(process.pid, 'SIGKILL')
  }
  await decided(store, signed(card), card, { subject, act, now: NOW })
  process.stdout.write(`${card.id}\n`)
}
