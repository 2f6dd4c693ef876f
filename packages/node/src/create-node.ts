/**
 * The house, assembled in sight: store, door to the network, service, door to HTTP, jobs. Started in that order and
 * stopped in the other; what fails on the way up takes down what stands.
 */
import {
  createKeyPair,
  exportSeed,
  fail,
  fromBase64Url,
  selfTest,
  systemClock,
  validate,
  type Identity,
  type KeyPair,
} from '@csb/core'
import { createHttp } from '@csb/http'
import {
  createRecordBook,
  createRuns,
  createService,
  isCardOf,
  startJobs,
  type Parts,
  type Service,
} from '@csb/service'
import { openStore } from '@csb/store'
import { createWire } from '@csb/wire'
import { agentEnvironment, type Settings } from './config.ts'
import { pathOf, readJson, writeJson } from './data-folder.ts'
import { createLog } from './log.ts'

export const VERSION = '0.1.0'

export type RunningNode = {
  readonly identity: Identity
  /** base of the HTTP door */
  readonly url: string
  readonly addresses: readonly string[]
  readonly service: Service
  /** Refuse these peers and close what is open to them, until {@link RunningNode.unblock}. */
  block(dids: readonly string[]): Promise<void>
  unblock(): void
  stop(): Promise<void>
}

/**
 * Start the node in `directory`.
 * @throws NOT_INITIALISED, HOME_LOCKED, DATA_TOO_NEW, CONFIG_INVALID, PORT_IN_USE
 */
export async function startNode(directory: string, settings: Settings): Promise<RunningNode> {
  await selfTest()
  const identity = validate('Identity', await readJson(directory, 'identity'), 'CONFIG_INVALID')
  const key = await readNodeKey(directory, identity)
  const log = createLog(settings.log.level)
  const started = new AsyncDisposableStack()
  try {
    const store = await openStore(pathOf(directory, 'database'))
    started.defer(() => store.close())

    const clock = systemClock
    const wire = await createWire({
      seed: exportSeed(key),
      db: store.db,
      config: {
        listen: settings.p2p.listen,
        bootstrap: settings.p2p.bootstrap,
        mdns: settings.p2p.mdns,
        maxConnections: settings.p2p.maxConnections,
        profile: settings.p2p.loopback ? 'loopback' : 'lan',
      },
      records: createRecordBook(store, clock),
      cards: { verify: isCardOf },
      clock,
      log: (event, details) => log('info', event, details),
    })

    const background = new Set<Promise<unknown>>()
    let url = ''
    const parts: Parts = {
      store,
      clock,
      key,
      identity,
      config: settings.config,
      peers: wire.peers,
      log,
      version: VERSION,
      httpUrl: () => url,
      agentEnvironment: agentEnvironment(),
      runs: createRuns(),
      background: (work) => {
        const kept = work.catch((error: unknown) => log('warn', 'background work failed', { error: String(error) }))
        background.add(kept)
        void kept.finally(() => background.delete(kept))
      },
    }
    const service = createService(parts)
    started.defer(async () => {
      await service.close()
      for (const run of parts.runs.active.values()) run.abort.abort()
      await Promise.allSettled(background)
    })

    await wire.listen(service)
    started.defer(() => wire.stop())
    const { publicUrl, ...door } = settings.http
    const http = await createHttp({ service, ...door, ...(publicUrl === null ? {} : { publicUrl }), log })
    url = http.url
    started.defer(() => http.close())
    const jobs = await startJobs(parts, service)
    started.defer(() => jobs.stop())

    // a command on this machine does not go through the proxy in front
    const local = `http://${door.host === '0.0.0.0' ? '127.0.0.1' : door.host}:${http.port}`
    await writeJson(directory, 'running', { url: local, pid: process.pid })
    const stack = started.move()
    return {
      identity,
      url,
      addresses: wire.peers.addresses(),
      service,
      block: wire.block,
      unblock: () => wire.unblock(),
      stop: () => stack.disposeAsync(),
    }
  } catch (error) {
    await started.disposeAsync()
    throw error
  }
}

async function readNodeKey(directory: string, identity: Identity): Promise<KeyPair> {
  const { seed } = (await readJson(directory, 'nodeKey')) as { seed?: unknown }
  const bytes = typeof seed === 'string' ? fromBase64Url(seed) : undefined
  const key = createKeyPair(bytes ?? fail('CONFIG_INVALID', { file: 'node.key' }))
  return key.did === identity.did ? key : fail('CONFIG_INVALID', { file: 'node.key', field: 'did' })
}
