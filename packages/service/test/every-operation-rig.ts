/** One node with something of everything in it, a friend's beside it, and one way to ask for any operation there is. */
import { constants, inflateSync } from 'node:zlib'
import { createKeyPair, isNodeError, type FakeClock, type Grant, type Lease, createFakeClock } from '@csb/core'
import { draftGrant, grantHash, signGrant, trust, type GrantInit } from '@csb/authority'
import { OPERATIONS, type Caller } from '../src/index.ts'
import { HOUR, NOW, attach, createHouse, holdingIn, messageOf, type House, type Task } from './house.ts'
import { createNetwork, type Network } from './network.ts'

export type World = {
  readonly house: House
  readonly friend: House
  readonly network: Network
  readonly clock: FakeClock
  /** hash of what the friend's owner granted to this node */
  readonly received: string
  /** the friend's home as an archive */
  readonly archive: readonly Uint8Array[]
  /** a word nobody has used before */
  readonly word: (stem: string) => string
}

/** What an operation came to: how it ended, and all that was heard of it. */
export type Heard = {
  /** `done` or the code it was refused with; of a push that of its first line */
  readonly code: string
  readonly field: string | undefined
  /** everything that came back, also what is packed in it */
  readonly text: string
}

/** Every right that can be in one lease that is handed out. */
export const EVERYTHING: Partial<Lease> = {
  actions: ['list', 'read', 'write', 'propose', 'snapshot', 'send', 'exec'],
  paths: ['/'],
  branches: ['*'],
  labels_max: 'sealed',
  label_tags: ['*'],
  capabilities: ['B', 'C'],
  max_children: 100,
}

/** A node with notes, branches, an agent and a friend that it shares its notes with. */
export async function createWorld(): Promise<World> {
  const network = createNetwork()
  const clock = createFakeClock(NOW)
  const house = await createHouse({ name: 'nas', network, clock })
  const friend = await createHouse({ name: 'friend', network, clock })
  const clearance = { level: 'sealed' as const, tags: ['*'] }
  for (const [at, other] of [
    [friend, house],
    [house, friend],
  ] as const)
    await at.store.transact((tx) =>
      trust(tx, { did: other.owner.did, name: other.name, ceiling: 'override', clearance }),
    )
  await attach(house)
  await attach(friend)
  await house.grant({
    to: { name: 'friend', did: friend.key.did },
    lease: {
      type: 'urn:csb:lease:1',
      locations: [`nas://*/${house.home}`],
      actions: ['list', 'read'],
      paths: ['/'],
      branches: ['memory'],
      labels_max: 'trusted',
    },
  })
  await house.owned('files.write', { branch: 'runs/x', path: 'drafts/a.md', text: 'a draft', label: 'public:owner' })
  await house.owned('files.branch', { branch: 'runs/y' })
  const received = grantOf(friend, { to: { name: 'nas', did: house.key.did }, maxDepth: 2, ttlMs: 80 * 24 * HOUR })
  await house.owned('authority.accept', { grant: received })
  const archive: Uint8Array[] = []
  for await (const event of friend.service.open(friend.owning, 'files.export', {}) as AsyncIterable<{
    bytes?: unknown
  }>) {
    if (event.bytes instanceof Uint8Array) archive.push(Uint8Array.from(event.bytes))
  }
  let words = 0
  const word = (stem: string) => `${stem}-${++words}`
  return { house, friend, network, clock, received: grantHash(received), archive, word }
}

/** A grant of a house's owner, kept nowhere yet. */
export const grantOf = (house: House, more: Partial<GrantInit> = {}): Grant =>
  signGrant(
    draftGrant({
      type: 'scoped',
      from: { name: `${house.name}'s owner`, did: house.owner.did },
      to: { name: 'somebody', did: createKeyPair().did },
      audience: ['*'],
      scope: ['reports'],
      level: 'request',
      now: house.clock.now(),
      ttlMs: HOUR,
      statusKey: house.key.did,
      ...more,
    }),
    house.owner,
  )

/** A note of the owner. */
export const remember = async ({ house }: World, content = 'tea is hot', label = 'public:owner'): Promise<string> =>
  (await house.owned<{ id: string }>('memory.create', { entry: { content, level: 'warm', type: 'lesson' }, label })).id

