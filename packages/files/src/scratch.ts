/** A transaction that writes nowhere: to learn which ids something would get, before anybody has agreed to it. */
import { fail, fromUtf8, utf8 } from '@csb/core'
import type { Transaction, View } from '@csb/store'

/** Reads see what was staged; ranges do not. What is staged is gone with the object. */
export function createScratch(view: View): Transaction {
  const staged = new Map<string, Uint8Array | null>()
  const get = (k: string): Uint8Array | undefined => {
    const value = staged.get(k)
    return value === undefined ? view.get(k) : (value ?? undefined)
  }
  return {
    get,
    getJson: <T>(k: string): T | undefined => {
      if (!staged.has(k)) return view.getJson<T>(k)
      const value = get(k)
      if (value === undefined) return undefined
      return JSON.parse(fromUtf8(value) ?? fail('OBJECT_DAMAGED', { key: k })) as T
    },
    has: (k) => get(k) !== undefined,
    missing: async (keys) => {
      const below = new Set(await view.missing(keys.filter((k) => !staged.has(k))))
      return keys.filter((k) => below.has(k) || staged.get(k) === null)
    },
    range: (options) => view.range(options),
    pages: (options) => view.pages(options),
    noteRead: (entry) => view.noteRead(entry),
    get reads() {
      return view.reads
    },
    put: (k, value) => {
      staged.set(k, value)
    },
    putJson: (k, value) => {
      staged.set(k, utf8(JSON.stringify(value)))
    },
    del: (k) => {
      staged.set(k, null)
    },
  }
}
