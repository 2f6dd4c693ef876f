import fc from 'fast-check'
import { expect, test } from 'vitest'
import { joinLabels, parseLabel } from '@csb/core'
import { getRef, manifestDigest, readCommit, writeCommit, type Home } from '../src/index.ts'
import { commonAncestor } from '../src/common-ancestor.ts'
import { openRig, type Files, type Rig } from './merge-rig.ts'
import { NOW, WORDS, openHome } from './open-home.ts'
import type { Store } from '@csb/store'

const line = fc.constantFrom('one\n', 'two\n', 'three\n', 'four\n', '\0\n')
const content = fc.array(line, { maxLength: 6 }).map((lines) => lines.join(''))
const path = fc.constantFrom('a', 'b', 'c/d', 'c/e', 'c', 'f.md', 'g/h/i.md')
const isTree = (files: Files) => !('c' in files && ('c/d' in files || 'c/e' in files))
const files = fc.dictionary(path, content, { maxKeys: 5 }).filter(isTree)
/** Most files stay as they are: two trees made from one. */
const changed = (base: Files) =>
  fc
    .array(fc.tuple(path, fc.option(content)), { maxLength: 3 })
    .map((edits) => {
      const next: Record<string, string> = { ...base }
      for (const [at, now] of edits) {
        if (now === null) delete next[at]
        else next[at] = now
      }
      return next
    })
    .filter(isTree)
const three = files.chain((base) => fc.tuple(fc.constant(base), changed(base), changed(base)))

async function rounds(run: (rig: Rig, branch: (name: string) => string, home: Home, store: Store) => Promise<void>) {
  const { store, home } = await openHome()
  const rig = await openRig(store, home)
  await run(rig, (name) => `runs/${name}`, home, store)
}

/** Three branches of one base, new for each round. */
const createFork = (rig: Rig) => {
  let round = 0
  return async (base: Files, ours: Files, theirs: Files) => {
    const [left, right] = [`runs/${++round}/ours`, `runs/${round}/theirs`]
    const root = await rig.set(`runs/${round}/base`, base, [])
    await rig.set(left, ours, [root])
    await rig.set(right, theirs, [root])
    return { left, right }
  }
}

const linesIn = (trees: readonly Files[]) =>
  new Set(trees.flatMap((tree) => Object.values(tree).flatMap((text) => text.split('\n'))))
const contents = (tree: Files) => Object.values(tree).toSorted()

test('a branch merged with its equal is what both are', () =>
  rounds(async (rig) => {
    const fork = createFork(rig)
    await fc.assert(
      fc.asyncProperty(files, files, async (base, side) => {
        const { left, right } = await fork(base, side, side)
        const { conflicts, manifest } = (await rig.merge(right, left)).preview
        expect([conflicts, manifest]).toEqual([[], []])
        expect(rig.files(left)).toEqual(side)
      }),
      { numRuns: 60 },
    )
  }))

test('where only one side moved, the result is that side, whichever it is', () =>
  rounds(async (rig) => {
    const fork = createFork(rig)
    await fc.assert(
      fc.asyncProperty(three, async ([base, side]) => {
        const { left, right } = await fork(base, base, side)
        expect((await rig.merge(right, left)).preview.conflicts).toEqual([])
        expect(rig.files(left)).toEqual(side)
        const other = await fork(base, side, base)
        await rig.merge(other.right, other.left)
        expect(rig.files(other.left)).toEqual(side)
      }),
      { numRuns: 60 },
    )
  }))

test('which side is merged into which makes no difference but in the names of what is kept beside', () =>
  rounds(async (rig) => {
    const fork = createFork(rig)
    await fc.assert(
      fc.asyncProperty(three, async ([base, ours, theirs]) => {
        const one = await fork(base, ours, theirs)
        const two = await fork(base, theirs, ours)
        const first = (await rig.merge(one.right, one.left)).preview
        const second = (await rig.merge(two.right, two.left)).preview
        expect(contents(rig.files(one.left))).toEqual(contents(rig.files(two.left)))
        expect(first.conflicts.map(({ kind }) => kind).toSorted()).toEqual(
          second.conflicts.map(({ kind }) => kind).toSorted(),
        )
        if (first.conflicts.length === 0) expect(first.tree).toBe(second.tree)
      }),
      { numRuns: 120 },
    )
  }))

