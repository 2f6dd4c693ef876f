/** Which commits go to a client, against the plain truth: sets made by walking everything. */
import { describe, expect, test } from 'vitest'
import fc from 'fast-check'
import {
  commitFiles,
  eraseVersions,
  packBytes,
  packFor,
  planFetch,
  receivePack,
  writeBlob,
  writeCommit,
  writeTree,
  type FetchRequest,
} from '../src/index.ts'
import { NOW, WORDS, openHome, text } from './open-home.ts'
import { make } from './packs.ts'

/** A history of so many commits; each has one or two of those before it as parents. */
async function openHistory(shape: readonly (readonly [number, number])[]) {
  const { store, home } = await openHome()
  const commits: { oid: string; parents: string[] }[] = []
  await store.transact((tx) => {
    for (const [at, [one, two]] of shape.entries()) {
      const picked = [
        ...new Set(
          at === 0 ? [] : [commits[at - 1 - (one % Math.min(at, 3))], ...(two % 4 === 0 ? [commits[two % at]] : [])],
        ),
      ]
      const parents = picked.flatMap((commit) => (commit === undefined ? [] : commit.oid))
      const blob = writeBlob(tx, home.id, text(`file ${at}`))
      const tree = writeTree(tx, home.id, [{ mode: '100644', name: `f${at % 5}`, oid: blob }])
      const person = { ...WORDS.author, at: NOW + at * 1000 }
      const message = `commit ${at}`
      const oid = writeCommit(tx, home.id, { tree, parents, author: person, committer: person, message, trailers: {} })
      commits.push({ oid, parents })
    }
  })
  const behind = (tips: readonly string[], ends: readonly string[] = []): Set<string> => {
    const found = new Set<string>()
    const rest = [...tips]
    for (let oid = rest.pop(); oid !== undefined; oid = rest.pop()) {
      if (found.has(oid)) continue
      found.add(oid)
      if (!ends.includes(oid)) rest.push(...(commits.find((commit) => commit.oid === oid)?.parents ?? []))
    }
    return found
  }
  return { store, home, commits, behind }
}

const shapes = fc.array(fc.tuple(fc.nat(9), fc.nat(40)), { minLength: 2, maxLength: 24 })

