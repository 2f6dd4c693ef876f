import { expect, test } from 'vitest'
import { parseLabel } from '@csb/core'
import { setLabel } from '../src/index.ts'
import { openRig } from './merge-rig.ts'
import { WORDS, openHome } from './open-home.ts'

const TEXT = 'one\ntwo\nthree\nfour\nfive\n'

/** `runs/ours` and `runs/theirs`, both from `runs/base`, which holds one file. */
async function open(label?: string) {
  const { store, home } = await openHome()
  const rig = await openRig(store, home)
  await rig.write('runs/base', 'a.md', TEXT, label)
  for (const branch of ['runs/ours', 'runs/theirs']) await rig.write(branch, 'keep', '1', undefined, 'runs/base')
  const relabel = (branch: string, path: string, to: string) =>
    store.transact((tx) => setLabel(tx, { ...WORDS, home: home.id, branch, path, label: parseLabel(to) }))
  const merge = async () => {
    const { preview } = await rig.merge('runs/theirs', 'runs/ours')
    return { ...preview, labels: rig.labels('runs/ours') }
  }
  return { rig, relabel, merge }
}

test('L3.2 a label that the other branch lowered stays as it was', async () => {
  const { relabel, merge } = await open('private:owner:health')
  await relabel('runs/theirs', 'a.md', 'public:owner')
  const { labels, manifest } = await merge()
  expect(labels['a.md']).toBe('private:owner:health')
  expect(manifest).toEqual([])
})

test('L3.2 nor can the other branch lower what has no label of its own, by naming one', async () => {
  const { relabel, merge } = await open()
  await relabel('runs/theirs', 'a.md', 'public:owner')
  expect((await merge()).labels['a.md']).toBe('private:owner')
})

test('L3.2 a label that the other branch raised is raised, and the manifest says so', async () => {
  const { relabel, merge } = await open('public:owner')
  await relabel('runs/theirs', 'a.md', 'trusted:agent:work')
  const { labels, manifest } = await merge()
  expect(labels['a.md']).toBe('trusted:agent:work')
  expect(manifest.map(({ op, path, label_old, label_new }) => [op, path, label_old, label_new])).toEqual([
    ['change', '.csb/labels.json', 'private:owner', 'private:owner'],
    ['label', 'a.md', 'public:owner', 'trusted:agent:work'],
  ])
})

test('L3.2 both raised it: the labels are joined', async () => {
  const { relabel, merge } = await open('public:owner')
  await relabel('runs/ours', 'a.md', 'trusted:owner:work')
  await relabel('runs/theirs', 'a.md', 'private:agent:health')
  expect((await merge()).labels['a.md']).toBe('private:agent:health,work')
})

test('what the branch itself lowered stands, until bytes of the other come into it', async () => {
  const { rig, relabel, merge } = await open('private:owner')
  await relabel('runs/ours', 'a.md', 'public:owner')
  expect((await merge()).labels['a.md']).toBe('public:owner')
  await rig.write('runs/theirs', 'a.md', TEXT.replace('five', 'FIVE'))
  expect((await merge()).labels['a.md']).toBe('private:owner')
})

test('L3.2 a file that the other branch renamed keeps its label, whatever the new path says', async () => {
  const { rig, merge } = await open('private:owner:health')
  await rig.write('runs/theirs', 'a.md', null)
  await rig.write('runs/theirs', 'open.md', TEXT, 'public:owner')
  const { labels } = await merge()
  expect(labels['open.md']).toBe('private:owner:health')
  expect(labels['a.md']).toBeUndefined()
})

test('L3.2 what is kept beside bears the label it had', async () => {
  const { rig, merge } = await open('public:owner')
  await rig.write('runs/ours', 'a.md', 'ours\n')
  await rig.write('runs/theirs', 'a.md', 'theirs\n', 'sealed:agent')
  const { labels, conflicts } = await merge()
  expect(conflicts).toMatchObject([{ kind: 'content', path: 'a.md' }])
  expect(labels['a (from runs-theirs).md']).toBe('sealed:agent')
})

test('L3.2 a new file of the other branch bears its own label also below a folder that is open here', async () => {
  const { rig, relabel, merge } = await open()
  await rig.write('runs/ours', 'open/x.md', 'x\n')
  await relabel('runs/ours', 'open', 'public:owner')
  await rig.write('runs/theirs', 'open/y.md', 'y\n')
  expect((await merge()).labels).toMatchObject({ 'open/x.md': 'public:owner', 'open/y.md': 'private:owner' })
})

test('L3.2 a label that nobody can read is the most restrictive', async () => {
  const { rig, merge } = await open('public:owner')
  const files = { 'a.md': TEXT, keep: '1', '.csb/labels.json': '{"a.md":"publik"}' }
  await rig.set('runs/theirs', files)
  expect((await merge()).labels['a.md']).toBe('sealed:external')
})

test('L3.2 where the labels of a side can not be read at all, nothing is merged', async () => {
  const { rig, merge } = await open('public:owner')
  await rig.set('runs/theirs', { 'a.md': TEXT, '.csb/labels.json': 'no json' })
  await expect(merge()).rejects.toMatchObject({ code: 'OBJECT_DAMAGED', details: { path: '.csb/labels.json' } })
})

test('a branch that has moved nowhere takes the labels of the other byte for byte', async () => {
  const { rig, merge } = await open()
  await rig.write('runs/theirs', 'b.md', '1', 'trusted:agent')
  const { tree } = await merge()
  expect(tree).toBe(rig.preview('runs/ours', 'runs/theirs').tree)
  expect(rig.labels('runs/ours')).toEqual(rig.labels('runs/theirs'))
})
