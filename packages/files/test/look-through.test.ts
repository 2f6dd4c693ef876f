/** What was looked through before is not walked again, and nothing is missed by that. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { commitFiles, findVersions, getRef, listRefs, lookThrough } from '../src/index.ts'
import { NOW, WORDS, openHome, text } from './open-home.ts'

const PATHS = ['a/one.md', 'a/two.md', 'b.md'] as const
const BRANCHES = ['runs/1', 'runs/2', 'memory'] as const

type Step = { readonly branch: string; readonly path: string; readonly words: string | null; readonly from: number }

const step: fc.Arbitrary<Step> = fc.record({
  branch: fc.constantFrom(...BRANCHES),
  path: fc.constantFrom(...PATHS),
  words: fc.option(fc.constantFrom('x', 'y', 'z', 'w'), { nil: null }),
  from: fc.nat(20),
})

test('L3.4 partial: versions that are found in two steps are those that are found in one', async () => {
  const { store, home } = await openHome()
  let now = NOW
  let round = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 6 }),
      fc.array(step, { maxLength: 6 }),
      async (first, then) => {
        const mark = round++
        const commits: string[] = []
        const play = async ({ branch, path, words, from }: Step) => {
          const name = branch === 'memory' ? branch : `${branch}-${mark}`
          const isNew = getRef(store.view(), home.id, name) === undefined
          const start = commits[from % Math.max(commits.length, 1)]
          const done = await store.transact((tx) =>
            commitFiles(tx, {
              ...WORDS,
              home: home.id,
              branch: name,
              // a branch may begin anywhere behind what was looked through
              ...(isNew && start !== undefined ? { from: start } : {}),
              changes: [{ path, bytes: words === null ? null : text(`${words} ${mark}`) }],
              now: (now += 1000),
            }),
          )
          commits.push(done.commit)
        }
        for (const one of first) await play(one)
        const looked = await lookThrough(store.view(), home.id, PATHS)
        for (const one of then) await play(one)
        const view = store.view()
        expect(await lookThrough(view, home.id, PATHS, looked)).toEqual(await lookThrough(view, home.id, PATHS))
        expect(await findVersions(view, home.id, PATHS, looked)).toEqual(await findVersions(view, home.id, PATHS))
      },
    ),
    { numRuns: 40 },
  )
  expect((await listRefs(store.view(), home.id)).length).toBeGreaterThan(10)
})

test('a path that was not looked for, and a branch that began far behind, are not missed', async () => {
  const { store, home } = await openHome()
  const commit = (branch: string, words: string, now: number, from?: string) =>
    store.transact((tx) =>
      commitFiles(tx, {
        ...WORDS,
        home: home.id,
        branch,
        ...(from === undefined ? {} : { from }),
        changes: [{ path: 'b.md', bytes: text(words) }],
        now,
      }),
    )
  const first = await commit('runs/1', 'one', NOW + 1)
  for (let n = 2; n < 6; n++) await commit('runs/1', `${n}`, NOW + n)
  const looked = await lookThrough(store.view(), home.id, ['b.md'])
  await commit('runs/2', 'late', NOW + 9, first.commit)
  const [found] = await findVersions(store.view(), home.id, ['b.md'], looked)
  expect((found?.oids.length ?? 0) + (found?.kept.length ?? 0)).toBe(6)
})
