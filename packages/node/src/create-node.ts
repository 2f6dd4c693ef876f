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
  toNodeError,
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
import { FILES, pathOf, readJson, removeFile, writeJson } from './data-folder.ts'
import { heedDeclared, watchDeclared } from './declared.ts'
import { createLog } from './log.ts'
import { checkPorts, isPortTaken } from './ports.ts'
import { VERSION } from './version.ts'

const IDENTITY_VERSION = 1

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
 * @throws NOT_INITIALISED, HOME_LOCKED with the holder's pid, DATA_TOO_NEW, CONFIG_INVALID,
 *   INSECURE_LISTEN, PORT_IN_USE with the port and one that is free
 */
export async function createNode(directory: string, settings: Settings): Promise<RunningNode> {
  await selfTest()
  const identity = await readIdentity(directory)
  const key = await readNodeKey(directory, identity)
  const log = createLog(settings.log.level)
  const started = createStack()
  try {
    const store = await openStore(pathOf(directory, 'database'))
    started.defer(() => store.close())
    // asked before anything is built: a node that can not listen says so at once
    await checkPorts(settings)

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

    started.defer(() => wire.stop())
    await wire.listen(service).catch((error: unknown) => {
      if (isPortTaken(error)) fail('PORT_IN_USE', { listen: settings.p2p.listen }, error)
      throw error
    })
    const { publicUrl, ...door } = settings.http
    const http = await createHttp({ service, ...door, ...(publicUrl === null ? {} : { publicUrl }), log })
    url = http.url
    started.defer(() => http.close())
    const jobs = await startJobs(parts, service)
    started.defer(() => jobs.stop())
    const watching = { directory, service, log }
    await heedDeclared(watching)
    started.defer(watchDeclared(watching))

    // a command on this machine does not go through the proxy in front
    await writeJson(directory, 'running', { url: localUrl(door.host, http.port), pid: process.pid })
    // first of all, while the database still keeps other processes out: the token must not go to whoever gets the port
    started.defer(() => removeFile(directory, 'running'))
    return {
      identity,
      url,
      addresses: wire.peers.addresses(),
      service,
      block: wire.block,
      unblock: () => wire.unblock(),
      stop: started.takeDown,
    }
  } catch (error) {
    await started.takeDown()
    throw error
  }
}

/** What stands, taken down in the other order, once. A step that fails does not keep the others standing. */
function createStack() {
  const steps: (() => Promise<void>)[] = []
  const run = async () => {
    const failures: unknown[] = []
    for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
      await step().catch((error: unknown) => failures.push(error))
    }
    if (failures.length > 0) throw toNodeError(failures[0])
  }
  let down: Promise<void> | undefined
  return {
    defer: (step: () => Promise<void>) => {
      steps.push(step)
    },
    takeDown: () => (down ??= run()),
  }
}

function localUrl(host: string, port: number): string {
  if (host === '0.0.0.0') return `http://127.0.0.1:${port}`
  if (host === '::') return `http://[::1]:${port}`
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

async function readIdentity(directory: string): Promise<Identity> {
  const value = await readJson(directory, 'identity')
  const { v } = (value ?? {}) as { v?: unknown }
  if (typeof v === 'number' && v > IDENTITY_VERSION)
    fail('DATA_TOO_NEW', { file: FILES.identity, format: v, understood: IDENTITY_VERSION })
  return validate('Identity', value, 'CONFIG_INVALID')
}

async function readNodeKey(directory: string, identity: Identity): Promise<KeyPair> {
  const { seed } = (await readJson(directory, 'nodeKey')) as { seed?: unknown }
  const bytes = typeof seed === 'string' ? fromBase64Url(seed) : undefined
  const key = createKeyPair(bytes ?? fail('CONFIG_INVALID', { file: 'node.key' }))
  return key.did === identity.did ? key : fail('CONFIG_INVALID', { file: 'node.key', field: 'did' })
}
