/** A message, a node that listens to the owner, and authority signed for the message. */
import type { Authority, Grant, JsonRpcRequest, KeyPair } from '@csb/core'
import type { Store } from '@csb/store'
import { payloadDigest, signAuthority, trust, type AuthorityInit } from '@csb/authority'
import { NOW, agent, node, owner, testStore } from './cast.ts'

export const BODY: JsonRpcRequest = {
  jsonrpc: '2.0',
  id: 'r1',
  method: 'SendMessage',
  params: {
    message: { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: '请完成晋升/遗忘标准定义', weight: 0.5 }] },
  },
}

/** A node that lists the owner under the name Mum, up to execute. */
export async function listening(): Promise<Store> {
  const store = await testStore()
  await store.transact((tx) => trust(tx, { did: owner.did, name: 'Mum', ceiling: 'execute' }))
  return store
}

export const sign = (
  chain: readonly Grant[],
  extra: Partial<AuthorityInit> = {},
  key: KeyPair = agent,
  body = BODY,
): Authority =>
  signAuthority(
    {
      chain,
      payload: payloadDigest(body),
      level: 'request',
      scope: ['csb-protocol'],
      audience: node.did,
      now: NOW,
      ttlMs: 300_000,
      ...extra,
    },
    key,
  )
