/** Changes the owner's key of a folder whose node runs, and is killed at the place that is named. */
import { systemClock } from '@csb/core'
import { connect, type Client } from '../src/client.ts'
import { openOwner } from '../src/owner.ts'
import { rotateOwner } from '../src/rotate.ts'

const [directory = '', place = ''] = process.argv.slice(2)
const client = await connect(directory)
const die = (here: string) => {
  if (here === place) process.kill(process.pid, 'SIGKILL')
}
let isTold = false
const dying: Client = {
  ...client,
  call: async <T>(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown) => {
    const isTelling = method === 'POST' && path === '/v1/keys'
    if (isTelling) die('before it is told')
    const answer = await client.call<T>(method, path, body)
    if (isTelling) die('after it was told')
    if (isTold && path === '/v1/keys') die('before the files follow')
    isTold ||= isTelling
    return answer
  },
}
const owner = await openOwner(directory, undefined)
await rotateOwner({ directory, client: dying, owner, now: systemClock.now() }, { custody: 'unsealed', isStolen: false })
