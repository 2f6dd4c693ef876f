/** What another node's record says of a commit, once it came with a home. */
import { describe, expect, test } from 'vitest'
import { OWNER_PRIVATE, createKeyPair, fromUtf8 } from '@csb/core'
import { commitFiles, createHome } from '@csb/files'
import { eraseKeys, key, scanFiles, type Store } from '@csb/store'
import { appendRecord, checkEvidence, evidenceOf, explainCommit, importedThatMention, trust } from '@csb/authority'
import { NOW, agent, owner, testStore, thrownBy } from './cast.ts'

const NODE = createKeyPair()
const SOUND = { code: 'MALFORMED' }

/** A node that has made a commit, having read something; what its record says of it; and another node with that home. */
async function imported(reads = 1) {
  const first = await testStore()
  const { home, commit } = await first.transact((tx) => {
    const { id } = createHome(tx, { owner: owner.did, origin: NODE.did, now: NOW })
    const words = { author: { name: 'Ada', did: owner.did }, message: 'x', trailers: {}, now: NOW }
    const done = commitFiles(tx, {
      ...words,
      home: id,
      branch: 'runs/one',
      changes: [{ path: 'a', bytes: new Uint8Array([1]) }],
    })
    return { home: id, commit: done.commit }
  })
  await first.transact((tx) =>
    appendRecord(
      tx,
      {
        operation: 'files.write',
        outcome: 'done',
        actor: agent.did,
        door: 'http',
        run: 'run_1',
        lease: null,
        reads: Array.from({ length: reads }, (_, at) => ({
          home,
          path: `notes/zz-${at}.md`,
          oid: 'a'.repeat(64),
          label: OWNER_PRIVATE,
        })),
        effect: { note: 'mem_1700000000000_zz' },
        commit,
      },
      NOW,
    ),
  )
  const evidence = evidenceOf(first.view(), commit, NODE)
  if (evidence === undefined) throw new Error('there is no evidence')
  const second = await testStore()
  const put = (value: unknown, store: Store = second) =>
    store.transact((tx) => {
      if (!tx.has(key('home', home))) createHome(tx, { id: home, owner: owner.did, origin: NODE.did, now: NOW })
      tx.putJson(key('foreignRecord', home, commit), value)
    })
  await put(evidence)
  return { first, second, home, commit, evidence, put }
}

describe('evidence that came with a home', () => {
  test('L1.5 explains its commit as the other node would, marked as imported and by whom', async () => {
    const { first, second, home, commit } = await imported(3)
    const [there, here] = [
      await explainCommit(first.view(), commit),
      await explainCommit(second.view(), commit.slice(0, 9)),
    ]
    expect(there).toMatchObject({ imported: null, inclusion: { size: 1 } })
    expect(here).toEqual({
      ...there,
      imported: { home, node: { did: NODE.did, name: null }, signed: true },
      inclusion: null,
      settled: null,
    })
    expect(here.reads?.map(({ path }) => path)).toEqual(['notes/zz-0.md', 'notes/zz-1.md', 'notes/zz-2.md'])
    await second.transact((tx) => trust(tx, { did: NODE.did, name: 'old NAS', ceiling: 'request' }))
    expect((await explainCommit(second.view(), commit)).imported?.node.name).toBe('old NAS')
  })

  test('what the own record says of a commit comes first', async () => {
    const { first, put, commit, evidence } = await imported()
    await put(evidence, first)
    expect((await explainCommit(first.view(), commit)).imported).toBeNull()
  })

  test('of an erased payload only the header is told, and that is still signed', async () => {
    const { put, second, commit, evidence } = await imported()
    await put({ ...evidence, payload: null })
    const told = await explainCommit(second.view(), commit)
    expect(told).toMatchObject({ reads: null, effect: null, readCount: 1, operation: 'files.write' })
    expect(told.imported?.signed).toBe(true)
  })

  test('where it is not what that node signed, it says so', async () => {
    const { put, second, commit, evidence } = await imported()
    for (const change of [
      { header: { ...evidence.header, actor: owner.did } },
      { node: createKeyPair().did },
      { payload: { ...evidence.payload, effect: { note: 'another' } } },
      { signature: `ed25519:${'A'.repeat(86)}` },
    ]) {
      expect(thrownBy(() => checkEvidence({ ...evidence, ...change }, commit))).toMatchObject(SOUND)
      await put({ ...evidence, ...change })
      expect((await explainCommit(second.view(), commit)).imported?.signed).toBe(false)
    }
  })

  test('of another commit, of another form, or with reads that are none, it is refused or left out', async () => {
    const { put, second, commit, evidence } = await imported()
    expect(thrownBy(() => checkEvidence(evidence, 'f'.repeat(64)))).toMatchObject(SOUND)
    for (const value of [null, {}, { ...evidence, more: 1 }, { ...evidence, node: 5 }, { ...evidence, header: {} }])
      expect(thrownBy(() => checkEvidence(value, commit))).toMatchObject(SOUND)
    for (const reads of [5, [null], [{ home: 'x', label: 'y', files: [['a']] }], [{ home: 'x', label: 'y', at: 1 }]]) {
      await put({ ...evidence, payload: { ...evidence.payload, reads } })
      expect((await explainCommit(second.view(), commit)).reads).toEqual([])
    }
  })

  test('L3.4 goes with what is forgotten that it names', async () => {
    const { second, commit, home } = await imported()
    const words = ['mem_1700000000000_zz', 'nothing', 'notes/zz-0.md']
    const [found, ...others] = await importedThatMention(second.view(), words)
    expect(others).toEqual([])
    expect(found).toMatchObject({ key: key('foreignRecord', home, commit), words: [words[0], words[2]] })
    expect(await importedThatMention(second.view(), ['nothing'])).toEqual([])
    const marker = found?.bytes ?? new Uint8Array()
    expect(fromUtf8(marker)).toMatch(/^[\w-]{43}$/)
    expect(await scanFiles(second.directory, [marker])).not.toEqual([])
    expect(await eraseKeys(second, [found?.key ?? ''], [marker])).toMatchObject({ remains: [] })
    await expect(explainCommit(second.view(), commit)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })
})
