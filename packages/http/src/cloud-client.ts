/** A cloud agent's side of the gateway: the stock A2A client, with the bearer token it was handed. */
import {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  type Client,
} from '@a2a-js/sdk/client'

/**
 * Read an agent card and be ready to speak to the agent it describes.
 * @param cardUrl where the card is served
 * @param token a lease's token; undefined: without one
 */
export async function connectCloud(cardUrl: string, token?: string): Promise<Client> {
  const fetchImpl: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers)
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
    return fetch(input, { ...init, headers })
  }
  const options = {
    transports: [new JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  }
  const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, options))
  return factory.createFromUrl(cardUrl, '')
}
