/** Two witnesses of one log compare what it showed them. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createKeyPair, until } from '@csb/core'
import { contradict, listContradictions, signCheckpoint, trust } from '@csb/authority'
import { startJobs, type Service } from '../src/index.ts'
import { compareWith } from '../src/witness/comparing.ts'
import { askWitness } from '../src/witness/witnessing.ts'
import { createHouse, type House } from './house.ts'
import { createNetwork } from './network.ts'

const { signal } = new AbortController()
const write = (house: House, content: string) =>
  house.owned('memory.create', { entry: { content, type: 'other', level: 'warm' } })
const contradictions = (house: House) => listContradictions(house.store.view())

/** Two witnesses that know each other, and a key that one log has, or two. */
async function stage() {
  const network = createNetwork()
  const key = createKeyPair()
  const owner = createKeyPair()
  const [left, right] = [await createHouse({ name: 'left', network }), await createHouse({ name: 'right', network })]
  for (const [house, others] of [
    [left, [right.key.did, key.did]],
    [right, [left.key.did, key.did]],
  ] as const)
    for (const did of others) await house.store.transact((tx) => trust(tx, { did, name: 'a peer', ceiling: 'request' }))
  /** a node with that key; the newest is the one that is reached */
  const logOf = async (name: string, entries: number): Promise<House> => {
    const house = await createHouse({ name, key, owner, network })
    for (let n = 0; n < entries; n++) await write(house, `${name} ${n}`)
    return house
  }
  return { network, left, right, key, logOf }
}

describe('L1.6 two witnesses compare', () => {
  test('L1.6 an honest log, whatever each of them has seen of it', async () => {
    const { left, right, logOf } = await stage()
    const log = await logOf('log', 2)
    await askWitness(log.parts, left.key.did, signal)
    for (let n = 0; n < 5; n++) await write(log, `more ${n}`)
    await askWitness(log.parts, right.key.did, signal)
    expect(await compareWith(left.parts, right.key.did, signal)).toEqual([])
    expect(await compareWith(right.parts, left.key.did, signal)).toEqual([])
    expect(await contradictions(left)).toEqual([])
    expect(await contradictions(right)).toEqual([])
  })

  test('L1.6 attack 36: a log that shows each of them another history of one size is convicted by two notes', async () => {
    const { left, right, key, logOf } = await stage()
    await askWitness((await logOf('one', 3)).parts, left.key.did, signal)
    await askWitness((await logOf('two', 3)).parts, right.key.did, signal)
    const [found] = await compareWith(left.parts, right.key.did, signal)
    expect(found).toMatchObject({ kind: 'same-size', origin: `${key.did}/record` })
    expect(contradict(found?.first ?? '', found?.second ?? '')).toBe(true)
    expect(await contradictions(left)).toHaveLength(1)
    expect((await left.records()).at(-1)).toMatchObject({
      operation: 'witness.compare',
      effect: { contradiction: 'same-size', witness: right.key.did },
    })
    // told once
    expect(await compareWith(left.parts, right.key.did, signal)).toEqual([])
    const { contradictions: shown } = await left.owned<{ contradictions: object[] }>('record.witnessed')
    expect(shown).toHaveLength(1)
  })

  test('L1.6 attack 36: of two sizes the log must show that one follows, and it can not', async () => {
    const { network, left, right, key, logOf } = await stage()
    await askWitness((await logOf('one', 3)).parts, left.key.did, signal)
    const two = await logOf('two', 6)
    await askWitness(two.parts, right.key.did, signal)
    network.away.add(key.did)
    const before = await left.dump(() => false)
    expect(await compareWith(left.parts, right.key.did, signal)).toEqual([])
    // who can not be asked is not blamed
    expect(await left.dump(() => false)).toEqual(before)
    network.away.delete(key.did)
    expect(await compareWith(left.parts, right.key.did, signal)).toMatchObject([{ kind: 'no-proof' }])
    expect(await compareWith(right.parts, left.key.did, signal)).toMatchObject([{ kind: 'no-proof' }])
  })

  test('L1.6 attack 37: a witness can make nothing up, and no log is named that is not common', async () => {
    const { network, left, right, key, logOf } = await stage()
    const log = await logOf('log', 3)
    await askWitness(log.parts, left.key.did, signal)
    const liar = createKeyPair()
    const forged = signCheckpoint(0, { size: 4, root: 'ab'.repeat(32) }, liar)
    for (const known of [
      [forged],
      [forged.replaceAll(liar.did, key.did)],
      ['anything'],
      [signCheckpoint(0, { size: 4, root: 'ab'.repeat(32) }, right.key)],
    ]) {
      network.join(liar.did, saying({ known }))
      expect(await compareWith(left.parts, liar.did, signal)).toEqual([])
    }
    network.join(liar.did, saying({ status: 200, body: '' }))
    expect(await compareWith(left.parts, liar.did, signal)).toEqual([])
    expect(await contradictions(left)).toEqual([])
    const heard = network.heard.length
    // right stands witness for nothing yet
    expect(await compareWith(left.parts, right.key.did, signal)).toEqual([])
    expect(
      network.heard
        .slice(heard)
        .map(({ text }) => text)
        .join(''),
    ).not.toContain(key.did)
    await expect(
      compareWith((await createHouse({ network })).parts, left.key.did, signal),
      'with nothing to compare nobody is asked',
    ).resolves.toEqual([])
  })

  test('L1.6 strangers are not answered what is known; a proof of its own record a node gives to whoever asks', async () => {
    const { network, left, logOf } = await stage()
    const log = await logOf('log', 3)
    await askWitness(log.parts, left.key.did, signal)
    const stranger = await createHouse({ network })
    const ask = async (house: House, message: unknown) => {
      const port = await stranger.parts.peers.session(house.key.did, 'witness', {}, { signal })
      await port.send(message)
      return port.receive()
    }
    const before = await left.dump()
    for (const message of [{ compare: ['0'.repeat(64)] }, { add_checkpoint: 'old 0' }, 'hello', { known: [] }])
      await expect(ask(left, message)).rejects.toMatchObject({ code: 'DENIED' })
    expect(await left.dump()).toEqual(before)
    expect(await ask(log, { prove: { from: 1, to: 2 } })).toMatchObject({ number: 0, proof: [expect.any(String)] })
    for (const prove of [
      { from: 2, to: 1 },
      { from: 1, to: 99 },
    ])
      expect(await ask(log, { prove })).toEqual({ number: 0, proof: null })
    await expect(ask(log, { prove: { from: -1, to: 2 } })).rejects.toMatchObject({ code: 'MALFORMED' })
  })

  test('L1.6 they do so by themselves when they know something new', async () => {
    const { network, left, right, logOf } = await stage()
    await askWitness((await logOf('one', 3)).parts, left.key.did, signal)
    await askWitness((await logOf('two', 3)).parts, right.key.did, signal)
    const jobs = await startJobs(left.parts, left.service)
    onTestFinished(() => jobs.stop())
    // it is there: that is when it is asked
    network.back(right.key.did)
    await until(async () => (await contradictions(left)).length > 0, 30_000, 'the two histories are found')
  })
})

/** A peer that answers in the same way whatever it is asked. */
const saying = (answer: unknown): Service =>
  ({
    attend: async (_caller, _operation, _input, port) => {
      await port.receive()
      await port.send(answer)
      await port.close()
    },
  }) as Service
