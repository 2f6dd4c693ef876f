/** What a client is told first: names and what this side can do. */
import { FLUSH, pkt } from './pkt-line.ts'

/** Answer of `git.refs`. */
export type Refs = {
  readonly hash: 'sha1' | 'sha256'
  /** name that HEAD stands for */
  readonly head: string
  readonly refs: readonly { readonly name: string; readonly oid: string; readonly peeled?: string }[]
  /** commits at which history begins for a client that comes new */
  readonly ends?: readonly string[]
  /** true where the lease sees a part: a push then stands by itself */
  readonly is_part?: boolean
}

export type ServiceName = 'git-upload-pack' | 'git-receive-pack'

const AGENT = 'agent=csb'
const FETCH_WORDS =
  'multi_ack_detailed no-done side-band-64k thin-pack ofs-delta shallow deepen-since deepen-not deepen-relative no-progress include-tag'
const PUSH_WORDS = 'report-status delete-refs side-band-64k quiet atomic ofs-delta push-options'

/** @param version asked for by the client; a push knows no 2 */
export function advertisement(service: ServiceName, version: 0 | 1 | 2, refs: Refs): Uint8Array {
  const format = `object-format=${refs.hash}`
  const head = [pkt(`# service=${service}\n`), FLUSH]
  if (service === 'git-upload-pack' && version === 2) {
    const words = ['version 2', AGENT, 'ls-refs=unborn', 'fetch=shallow', 'server-option', format]
    return Buffer.concat([...head, ...words.map((word) => pkt(`${word}\n`)), FLUSH])
  }
  const words =
    service === 'git-receive-pack'
      ? `${PUSH_WORDS}${refs.is_part === true ? ' no-thin' : ''} ${format} ${AGENT}`
      : `${FETCH_WORDS} symref=HEAD:${refs.head} ${format} ${AGENT}`
  const target = refs.refs.find(({ name }) => name === refs.head)
  const named = [
    ...(service === 'git-upload-pack' && target !== undefined ? [{ name: 'HEAD', oid: target.oid }] : []),
    ...refs.refs.flatMap(({ name, oid, peeled }) => [
      { name, oid },
      ...(peeled === undefined || service === 'git-receive-pack' ? [] : [{ name: `${name}^{}`, oid: peeled }]),
    ]),
  ]
  const zero = '0'.repeat(refs.hash === 'sha1' ? 40 : 64)
  const lines = named.length === 0 ? [{ name: 'capabilities^{}', oid: zero }] : named
  return Buffer.concat([
    ...head,
    ...(version === 1 ? [pkt('version 1\n')] : []),
    ...lines.map(({ name, oid }, at) => pkt(`${oid} ${name}${at === 0 ? `\0${words}` : ''}\n`)),
    ...(refs.ends ?? []).map((oid) => pkt(`shallow ${oid}\n`)),
    FLUSH,
  ])
}

/** What names begin with that are asked for; none: all are. */
export const prefixesIn = (asked: readonly string[]): string[] =>
  asked.filter((line) => line.startsWith('ref-prefix ')).map((line) => line.slice('ref-prefix '.length))

/** Answer to `command=ls-refs` of version 2. */
export function listed({ head, refs }: Refs, asked: readonly string[]): Uint8Array {
  const prefixes = prefixesIn(asked)
  const [symrefs, peel] = [asked.includes('symrefs'), asked.includes('peel')]
  const target = refs.find(({ name }) => name === head)
  const all = [...(target === undefined ? [] : [{ ...target, name: 'HEAD' }]), ...refs]
  const lines = all
    .filter(({ name }) => prefixes.length === 0 || prefixes.some((start) => name.startsWith(start)))
    .map(({ name, oid, peeled }) => {
      const symref = symrefs && name === 'HEAD' ? ` symref-target:${head}` : ''
      return pkt(`${oid} ${name}${symref}${peel && peeled !== undefined ? ` peeled:${peeled}` : ''}\n`)
    })
  const unborn = target === undefined && asked.includes('unborn') ? [pkt(`unborn HEAD symref-target:${head}\n`)] : []
  return Buffer.concat([...unborn, ...lines, FLUSH])
}