describe('what a client gets', () => {
  test('everything it lacks, and of what it has at most a little', async () => {
    await fc.assert(
      fc.asyncProperty(shapes, fc.nat(23), fc.nat(23), async (shape, wantAt, haveAt) => {
        const { store, home, commits, behind } = await openHistory(shape)
        const want = commits[wantAt % commits.length]?.oid ?? ''
        const have = commits[haveAt % commits.length]?.oid ?? ''
        const plan = await planFetch(store.view(), home.id, { wants: [want], haves: [have], shallow: [] })
        const sent = new Set(plan.commits.map(({ oid }) => oid))
        const has = behind([have])
        for (const oid of behind([want])) if (!has.has(oid)) expect(sent.has(oid)).toBe(true)
        expect(sent.isSubsetOf(behind([want]))).toBe(true)
        expect(plan.shallow).toEqual([])
      }),
      { numRuns: 60 },
    )
  })

  test('a pack that begins with an earlier one holds what one made at once does, each object once', async () => {
    await fc.assert(
      fc.asyncProperty(shapes, fc.nat(23), fc.nat(23), async (shape, wantAt, startAt) => {
        const { store, home, commits, behind } = await openHistory(shape)
        const want = commits[wantAt % commits.length]?.oid ?? ''
        const before = [...behind([want])].at(startAt % behind([want]).size) ?? ''
        const ask = (wants: string[], haves: string[]) =>
          planFetch(store.view(), home.id, { wants, haves, shallow: [] })
        const options = { thin: false, includeTags: new Set<string>() }
        const earlier = await packFor(store.view(), home.id, await ask([before], []), options)
        const start = { oids: earlier.oids, entries: [...earlier.entries()] }
        const atOnce = await packFor(store.view(), home.id, await ask([want], []), options)
        const pack = await packFor(store.view(), home.id, await ask([want], [before]), { ...options, start })
        const namesIn = ({ oids }: typeof pack) => Array.from({ length: oids.size }, (_, number) => oids.hex(number))
        expect(namesIn(pack).sort()).toEqual(namesIn(atOnce).sort())
        const bytes = Buffer.concat([...packBytes('sha256', pack.oids.size, pack.entries())])
        const source = (async function* () {
          yield await Promise.resolve(bytes)
        })()
        const incoming = await receivePack(store, { home: home.id, source, standsAlone: true })
        await incoming.close()
        expect(incoming.count).toBe(atOnce.oids.size)
      }),
      { numRuns: 40 },
    )
  })

  test('of a depth: what lies so deep, the ends named, and what it has not sent again', async () => {
    await fc.assert(
      fc.asyncProperty(
        shapes,
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 8 }),
        async (shape, depth, deeper) => {
          const { store, home, commits, behind } = await openHistory(shape)
          const want = commits.at(-1)?.oid ?? ''
          const depthOf = (most: number) => {
            let level = [want]
            const found = new Set(level)
            for (let i = 1; i < most; i++) {
              level = level.flatMap((oid) => commits.find((commit) => commit.oid === oid)?.parents ?? [])
              for (const oid of level) found.add(oid)
            }
            return found
          }
          const ask = (request: Partial<FetchRequest>) =>
            planFetch(store.view(), home.id, { wants: [want], haves: [], shallow: [], ...request })
          const first = await ask({ depth })
          const has = new Set(first.commits.map(({ oid }) => oid))
          expect(has).toEqual(depthOf(depth))
          const open = (all: ReadonlySet<string>) =>
            commits
              .filter(({ oid, parents }) => all.has(oid) && parents.some((parent) => !all.has(parent)))
              .map(({ oid }) => oid)
          expect([...first.shallow].sort()).toEqual(open(has).sort())
          const next = await ask({ depth: depth + deeper, haves: [want], shallow: first.shallow })
          const all = new Set([...has, ...next.commits.map(({ oid }) => oid)])
          expect(all).toEqual(depthOf(depth + deeper))
          const ends = new Set([...first.shallow.filter((oid) => !next.unshallow.includes(oid)), ...next.shallow])
          expect([...ends].sort()).toEqual(open(all).sort())
          const whole = await ask({ depth: 2 ** 31 - 1, haves: [want], shallow: first.shallow })
          expect(new Set([...has, ...whole.commits.map(({ oid }) => oid)])).toEqual(behind([want]))
          expect(whole.shallow).toEqual([])
        },
      ),
      { numRuns: 60 },
    )
  })

  test('L3.4 partial: history begins behind what was forgotten, and the pack holds none of it', async () => {
    const { store, home } = await openHome()
    let now = NOW
    const commit = (path: string, content: string | null) =>
      store.transact((tx) =>
        commitFiles(tx, {
          ...WORDS,
          home: home.id,
          branch: 'runs/one',
          changes: [{ path, bytes: content === null ? null : text(content) }],
          now: (now += 1000),
        }),
      )
    const before = await commit('a', 'a')
    const held = await commit('secret', 'the secret')
    await commit('b', 'b')
    const gone = await commit('secret', null)
    const after = await commit('c', 'c')
    const ask = (request: Partial<FetchRequest> = {}) =>
      planFetch(store.view(), home.id, { wants: [after.commit], haves: [], shallow: [], ...request })
    expect((await ask()).commits).toHaveLength(6)
    await store.transact((tx) => eraseVersions(tx, home.id, ['secret']))
    const plan = await ask()
    expect(plan.commits.map(({ oid }) => oid)).toEqual([after.commit, gone.commit])
    expect(plan.shallow).toEqual([gone.commit])
    const pack = await packFor(store.view(), home.id, plan, { thin: false, includeTags: new Set<string>() })
    // two commits, a root tree each, and the blobs of a, b and c
    expect(pack.oids.size).toBe(7)
    expect([...packBytes('sha256', 7, pack.entries())].reduce((sum, { length }) => sum + length, 0)).toBeGreaterThan(
      100,
    )
    // who has only what is before it begins anew there
    const old = await ask({ haves: [before.commit] })
    expect(old.shallow).toEqual([gone.commit])
    await expect(
      planFetch(store.view(), home.id, { wants: [held.commit], haves: [], shallow: [] }),
    ).rejects.toMatchObject({ code: 'FORGOTTEN' })
    expect(make.blob('the secret').oid).toBe(held.changed[0]?.after)
  })
})
