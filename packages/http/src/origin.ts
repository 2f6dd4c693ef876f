/**
 * Keeps web pages out. A page whose name was made to point at this machine (DNS rebinding) sends its own name as
 * Host; a page of another site sends its own Origin. Neither gets past here, whatever token its browser holds.
 */
import { isIP } from 'node:net'
import { fail } from '@csb/core'

export type OriginInit = {
  /** what the listener was told to bind to */
  readonly host: string
  /** where a proxy stands in front: its name is also ours */
  readonly publicUrl?: string | undefined
}

/** Throws DENIED for a request that did not address this node by a name of its own. */
export type OriginCheck = (headers: Headers) => void

export function createOriginCheck({ host, publicUrl }: OriginInit): OriginCheck {
  const open = publicUrl === undefined ? undefined : new URL(publicUrl)
  const names = new Set(['localhost', host.toLowerCase(), ...(open === undefined ? [] : [open.hostname])])
  return (headers) => {
    const asked = headers.get('host') ?? ''
    const name = nameOf(asked)
    // an address can not be rebound, so only names need to be known
    if (name === undefined || !(names.has(name) || isIP(name.replace(/^\[|\]$/g, '')) !== 0)) {
      fail('DENIED', { reason: 'this node has no such name', host: asked.slice(0, 256) })
    }
    const origin = headers.get('origin')
    if (origin === null || origin === open?.origin) return
    if (hostOf(origin) !== asked.toLowerCase())
      fail('DENIED', { reason: 'another origin', origin: origin.slice(0, 256) })
  }
}

/** True for addresses and names that only this machine can reach. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, '')
  return name === 'localhost' || name === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name)
}

/** The host name in a Host header; undefined where it is not one. */
function nameOf(hostHeader: string): string | undefined {
  if (!/^(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(?::[0-9]{1,5})?$/.test(hostHeader)) return undefined
  return hostHeader
    .replace(/:[0-9]{1,5}$/, '')
    .replace(/\.$/, '')
    .toLowerCase()
}

function hostOf(origin: string): string | undefined {
  return /^https?:\/\/([^/]+)$/.exec(origin)?.[1]?.toLowerCase()
}
