/**
 * Packs for those who come new, kept for the next one: a home is cloned again and again as it is. In memory only, few
 * and small; one that was made before something was forgotten is not given out and not kept.
 */
export type KeptPack = {
  /** where the history in it ends */
  readonly shallow: readonly string[]
  readonly objects: number
  readonly chunks: readonly Uint8Array[]
}

export type PackCache = {
  /** @param epoch changes when something is forgotten: what was made before is dropped */
  find(home: string, epoch: number, wish: string): KeptPack | undefined
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
  return {
    find: (home, epoch, wish) => {
      drop(home, epoch)
      return packs.get(`${home} ${wish}`)?.pack
    },
    keep: (home, epoch, wish, pack) => {
      const bytes = pack.chunks.reduce((sum, { byteLength }) => sum + byteLength, 0)
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
