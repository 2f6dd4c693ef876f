/** csb peers, sync, handoff: what is done together with another node. */
import type { Command } from 'commander'
import { acting, collect, didOf, durationOf, exitBy, given, route } from '../context.ts'
import { handedText, type Handed } from '../handed-text.ts'
import { homeIn, withHome, type InHome } from '../homes.ts'
import { t } from '../texts.ts'

type Peer = { readonly did: string; readonly connected: boolean; readonly addresses: readonly string[] }
type Handing = { readonly note?: string[]; readonly maxLevel?: string; readonly ttl?: number }

/** Enough of a did to tell it from others. */
const short = (did: string): string => `…${did.slice(-8)}`

export function peerCommands(program: Command): void {
  program
    .command('peers [multiaddr]')
    .description(t('peers.about'))
    .action(
      acting<object, [string | undefined]>(async ({ client, out }, [address]) => {
        const node = await client()
        if (address !== undefined) {
          const asked = node.call<{ did: string }>('POST', '/v1/peers', { address })
          const dialled = await out.during(t('peers.progress'), asked)
          out.answer(dialled, t('peers.dialled', dialled))
          return
        }
        const found = await node.call<{ items: Peer[] }>('GET', '/v1/peers')
        const lines = found.items.map((peer) => `${peer.connected ? '*' : ' '} ${peer.did}  ${peer.addresses[0] ?? ''}`)
        out.answer(found, lines.length === 0 ? t('peers.none') : [...lines, t('peers.legend')].join('\n'))
      }),
    )
  withHome(program.command('sync'))
    .argument('<did>', '', didOf)
    .description(t('sync.about'))
    .action(
      acting<InHome, [string]>(async ({ client, out }, [did], options) => {
        const node = await client()
        const body = { did, ...(await homeIn(node, options)) }
        const asked = node.call<{ equal: boolean }>('POST', route(['v1', 'sync']), body)
        const report = await out.during(t('sync.progress', { did: short(did) }), asked)
        out.answer(report, t('sync.done', { ...report, equal: report.equal ? t('yes') : t('sync.partly') }))
      }),
    )
  program
    .command('handoff')
    .argument('<did>', '', didOf)
    .argument('<agent>')
    .argument('<text>')
    .description(t('handoff.about'))
    .option('--note <id>', t('option.note'), collect)
    .option('--max-level <level>', t('option.max-level'))
    .option('--ttl <duration>', t('option.ttl'), durationOf)
    .action(
      acting<Handing, [string, string, string]>(async ({ client, out }, [did, agent, text], options) => {
        const { note = [], maxLevel, ttl } = options
        const body = { did, agent, text, notes: note, ...given({ labels_max: maxLevel, ttl_ms: ttl }) }
        const asked = (await client()).call<Handed>('POST', '/v1/handoff', body)
        const done = await out.during(t('handoff.progress', { agent, did: short(did) }), asked)
        out.answer(done, handedText(done, note))
        exitBy(done.outcome)
      }),
    )
}
