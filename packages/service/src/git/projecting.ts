/**
 * Long histories are projected behind the back of who asks by REST: it is told no ids until that is done. One at a time
 * for each reader and branch; in memory only, since whoever asks again after a restart begins it again.
 */

export type Projecting = {
  /** Begin, unless the same is under way. @param work that may fail: whoever asks next begins it again */
  begin(name: string, work: () => Promise<unknown>): void
}

export function createProjecting(): Projecting {
  const open = new Set<string>()
  return {
    begin: (name, work) => {
      if (open.has(name)) return
      open.add(name)
      void work()
        .catch(() => undefined)
        .finally(() => open.delete(name))
    },
  }
}
