/** Runs a node as a process: until a signal comes, whatever goes wrong in one request meanwhile. */
import { dropSecrets, type Settings } from './config.ts'
import type { RunningNode } from './create-node.ts'
import { startNode } from './start-node.ts'

export type Watcher = {
  /** it is up, and reached by its addresses */
  ready(node: RunningNode): void
  /** a signal came; it ends what it has begun and closes its database */
  stopping(): void
}

/**
 * The process that serves has neither the owner's key in its memory nor a passphrase in its environment, where every
 * program of the same user could read it: where this one has, it begins anew without, under the same number and with the
 * same arguments. It does not return then. Where the system can not do that the variables are at least taken away.
 * @param isMaking it made the owner's key
 */
export function forgetSecrets(isMaking: boolean): void {
  const { left, had } = dropSecrets()
  if (!had && !isMaking) return
  const { execPath, execArgv, argv } = process
  process.execve?.(execPath, [execPath, ...execArgv, ...argv.slice(1)], { ...left })
}

/**
 * Start the node in `directory` and resolve when SIGINT or SIGTERM has stopped it. A second signal ends the process.
 * @throws what {@link startNode} throws
 */
export async function serveNode(directory: string, settings: Settings, watcher: Watcher): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  // from the start: one that comes while it starts must leave the database closed
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  const node = await startNode(directory, settings)
  const { createLog } = await import('./log.ts')
  const log = createLog(settings.log.level)
  // a fault in one request must not take down a node that others rely on; it is logged and the node goes on
  process.on('unhandledRejection', (error) => log('error', 'unhandled rejection', { error: String(error) }))
  watcher.ready(node)
  await promise
  watcher.stopping()
  await node.stop()
}
