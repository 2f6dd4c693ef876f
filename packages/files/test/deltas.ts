/** A delta as git writes it, made the plainest way: copies of 16-byte blocks that are in the base, inserts of the rest. */
export function deltaOf(before: Uint8Array, after: Uint8Array): Buffer {
  const [base, target] = [Buffer.from(before), Buffer.from(after)]
  const out: Buffer[] = [numberOf(base.byteLength), numberOf(target.byteLength)]
  for (let at = 0; at < target.byteLength;) {
    const found = at + 16 <= target.byteLength ? base.indexOf(target.subarray(at, at + 16)) : -1
    if (found < 0) {
      out.push(Buffer.from([1, target[at] ?? 0]))
      at++
      continue
    }
    let length = 16
    while (length < 0xffff && found + length < base.byteLength && at + length < target.byteLength) {
      if (base[found + length] !== target[at + length]) break
      length++
    }
    const op = Buffer.alloc(7)
    op[0] = 0x80 | 0x0f | 0x30
    op.writeUInt32LE(found, 1)
    op.writeUInt16LE(length, 5)
    out.push(op)
    at += length
  }
  return Buffer.concat(out)
}

function numberOf(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80)
  return Buffer.from([...bytes, rest])
}