test('what a side added or changed is in the result, word for word where the sides stand against each other', () =>
  rounds(async (rig) => {
    const fork = createFork(rig)
    await fc.assert(
      fc.asyncProperty(three, async ([base, ours, theirs]) => {
        const { left, right } = await fork(base, ours, theirs)
        const { conflicts } = (await rig.merge(right, left)).preview
        const result = rig.files(left)
        const old = linesIn([base])
        const found = linesIn([result])
        for (const text of linesIn([ours, theirs])) if (!old.has(text)) expect(found.has(text)).toBe(true)
        for (const { kind, path: at, kept } of conflicts) {
          for (const name of kept) expect(result[name]).toBeDefined()
          if (kind !== 'content' && kind !== 'added') continue
          const both = [ours[at], theirs[at]]
          // a side that renamed the file has it under another name
          if (both.includes(undefined)) {
            const sides = [...Object.values(ours), ...Object.values(theirs)]
            for (const name of kept) expect(sides).toContain(result[name])
          } else {
            expect(kept.map((name) => result[name]).toSorted()).toEqual(both.toSorted())
          }
        }
      }),
      {
        numRuns: 120,
        // a file that one side changed and the other replaced by a folder of that name
        examples: [[[{ c: '\0\n' }, { 'c/e': '' }, { c: '' }]]],
      },
    )
  }))

test('any byte, name or mode that differs gives the manifest another digest', () =>
  rounds(async (rig) => {
    const fork = createFork(rig)
    await fc.assert(
      fc.asyncProperty(three, async ([base, one, two]) => {
        const first = await fork(base, base, one)
        const second = await fork(base, base, two)
        const [a, b] = [rig.preview(first.right, first.left), rig.preview(second.right, second.left)]
        expect(a.digest === b.digest).toBe(a.tree === b.tree)
        expect(manifestDigest(a.manifest)).toBe(a.digest)
        const paths = a.manifest.map((entry) => Buffer.from(entry.path))
        expect(paths).toEqual(paths.toSorted(Buffer.compare))
      }),
      { numRuns: 60 },
    )
  }))

test('the base of two heads is a common ancestor that no other common one is behind, also where clocks ran backwards', () =>
  rounds(async (_, __, home, store) => {
    const node = fc.record({ parents: fc.array(fc.nat(30), { maxLength: 2 }), at: fc.nat(20) })
    await fc.assert(
      fc.asyncProperty(fc.array(node, { minLength: 2, maxLength: 14 }), async (nodes) => {
        const parentsOf = new Map<string, string[]>()
        const ids = await store.transact((tx) => {
          const { tree } = readCommit(tx, home.id, getRef(tx, home.id, 'main')?.commit ?? '')
          const made: string[] = []
          for (const [index, { parents, at }] of nodes.entries()) {
            const own = [...new Set(parents.filter((parent) => parent < index))].map((parent) => made[parent] ?? '')
            const person = { ...WORDS.author, at: NOW + at * 1000 }
            const words = { author: person, committer: person, message: `${index}`, trailers: {} }
            const oid = writeCommit(tx, home.id, { tree, parents: own, ...words })
            parentsOf.set(oid, own)
            made.push(oid)
          }
          return made
        })
        const above = (oid: string): Set<string> =>
          new Set([oid, ...(parentsOf.get(oid) ?? []).flatMap((parent) => [...above(parent)])])
        const [a, b] = [ids.at(-1) ?? '', ids.at(-2) ?? '']
        const common = [...above(a).intersection(above(b))]
        const best = common.filter((oid) => !common.some((other) => other !== oid && above(other).has(oid)))
        const found = commonAncestor(store.view(), home.id, a, b)
        if (best.length === 0) expect(found).toBeUndefined()
        else expect(best).toContain(found)
        expect(commonAncestor(store.view(), home.id, b, a)).toBe(found)
      }),
      { numRuns: 200 },
    )
  }))

test('no merge lowers a label of the branch it goes into, nor of what it brings', () =>
  rounds(async (rig) => {
    const label = fc.constantFrom(
      'public:owner',
      'trusted:agent',
      'private:owner:health',
      'sealed:external',
      'nonsense',
      undefined,
    )
    let round = 0
    const step = fc.record({ path: fc.constantFrom('a', 'b/c', 'b/d'), text: fc.constantFrom('1', '2'), label })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 3 }), fc.array(step, { maxLength: 3 }), async (left, right) => {
        const [base, ours, theirs] = [`runs/${++round}/base`, `runs/${round}/ours`, `runs/${round}/theirs`]
        await rig.write(base, 'a', '0', 'trusted:owner')
        for (const [branch, steps] of [
          [ours, left],
          [theirs, right],
        ] as const) {
          await rig.write(branch, 'b/d', '0', undefined, base)
          for (const { path: at, text, label: given } of steps) await rig.write(branch, at, text, given, base)
        }
        const [before, other, then] = [rig.labels(ours), rig.labels(theirs), rig.files(theirs)]
        const old = rig.files(base)
        await rig.merge(theirs, ours)
        const [after, result] = [rig.labels(ours), rig.files(ours)]
        const joined = (...texts: (string | undefined)[]) =>
          joinLabels(texts.filter((text) => text !== undefined).map(parseLabel))
        for (const [at, now] of Object.entries(after)) {
          if (before[at] !== undefined) expect(joined(now, before[at])).toEqual(parseLabel(now))
          if (then[at] !== undefined && then[at] !== old[at] && then[at] === result[at])
            expect(joined(now, other[at])).toEqual(parseLabel(now))
        }
      }),
      { numRuns: 80 },
    )
  }))
