import { afterAll, describe, expect, test } from 'vitest'
import { TopicValidatorResult, type Message } from '@libp2p/gossipsub'
import { peerIdFromString } from '@libp2p/peer-id'
import { LIMITS, canonicalize, createFakeClock, createKeyPair, until, utf8, type KeyPair } from '@csb/core'
import { createJudge } from '../src/announce.ts'
import { createDirectory, offers } from '../src/directory.ts'
import { createBook, recordOf, startNode, stopAll } from './rig.ts'

afterAll(stopAll)

function messageFrom(author: KeyPair, content: unknown, seqno: bigint): Message {
  const from = peerIdFromString(author.peerId)
  return {
    type: 'signed',
    from,
    topic: 'csb/announce/1',
    data: typeof content === 'string' ? utf8(content) : utf8(canonicalize(content)),
    sequenceNumber: seqno,
    signature: new Uint8Array(64),
    key: from.publicKey,
  } as Message
}

function bench() {
  const clock = createFakeClock(Date.now())
  const directory = createDirectory(clock)
  const book = createBook(clock)
  const judge = createJudge(book, directory, clock)
  return { clock, directory, judge: (message: Message) => judge(peerIdFromString(createKeyPair().peerId), message) }
}

const { Accept, Ignore, Reject } = TopicValidatorResult

describe('judging announcements', () => {
  test('a record of its own author is accepted and stands in the directory', async () => {
    const { judge, directory } = bench()
    const author = createKeyPair()
    const record = recordOf(author)
    expect(await judge(messageFrom(author, record, 1n))).toBe(Accept)
    expect(directory.get(author.did)).toEqual(record)
    expect(directory.offering('math.solve', 5)).toEqual([record])
  })

  test('a record that somebody else announces is ignored', async () => {
    const { judge, directory } = bench()
    const author = createKeyPair()
    expect(await judge(messageFrom(createKeyPair(), recordOf(author), 1n))).toBe(Ignore)
    expect(directory.get(author.did)).toBeUndefined()
  })

  test('what is malformed, oversize, unsigned or wrongly signed is rejected', async () => {
    const { judge } = bench()
    const author = createKeyPair()
    const record = recordOf(author)
    expect(await judge(messageFrom(author, '{"did":', 1n))).toBe(Reject)
    expect(await judge(messageFrom(author, { ...record, extra: 1 }, 2n))).toBe(Reject)
    expect(await judge(messageFrom(author, { ...record, name: 'forged' }, 3n))).toBe(Reject)
    expect(await judge(messageFrom(author, { ...record, name: 'x'.repeat(LIMITS.agentRecordBytes) }, 4n))).toBe(Reject)
    expect(await judge({ type: 'unsigned', topic: 'csb/announce/1', data: utf8('x') })).toBe(Reject)
  })

  test('a replayed message, an older record and an expired one are ignored', async () => {
    const { judge, clock, directory } = bench()
    const author = createKeyPair()
    const [first, second] = [recordOf(author, { seq: 1 }), recordOf(author, { seq: 2 })]
    expect(await judge(messageFrom(author, second, 5n))).toBe(Accept)
    expect(await judge(messageFrom(author, second, 5n))).toBe(Ignore)
    expect(await judge(messageFrom(author, second, 4n))).toBe(Ignore)
    expect(await judge(messageFrom(author, first, 6n))).toBe(Ignore)
    expect(directory.get(author.did)?.seq).toBe(2)
    expect(await judge(messageFrom(author, second, 7n))).toBe(Accept)
    // the clock stands, and a slow machine issued the record some time after it was set
    clock.set(second.expires_at)
    expect(await judge(messageFrom(author, second, 8n))).toBe(Ignore)
    expect(directory.get(author.did)).toBeUndefined()
  })

  test('an author that announces too often is not passed on', async () => {
    const { judge, clock } = bench()
    const author = createKeyPair()
    let accepted = 0
    for (let n = 1; n <= 20; n++) {
      if ((await judge(messageFrom(author, recordOf(author, { seq: n }), BigInt(n)))) === Accept) accepted++
    }
    expect(accepted).toBe(LIMITS.announcesPerMinute)
    clock.advance(10_000)
    expect(await judge(messageFrom(author, recordOf(author, { seq: 30 }), 30n))).toBe(Accept)
  })

  test('a directory keeps the newest of a did, forgets the longest unheard, and lists no withdrawn one', () => {
    const directory = createDirectory(createFakeClock(Date.now()), 2)
    const [a, b, c] = [createKeyPair(), createKeyPair(), createKeyPair()]
    directory.keep(recordOf(a, { seq: 2 }))
    directory.keep(recordOf(a, { seq: 1 }))
    expect(directory.get(a.did)?.seq).toBe(2)
    directory.keep(recordOf(b))
    directory.keep(recordOf(c, { withdrawn: true }))
    expect(directory.get(a.did)).toBeUndefined()
    expect(directory.offering('math.solve', 5).map(({ did }) => did)).toEqual([b.did])
    expect(offers(recordOf(c, { withdrawn: true }), 'math.solve')).toBe(false)
  })
})

describe('announcing', () => {
  test('an announcement passes through a node in between, and who heard it needs no lookup', async () => {
    const [left, middle, right] = [await startNode(), await startNode(), await startNode()]
    await left.wire.peers.dial(middle.address())
    await right.wire.peers.dial(middle.address())
    const record = recordOf(left.key, { capabilities: ['chess'] })
    await left.wire.peers.publish(record)
    await until(() => right.book.highest(left.wire.did) !== undefined, 30_000, 'the record is heard')
    await left.stop()
    await middle.stop()
    // nobody is left to ask
    expect(await right.wire.peers.findRecord(left.wire.did)).toEqual(record)
    expect(await right.wire.peers.findProviders('chess', 1)).toEqual([record])
  })
})
