/**
 * Ways into what is slow to load. Most commands only ask a node that runs already, and must not wait for a network
 * stack that they never use.
 */
import type { Settings } from './config.ts'
import type { RunningNode } from './create-node.ts'

/** Start the node in `directory`. @throws as `createNode` does */
export async function startNode(directory: string, settings: Settings): Promise<RunningNode> {
  const { createNode } = await import('./create-node.ts')
  return createNode(directory, settings)
}

/** The stock A2A client, for the card at `url`, with a bearer token. */
export async function connectCloud(url: string, token: string) {
  const http = await import('@csb/http')
  return http.connectCloud(url, token)
}