/** A branch of the owner with one file. @returns its name and head */
export async function branchOf(world: World, path = 'drafts/b.md') {
  const branch = world.word('runs/made')
  const { commit } = await world.house.owned<{ commit: string }>('files.write', {
    branch,
    path,
    text: branch,
    label: 'public:owner',
  })
  return { branch, commit }
}

/** A task that goes on until the house is left, of whoever asks. */
export async function taskOf({ house }: World, caller: Caller, text = 'hang'): Promise<string> {
  const params = { message: messageOf(text), configuration: { returnImmediately: text === 'hang' } }
  const { task } = (await house.service.perform(caller, 'agents.send', { agent: 'clerk', params })) as { task: Task }
  return task.id
}

/** A session with these rights, and with all the others unless it says so. */
export const session = ({ house }: World, lease: Partial<Lease> = {}) =>
  holdingIn(house, { ...EVERYTHING, locations: [`nas://*/${house.home}`], ...lease })

/** Ask for any operation, in the way of its kind, and hear all of it. @param says what the other end of a session says */
export async function ask(
  { house }: Pick<World, 'house'>,
  caller: Caller,
  name: string,
  input: object,
  says: readonly unknown[] = [],
): Promise<Heard> {
  const heard: unknown[] = []
  try {
    const kind = OPERATIONS.get(name)?.kind
    if (kind === 'stream') {
      for await (const event of house.service.open(caller, name, input)) {
        heard.push(event)
        // who follows a task that goes on hears no end
        if (name === 'agents.subscribe') break
      }
    } else if (kind === 'session') {
      const left = [...says]
      await house.service.attend(caller, name, input, {
        send: async (message) => void heard.push(message),
        receive: async () => left.shift(),
        close: async () => undefined,
        abort: () => undefined,
      })
    } else heard.push(await house.service.perform(caller, name, input))
    return { code: 'done', field: undefined, text: textOf(heard), ...refusedLine(heard) }
  } catch (error) {
    if (!isNodeError(error)) throw error
    const { field } = error.details
    return {
      code: error.code,
      field: typeof field === 'string' ? field : undefined,
      text: textOf([...heard, error.toJSON()]),
    }
  }
}

/** A push answers for each line. */
function refusedLine(heard: readonly unknown[]): Partial<Heard> {
  type Report = {
    readonly refs?: readonly { readonly refused: { code: string; details?: { field?: string } } | null }[]
  }
  const refused = heard.flatMap((one) => ((one ?? {}) as Report).refs ?? []).find((line) => line.refused !== null)
  return refused?.refused ? { code: refused.refused.code, field: refused.refused.details?.field } : {}
}

/** Everything as text: JSON, and bytes with what is deflated in them. */
function textOf(heard: readonly unknown[]): string {
  const bytes: Uint8Array[] = []
  const withoutBytes = (value: unknown): unknown => {
    if (value instanceof Uint8Array) return void bytes.push(Uint8Array.from(value))
    if (Array.isArray(value)) return value.map(withoutBytes)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withoutBytes(member)]))
  }
  return [JSON.stringify(heard.map(withoutBytes)), ...inflatedIn(Buffer.concat(bytes))].join('\n')
}

function inflatedIn(bytes: Buffer): string[] {
  const found = [bytes.toString('utf8')]
  for (let at = bytes.indexOf(0x78); at >= 0; at = bytes.indexOf(0x78, at + 1)) {
    if (at + 1 >= bytes.length || bytes.readUInt16BE(at) % 31 !== 0) continue
    try {
      found.push(inflateSync(bytes.subarray(at), { finishFlush: constants.Z_SYNC_FLUSH }).toString('utf8'))
    } catch {
      // the two bytes began nothing
    }
  }
  return found
}

/** Everything that is kept, but the record, what is kept of the record itself, and what is derived from commits. */
export const contentOf = ({ house }: Pick<World, 'house'>): Promise<Record<string, string>> =>
  house.dump((fullKey) => /^(?:(?:r[hpncrkgwlu]|fj)\/|m\/record)/.test(fullKey))

/** The keys of a store that differ. */
export const changed = (before: Record<string, string>, after: Record<string, string>): string[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((one) => before[one] !== after[one])
