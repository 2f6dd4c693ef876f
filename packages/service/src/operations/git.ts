/** The git view's reading half: names, and packs of what a client lacks. Writing is `git-push.ts`'s. */
import { fail, turn, type GitText } from '@csb/core'
import {
  HEAD_REF,
  commonOf,
  createHistory,
  createObjectView,
  getHome,
  hasForgotten,
  isEnough,
  packBytes,
  packFor,
  planFetch,
  seesEverything,
  type FetchRequest,
} from '@csb/files'
import { takeInBranches } from '../session/bulk-reads.ts'
import { isSession } from '../session/session.ts'
import { labelOfSession } from '../session/taint.ts'
import { isFromOutside, namesTold } from '../git/names.ts'
import { checkWants, refsSeen, sightOf, type SeenRef } from '../git/view.ts'
import { homeOf, locationOf, type Context, type Operation, type Parts } from '../operation.ts'
import { wholePackOf } from '../git/whole-pack.ts'
import { pushOperation } from './git-push.ts'

type Home = { readonly home?: string }
type Fetch = Home & {
  readonly wants: readonly string[]
  readonly haves?: readonly string[]
  /** the client asks no more: what is common is what is known to be */
  readonly done?: boolean
  readonly shallow?: readonly string[]
  readonly depth?: number
  readonly relative?: boolean
  /** seconds since epoch */
  readonly since?: number
  /** names of refs */
  readonly not?: readonly string[]
  readonly thin?: boolean
  readonly include_tags?: boolean
}

type Naming = Home & {
  readonly ends?: boolean
  /** nothing but names that begin so is asked for; the one that `HEAD` stands for is told as well */
  readonly prefixes?: readonly string[]
  /** for somebody who pushes and need not know what others are called */
  readonly push?: boolean
}

/** What a fetch answers, in this order; `pack` many times. Bytes stay in this process. */
export type FetchEvent =
  | { readonly kind: 'common'; readonly oids: readonly string[]; readonly ready: boolean }
  | { readonly kind: 'ends'; readonly shallow: readonly string[]; readonly unshallow: readonly string[] }
  | { readonly kind: 'progress'; readonly told: GitText }
  | { readonly kind: 'pack'; readonly bytes: Uint8Array }

/** Commits that are looked at to find out whether a client has told enough. */
const ENOUGH_COMMITS = 5_000

const reading = (action: 'list' | 'read') => (input: Home, parts: Parts) => ({
  location: locationOf(parts, homeOf(input, parts)),
  action,
})

export const gitOperations: readonly Operation[] = [
  {
    name: 'git.refs',
    input: 'GitRefs',
    kind: 'read',
    open: 'lease',
    needs: reading('list'),
    run: async (context: Context, input: Naming) => {
      const { id, hash } = getHome(context.view, homeOf(input, context))
      const refs = refsTold(context, id, input, await refsSeen(context, id))
      const ends = input.ends === true ? await endsOf(context, id, refs) : []
      return { home: id, hash, head: HEAD_REF, refs, ends, is_part: !seesEverything(sightOf(context)) }
    },
  },
  {
    name: 'git.fetch',
    input: 'GitFetch',
    kind: 'stream',
    looks: () => true,
    open: 'lease',
    needs: reading('read'),
    run: (context: Context, input: Fetch) => fetchPack(context, homeOf(input, context), input),
  },
  pushOperation,
]

/**
 * Names that are asked for. Who only pushes is not told those from outside, unless it has read from there: it could have
 * built on none of them.
 * @clause L1.7
 */
function refsTold(context: Context, home: string, { prefixes = [], push }: Naming, refs: readonly SeenRef[]) {
  const isAsked = (name: string): boolean =>
    prefixes.length === 0 || name === HEAD_REF || prefixes.some((start) => name.startsWith(start))
  const asked = refs.filter(({ name }) => isAsked(name))
  const isClean = isSession(context) && labelOfSession(context, context.store.view()).integrity !== 'external'
  return push === true && isClean
    ? asked.filter((ref) => !isFromOutside(context, home, ref))
    : namesTold(context, home, asked)
}

/** What is wanted is held until it is sent: a branch may move back or go meanwhile. */
async function* fetchPack(context: Context, home: string, input: Fetch): AsyncGenerator<FetchEvent> {
  const letGo = await context.runs.holds.take(context.store, home, input.wants)
  try {
    yield* fetchHeld(context, home, input)
  } finally {
    letGo()
  }
}

