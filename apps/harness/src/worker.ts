/** One node as a process of its own, told by its parent to cut itself off, come back, or stop. */
import { readSettings, startNode, type Flags } from '@csb/node'

type Order =
  | { readonly do: 'block'; readonly dids: readonly string[] }
  | { readonly do: 'unblock' }
  | { readonly do: 'stop' }

const [directory = '', flags = '{}'] = process.argv.slice(2)
const node = await startNode(directory, await readSettings(directory, JSON.parse(flags) as Flags))
const say = (message: object) => process.connected && process.send?.(message)

process.on('message', (order: Order) => {
  void obey(order).then(
    () => say({ done: order.do }),
    (error: unknown) => say({ failed: order.do, error: String(error) }),
  )
})
// a parent that is gone can not stop us
process.on('disconnect', () => void node.stop().then(() => process.exit(0)))

say({ ready: { url: node.url, addresses: node.addresses } })

async function obey(order: Order): Promise<void> {
  if (order.do === 'block') await node.block(order.dids)
  else if (order.do === 'unblock') node.unblock()
  else process.disconnect()
}
