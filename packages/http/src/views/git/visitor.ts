/** Who stands at the git view: the lease's token as password of HTTP Basic, whatever the user name, or as bearer. */
import { fail, type NodeError } from '@csb/core'
import type { Caller } from '@csb/service'

const TOKEN = /^[A-Za-z0-9._~+/-]{1,4096}=*$/
const HOME = /^(home_[a-z2-7]{26})(?:\.git)?$/

/** @throws UNAUTHENTICATED where there is something that can not be read */
export function callerOf(authorization: string | undefined): Caller {
  if (authorization === undefined) return { kind: 'nobody', door: 'http' }
  const [, scheme = '', rest = ''] = /^(\w+) +(\S+)$/.exec(authorization.trim()) ?? []
  const token = scheme.toLowerCase() === 'basic' ? passwordOf(rest) : rest
  if (!/^(?:basic|bearer)$/i.test(scheme) || !TOKEN.test(token))
    fail('UNAUTHENTICATED', { reason: 'no token of a lease' })
  return { kind: 'bearer', token, door: 'http' }
}

/** The home in `/git/<home>.git`. @throws NOT_FOUND */
export const homeIn = (repository: string): string =>
  HOME.exec(repository)?.[1] ?? fail('NOT_FOUND', { repository: repository.slice(0, 64) })

/** What went wrong, as git shows it to a person: a sentence, the reason, the code. */
export function sentenceOf({ code, message, details }: Pick<NodeError, 'code' | 'message' | 'details'>): string {
  const about = ['reason', 'path', 'field', 'commit', 'branch', 'name', 'oid', 'maxBytes', 'maxObjects']
    .filter((name) => ['string', 'number'].includes(typeof details[name]))
    .map(
      (name) =>
        `${name === 'reason' ? '' : `${name} `}${String(details[name]).replaceAll(/[\p{Cc}\u2028\u2029]/gu, '?')}`,
    )
  return `${message}${about.length === 0 ? '' : ` (${about.join(', ')})`} [${code}]`
}

/** An error before anything was sent: git shows plain text to its user, and asks for a password where one is missing. */
export function refusalResponse(error: NodeError): Response {
  const { status } = error.row
  return new Response(`${sentenceOf(error)}\n`, {
    status,
    headers: {
      'Content-Type': 'text/plain; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      ...(status === 401 ? { 'WWW-Authenticate': 'Basic realm="csb", charset="UTF-8"' } : {}),
      ...(error.code === 'BUSY' ? { 'Retry-After': '1' } : {}),
    },
  })
}

function passwordOf(base64: string): string {
  const text = Buffer.from(base64, 'base64').toString()
  return text.slice(text.indexOf(':') + 1)
}
