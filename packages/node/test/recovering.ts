/** Recovers the owner's key of a folder, and is killed when the node was told, or before the files follow. */
import { createServer, request } from 'node:http'
import { readJson, writeJson } from '../src/data-folder.ts'
import { openRecoveryFile } from '../src/recovery-file.ts'
import { recoverOwner } from '../src/recover.ts'

const [directory = '', file = '', passphrase = '', place = ''] = process.argv.slice(2)
const { key: recovery } = await openRecoveryFile(file, passphrase)
const running = (await readJson(directory, 'running')) as { url: string }

// a door before the node's own: what passes it was said, and what does not was not
const between = createServer((asked, answer) => {
  const isTelling = asked.method === 'POST' && asked.url === '/v1/keys'
  if (isTelling && place === 'before it is told') process.kill(process.pid, 'SIGKILL')
  const onward = request(
    `${running.url}${asked.url ?? ''}`,
    { method: asked.method, headers: asked.headers },
    (told) => {
      if (isTelling && place === 'after it was told') process.kill(process.pid, 'SIGKILL')
      answer.writeHead(told.statusCode ?? 500, told.headers)
      told.pipe(answer)
    },
  )
  asked.pipe(onward)
})
between.listen(0, '127.0.0.1', () => {
  void (async () => {
    const { port } = between.address() as { port: number }
    await writeJson(directory, 'running', { ...running, url: `http://127.0.0.1:${port}` })
    await recoverOwner({ directory, recovery, custody: 'unsealed', isStolen: false })
  })()
})
