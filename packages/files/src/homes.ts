/**
 * Homes: the unit that is owned, kept in step and handed over. Each has its own objects and branches.
 *
 * The first commit is a function of the home's id alone, so all nodes that hold a replica start from one root.
 */
import { fail, publicKeyFromDid, random } from '@csb/core'
import { key, prefix, type Transaction, type View } from '@csb/store'
import { writeCommit, writeTree, type HashName } from './objects.ts'
import { startRef } from './refs.ts'

export type Home = {
  /** `home_` and 26 base32 characters */
  readonly id: string
  readonly hash: HashName
  /** did of the owner */
  readonly owner: string
  /** did of the node that made the home */
  readonly origin: string
  /** ms since epoch */
  readonly createdAt: number
}

export type CreateHome = {
  /** given for a replica; a new one otherwise */
  readonly id?: string
  /** default sha256; sha1 for people who mirror to hosts that know nothing else */
  readonly hash?: HashName
  readonly owner: string
  readonly origin: string
  /** ms since epoch */
  readonly now: number
}

/** The branch that only an approved merge moves. */
export const MAIN = 'main'
/** The branch of the notes. */
export const MEMORY = 'memory'

const ID_PATTERN = /^home_[a-z2-7]{26}$/
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'

/**
 * Make a home, or a replica of one: `main` (protected) and `memory` at a root commit with an empty tree.
 * @throws CONFLICT where it is here already, INVALID_INPUT
 */
export function createHome(tx: Transaction, init: CreateHome): Home {
  const home: Home = {
    id: init.id ?? newHomeId(),
    hash: init.hash ?? 'sha256',
    owner: init.owner,
    origin: init.origin,
    createdAt: init.now,
  }
  if (!ID_PATTERN.test(home.id)) fail('INVALID_INPUT', { reason: 'not the id of a home', id: home.id })
  if (home.hash !== 'sha256' && home.hash !== 'sha1') fail('INVALID_INPUT', { reason: 'hash', hash: home.hash })
  for (const did of [home.owner, home.origin]) {
    if (publicKeyFromDid(did) === undefined) fail('INVALID_INPUT', { reason: 'not an Ed25519 did:key', did })
  }
  if (tx.has(key('home', home.id))) fail('CONFLICT', { reason: 'that home is here already', home: home.id })
  tx.putJson(key('home', home.id), home)
  const nobody = { name: 'csb', did: home.id, at: 0 }
  const root = writeCommit(tx, home.id, {
    tree: writeTree(tx, home.id, []),
    parents: [],
    author: nobody,
    committer: nobody,
    message: `root of ${home.id}`,
    trailers: {},
  })
  startRef(tx, home.id, MAIN, { commit: root, protected: true, updatedAt: init.now })
  startRef(tx, home.id, MEMORY, { commit: root, protected: false, updatedAt: init.now })
  return home
}

export const findHome = (view: View, id: string): Home | undefined => view.getJson<Home>(key('home', id))

/** @throws NOT_FOUND */
export const getHome = (view: View, id: string): Home => findHome(view, id) ?? fail('NOT_FOUND', { home: id })

/** All homes of this node, by id. @throws OBJECT_DAMAGED */
export async function listHomes(view: View): Promise<Home[]> {
  const start = prefix('home')
  const homes: Home[] = []
  for await (const [k] of view.range({ prefix: start })) homes.push(getHome(view, k.slice(start.length)))
  return homes
}

function newHomeId(): string {
  let id = 'home_'
  for (const byte of random(26)) id += ALPHABET[byte & 31]
  return id
}
