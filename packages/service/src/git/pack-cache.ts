/**
 * Packs for those who come new, kept for the next one: a home is cloned again and again as it is, or with little more
 * behind it. In memory only, few and small; one that was made before something was forgotten is not given out and not
 * kept.
 */
import type { PackStart } from '@csb/files'

export type KeptPack = Pick<PackStart, 'oids'> & {
  readonly entries: readonly Uint8Array[]
  /** how many objects of kind tag are in it */
  readonly tags: number
  /** what was asked for */
  readonly wants: readonly string[]
  /** where the history in it ends */
  readonly shallow: readonly string[]
}

export type PackCache = {
  /** @param epoch changes when something is forgotten: what was made before is dropped */
  find(home: string, epoch: number, wish: string): KeptPack | undefined
  /**
   * The one used last of those that are whole, without tags, and all of whose wants lie behind something.
   * @param isBehind asked for ids of commits and tags
   */
  findBehind(home: string, epoch: number, isBehind: (oid: string) => boolean): KeptPack | undefined
  /** Nothing happens where it is too large. */
  keep(home: string, epoch: number, wish: string, pack: KeptPack): void
}

/** A larger pack takes long anyway. In bytes. */
export const KEPT_PACK_BYTES = 4 * 1024 * 1024
const KEPT = 4

export function createPackCache(): PackCache {
  const packs = new Map<string, { readonly home: string; readonly epoch: number; readonly pack: KeptPack }>()
  const drop = (home: string, epoch: number): void => {
    for (const [name, kept] of packs) if (kept.home === home && kept.epoch !== epoch) packs.delete(name)
  }
  /** What was used last goes last. */
  const used = (name: string): KeptPack | undefined => {
    const kept = packs.get(name)
    if (kept === undefined) return undefined
    packs.delete(name)
    packs.set(name, kept)
    return kept.pack
  }
  return {
    find: (home, epoch, wish) => {
      drop(home, epoch)
      return used(`${home} ${wish}`)
    },
    findBehind: (home, epoch, isBehind) => {
      drop(home, epoch)
      const those = [...packs].filter(([, kept]) => kept.home === home)
      const name = those.findLast(([, { pack }]) => isStart(pack) && pack.wants.every(isBehind))?.[0]
      return name === undefined ? undefined : used(name)
    },
    keep: (home, epoch, wish, pack) => {
      const bytes = pack.entries.reduce((sum, { byteLength }) => sum + byteLength, 0)
      if (bytes > KEPT_PACK_BYTES) return
      packs.delete(`${home} ${wish}`)
      packs.set(`${home} ${wish}`, { home, epoch, pack })
      for (const oldest of packs.keys()) {
        if (packs.size <= KEPT) break
        packs.delete(oldest)
      }
    },
  }
}

const isStart = ({ shallow, tags }: KeptPack): boolean => shallow.length + tags === 0
