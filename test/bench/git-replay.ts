/**
 * A server that answers at once with what another one said before: what git takes then is git's own share, whoever
 * serves it.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

type Said = { readonly status: number; readonly headers: Record<string, string>; readonly body: Uint8Array }

/** Of an answer git looks at these, of a question the server does. */
const TOLD = ['content-type', 'www-authenticate']
const ASKED = ['content-type', 'content-encoding', 'git-protocol', 'authorization', 'accept']

export type Replay = {
  /** the address in front of another one: the first time it is asked, afterwards it is not */
  inFrontOf(url: string): string
  close(): void
}

export async function createReplay(): Promise<Replay> {
  const known = new Map<string, Said>()
  let target = ''
  const server = createServer((request, response) => {
    void answer(request).then(({ status, headers, body }) => response.writeHead(status, headers).end(body))
  })
  const answer = async (request: IncomingMessage): Promise<Said> => {
    const body = await buffer(request)
    const headers = Object.fromEntries(ASKED.map((name) => [name, String(request.headers[name] ?? '')]))
    const { method = 'GET', url = '' } = request
    const asked = createHash('sha256').update(JSON.stringify([target, method, url, headers]))
    const question = asked.update(body).digest('hex')
    const said = known.get(question) ?? (await ask(`${target}${url}`, method, headers, body))
    known.set(question, said)
    return said
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    inFrontOf: (url) => {
      target = new URL(url).origin
      const seen = new URL(url)
      seen.host = `127.0.0.1:${port}`
      return seen.href
    },
    close: () => server.close(),
  }
}

async function ask(url: string, method: string, all: Record<string, string>, body: Buffer): Promise<Said> {
  const headers = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''))
  const answer = await fetch(url, { method, headers, ...(method === 'GET' ? {} : { body: Uint8Array.from(body) }) })
  const told = TOLD.flatMap((name) => {
    const value = answer.headers.get(name)
    return value === null ? [] : [[name, value] as const]
  })
  return { status: answer.status, headers: Object.fromEntries(told), body: new Uint8Array(await answer.arrayBuffer()) }
}
