/** Object ids in raw bytes, each once, with numbers in order of arrival: a set of a million takes 50 MB, not 200. */
const FREE = -1
const FIRST = 1024

export type OidList = {
  readonly size: number
  /** @returns the number of the id, new or known */
  add(oid: Uint8Array, at?: number): number
  /** @returns the number, or -1 */
  find(oid: Uint8Array, at?: number): number
  /** the id of a number, hex */
  hex(number: number): string
  /** A list of its own with the ids of both, these first. */
  with(others: OidList): OidList
}

/** @param oidBytes 20 or 32 */
export function createOidList(oidBytes: number): OidList {
  let ids = Buffer.alloc(FIRST * oidBytes)
  let table = new Int32Array(FIRST * 2).fill(FREE)
  let size = 0

  const slotOf = (oid: Uint8Array, at: number): number => {
    const mask = table.length - 1
    let slot =
      ((oid[at] ?? 0) | ((oid[at + 1] ?? 0) << 8) | ((oid[at + 2] ?? 0) << 16) | ((oid[at + 3] ?? 0) << 24)) & mask
    for (;;) {
      const number = table[slot] ?? FREE
      if (number === FREE || isAt(number, oid, at)) return slot
      slot = (slot + 1) & mask
    }
  }
  const isAt = (number: number, oid: Uint8Array, at: number): boolean => {
    const start = number * oidBytes
    for (let i = 0; i < oidBytes; i++) if (ids[start + i] !== oid[at + i]) return false
    return true
  }
  const grow = (): void => {
    ids = Buffer.concat([ids, Buffer.alloc(ids.byteLength)])
    table = new Int32Array(table.length * 2).fill(FREE)
    for (let number = 0; number < size; number++) table[slotOf(ids, number * oidBytes)] = number
  }
  return {
    get size() {
      return size
    },
    add: (oid, at = 0) => {
      if ((size + 1) * oidBytes > ids.byteLength) grow()
      const slot = slotOf(oid, at)
      const known = table[slot] ?? FREE
      if (known !== FREE) return known
      ids.set(oid.subarray(at, at + oidBytes), size * oidBytes)
      table[slot] = size
      return size++
    },
    find: (oid, at = 0) => table[slotOf(oid, at)] ?? FREE,
    hex: (number) => ids.toString('hex', number * oidBytes, (number + 1) * oidBytes),
    with: (others) => {
      const both = createOidList(oidBytes)
      for (let number = 0; number < size; number++) both.add(ids, number * oidBytes)
      for (let number = 0; number < others.size; number++) both.add(Buffer.from(others.hex(number), 'hex'))
      return both
    },
  }
}
