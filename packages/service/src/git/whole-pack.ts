/**
 * Packs for clients that have nothing. What is made for one is kept for the next; where the branch grew meanwhile, that
 * one's pack begins with it. Packs of two runs begin with one and the same pack of the main line.
 *
 * Never with anything that does not lie behind what is asked for: a client gets no object that its commits do not need.
 */
import { fail } from '@csb/core'
import {
  MAIN,
  createObjectView,
  epochOf,
  getRef,
  isEnough,
  isErased,
  packFor,
  planFetch,
  type PackStart,
} from '@csb/files'
import type { View } from '@csb/store'
import { KEPT_PACK_BYTES } from './pack-cache.ts'
import type { Context } from '../operation.ts'

/** What is asked for; `tags`: ids of those that go along where their commits are sent. */
type Wish = { readonly wants: readonly string[]; readonly tags: ReadonlySet<string> }

type WholePack = PackStart & {
  readonly wants: readonly string[]
  /** where the history in it ends */
  readonly shallow: readonly string[]
}

/** A wish in an epoch of its home. */
type Asked = Wish & { readonly epoch: number }

/** Commits behind which a pack that is kept is not looked for. */
const START_COMMITS = 500

/**
 * The entries go by once; when all have, they are kept. They end with FORGOTTEN where something of them was forgotten
 * meanwhile.
 * @param wish ids that the caller may see
 * @throws NOT_FOUND, OBJECT_DAMAGED, FORGOTTEN
 */
export async function wholePackOf(context: Context, home: string, wish: Wish): Promise<WholePack> {
  const asked = { ...wish, epoch: epochOf(context.store.view(), home) }
  const kept = context.runs.packs.find(home, asked.epoch, nameOf(asked))
  const pack = kept ?? (await makePack(context, home, asked))
  return { ...pack, entries: remembered(context, home, asked.epoch, pack) }
}

/** What was kept is not read from the store again, which would refuse it: a forget on the way is looked for here. */
function* remembered(
  { store }: Context,
  home: string,
  madeIn: number,
  { oids, entries }: PackStart,
): Generator<Uint8Array> {
  let epoch = madeIn
  for (const entry of entries) {
    const view = store.view()
    const now = epochOf(view, home)
    if (now !== epoch) refuseForgotten(view, home, oids)
    epoch = now
    yield entry
  }
}

/** @throws FORGOTTEN */
function refuseForgotten(view: View, home: string, { size, hex }: PackStart['oids']): void {
  for (let number = 0; number < size; number++)
    if (isErased(view, home, hex(number))) fail('FORGOTTEN', { home, oid: hex(number) })
}

async function makePack(context: Context, home: string, asked: Asked): Promise<WholePack> {
  const view = context.store.view()
  const seen = createObjectView(view, home)
  const { wants, epoch } = asked
  const isBehind = (oid: string): boolean => wants.some((want) => isEnough(seen, home, [want], [oid], START_COMMITS))
  const start =
    context.runs.packs.findBehind(home, epoch, isBehind) ?? (await packOfMain(context, home, asked, isBehind))
  const since = await planFetch(seen, home, { wants, haves: start?.wants ?? [], shallow: [] })
  const isWhole = start === undefined || since.shallow.length === 0
  const plan = isWhole ? since : await planFetch(seen, home, { wants, haves: [], shallow: [] })
  const options = { thin: false, includeTags: asked.tags }
  const pack = await packFor(view, home, plan, isWhole && start !== undefined ? { ...options, start } : options)
  const made = { wants, shallow: plan.shallow, oids: pack.oids }
  const keep = (entries: readonly Uint8Array[]): void =>
    context.runs.packs.keep(home, epoch, nameOf(asked), { ...made, tags: pack.tags, entries })
  return { ...made, entries: noted(pack.entries(), keep) }
}

/** Runs begin at the main line: what is made of it for one is there for the next. */
async function packOfMain(
  context: Context,
  home: string,
  { wants, epoch }: Asked,
  isBehind: (oid: string) => boolean,
): Promise<WholePack | undefined> {
  const main = getRef(context.store.view(), home, MAIN)?.commit
  if (main === undefined || wants.includes(main) || !isBehind(main)) return undefined
  const pack = await makePack(context, home, { epoch, tags: new Set(), wants: [main] })
  return pack.shallow.length === 0 ? pack : undefined
}

/** The same, and the end is told of all; no more of them is held than is kept, and the one that is too much. */
function* noted(entries: Iterable<Uint8Array>, atEnd: (all: readonly Uint8Array[]) => void): Generator<Uint8Array> {
  const all: Uint8Array[] = []
  let bytes = 0
  for (const entry of entries) {
    if (bytes <= KEPT_PACK_BYTES) all.push(entry)
    bytes += entry.byteLength
    yield entry
  }
  atEnd(all)
}

const nameOf = ({ wants, tags }: Wish): string => [...[...wants].sort(), '', ...[...tags].sort()].join(' ')