async function* fetchHeld(context: Context, home: string, input: Fetch): AsyncGenerator<FetchEvent> {
  const refs = await refsSeen(context, home)
  checkWants(context, home, input.wants, refs)
  await takeInBranches(context, home, wantedOf(refs, input.wants))
  const view = createObjectView(context.store.view(), home)
  const common = seenOf(context, home, commonOf(view, home, input.haves ?? []), refs)
  const ready = input.done !== true && isEnough(view, home, input.wants, common, ENOUGH_COMMITS)
  yield { kind: 'common', oids: common, ready }
  const isDeepening = input.depth !== undefined || input.since !== undefined || (input.not ?? []).length > 0
  const isGoing = input.done === true || ready
  if (!isGoing && !isDeepening) return
  const isNew = common.length === 0 && !isDeepening && (input.shallow ?? []).length === 0
  if (isNew) yield* wholePack(context, home, input, refs)
  else yield* partPack(context, home, input, { common, refs, isGoing })
}

/** What leads to what is wanted, as a lease names it; all of it where something lies behind a name. */
function wantedOf(refs: readonly SeenRef[], wants: readonly string[]): (branch: string) => boolean {
  const wanted = new Set(wants)
  const tips = new Set(refs.flatMap(({ oid, peeled }) => [oid, peeled ?? oid]))
  const isAll = wants.some((want) => !tips.has(want))
  const leading = isAll ? refs : refs.filter(({ oid, peeled }) => wanted.has(oid) || wanted.has(peeled ?? oid))
  const names = new Set(leading.map(({ branch }) => branch))
  return (branch) => names.has(branch)
}

/** A tag's own words go to nobody whose lease does not reach the tag. */
const tagsAlong = (input: Fetch, refs: readonly SeenRef[]): ReadonlySet<string> =>
  new Set(input.include_tags === true ? refs.flatMap(({ oid, peeled }) => (peeled === undefined ? [] : oid)) : [])

/** For a client that has nothing. */
async function* wholePack(
  context: Context,
  home: string,
  input: Fetch,
  refs: readonly SeenRef[],
): AsyncGenerator<FetchEvent> {
  const pack = await wholePackOf(context, home, { wants: input.wants, tags: tagsAlong(input, refs) })
  yield { kind: 'ends', shallow: pack.shallow, unshallow: [] }
  yield* sendPack(context, home, pack.oids.size, pack.entries)
}

async function* partPack(
  context: Context,
  home: string,
  input: Fetch,
  { common, refs, isGoing }: { common: readonly string[]; refs: readonly SeenRef[]; isGoing: boolean },
): AsyncGenerator<FetchEvent> {
  const view = context.store.view()
  const plan = await planFetch(createObjectView(view, home), home, requestOf(input, common, refs))
  yield { kind: 'ends', shallow: plan.shallow, unshallow: plan.unshallow }
  if (!isGoing) return
  const options = { thin: input.thin === true, includeTags: tagsAlong(input, refs) }
  const pack = await packFor(view, home, plan, options)
  yield* sendPack(context, home, pack.oids.size, pack.entries())
}

async function* sendPack(
  { store, signal }: Context,
  home: string,
  objects: number,
  entries: Iterable<Uint8Array>,
): AsyncGenerator<FetchEvent> {
  yield { kind: 'progress', told: { text: 'git.stage.sending', values: { objects } } }
  for (const bytes of packBytes(getHome(store.view(), home).hash, objects, entries)) {
    signal.throwIfAborted()
    yield { kind: 'pack', bytes }
    // what is read on and on without one keeps all it read
    await turn()
  }
}

/** Where history begins, because something behind it was forgotten. */
async function endsOf(context: Context, home: string, refs: readonly SeenRef[]): Promise<readonly string[]> {
  const view = context.store.view()
  if (!(await hasForgotten(view, home))) return []
  const wants = refs.map(({ oid }) => oid)
  return (await planFetch(createObjectView(view, home), home, { wants, haves: [], shallow: [] })).shallow
}

/** Whether a commit is here is told only of commits that the lease sees. */
function seenOf(context: Context, home: string, haves: readonly string[], refs: readonly SeenRef[]): string[] {
  if (haves.length === 0) return []
  const isSeen = createHistory(
    context.store.view(),
    home,
    refs.map(({ oid, peeled }) => peeled ?? oid),
  )
  return haves.filter(isSeen)
}

function requestOf(input: Fetch, common: readonly string[], refs: readonly SeenRef[]): FetchRequest {
  const not = (input.not ?? []).map((name) => {
    const ref = refs.find(
      (one) => one.name === name || one.name === `refs/heads/${name}` || one.name === `refs/tags/${name}`,
    )
    return ref === undefined ? fail('NOT_FOUND', { name }) : (ref.peeled ?? ref.oid)
  })
  return {
    wants: input.wants,
    haves: common,
    shallow: input.shallow ?? [],
    not,
    ...(input.depth === undefined ? {} : { depth: input.depth }),
    ...(input.relative === undefined ? {} : { relative: input.relative }),
    ...(input.since === undefined ? {} : { since: input.since * 1000 }),
  }
}
