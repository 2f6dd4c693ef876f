import { mkdir, mkdtemp, rm, symlink, truncate, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { getRef, MEMORY } from '@csb/files'
import { expect, onTestFinished, test } from 'vitest'
import type { ImportItem } from '../src/import-item.ts'
import { getNote } from '../src/read.ts'
import { readVault } from '../src/vault.ts'
import { createNotes } from '../src/write.ts'
import { DID, openHome, OWNER, words } from './support.ts'

const MTIME_S = 1_700_000_000
const LONG = `# Long\r\n\r\n${Array.from({ length: 40 }, (_, at) => `Paragraph ${at} 🍵 about tea, ${'water '.repeat(20)}\n\n`).join('')}${'無'.repeat(5000)} see [[Tea]]\n`

const VAULT: Record<string, string | Uint8Array> = {
  'Tea.md': `---
aliases: [Chai, 茶]
tags: [drink, "#hot", ${'x'.repeat(40)}]
type: book
created: 2023-05-01
rating: 4.5
isbn: 00123
id: my-own
label: public
---
# Tea
Brew [[Water]] as [[日記/2024-01-02|that day]], see ![[pot.png]], [[Nowhere]] and [[tea]].
`,
  'Water.md': 'Back to [[chai]] and [the day](日記/2024-01-02.md#top) and [[Tea#Brewing|brewing]].\n',
  '日記/2024-01-02.md': '---\ndate: 2024-01-02\ntype: event\ntags: 日記, 冬\n---\n今日はお茶を飲んだ。[[Water]]\n',
  'Broken.md': '---\ntitle: [unclosed\n---\nThe body stays.\n',
  'Alias bomb.md': '---\na: &a [x]\nb: [*a, *a]\n---\nbody\n',
  'Long.md': LONG,
  'Only front matter.md': '---\nstatus: open\n---\n',
  'Proto.md': '---\n__proto__: {admin: true}\n---\nbody\n',
  'Inner proto.md': '---\na: [{__proto__: 1}]\n---\nbody\n',
  'Wide.md': `---\nx: [${'a,'.repeat(8000)}b]\n---\nbody\n`,
  'Bom.md': '\uFEFF---\nmood: calm\n---\nbody\n',
  'deep/er/Note.md': 'up to [[../../Tea]] and [[er/Note]]\n',
  'Empty.md': ' \n',
  'Latin.md': Uint8Array.of(0x63, 0x61, 0x66, 0xe9),
  'Nul.md': 'a\0b',
  'pot.png': Uint8Array.of(0x89, 0x50, 0x4e, 0x47),
  '.obsidian/app.json': '{}',
  '.trash/Gone.md': 'gone',
}

async function makeVault(): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), 'csb-vault-'))
  onTestFinished(() => rm(parent, { recursive: true, force: true }))
  const vault = join(parent, 'My Vault')
  for (const [path, content] of Object.entries(VAULT)) {
    await mkdir(dirname(join(vault, path)), { recursive: true })
    await writeFile(join(vault, path), content)
    await utimes(join(vault, path), MTIME_S, MTIME_S)
  }
  await writeFile(join(vault, 'Huge.md'), '')
  await truncate(join(vault, 'Huge.md'), 5 * 1024 * 1024)
  await symlink('/etc/hostname', join(vault, 'Secret.md'))
  return vault
}

const read = (vault: string) => Array.fromAsync(readVault(vault))

function notesAt(items: readonly ImportItem[], path: string) {
  const found = items.filter((item) => item.kind === 'note' && item.path === path)
  return found.map((item) => (item.kind === 'note' ? { ...item.input, warnings: item.warnings } : expect.fail()))
}

test('a vault is read as it is: text verbatim, front matter kept, links found', async () => {
  const items = await read(await makeVault())
  const [tea] = notesAt(items, 'Tea.md')
  const [water] = notesAt(items, 'Water.md')
  const [day] = notesAt(items, '日記/2024-01-02.md')
  expect(tea?.entry).toMatchObject({
    id: expect.stringMatching(/^mem_1682899200000_/) as string,
    type: 'other',
    source: 'user',
    timestamp: Date.UTC(2023, 4, 1),
    tags: ['drink', 'hot'],
    content: '# Tea\nBrew [[Water]] as [[日記/2024-01-02|that day]], see ![[pot.png]], [[Nowhere]] and [[tea]].\n',
    metadata: { origin: 'Tea.md', title: 'Tea' },
    links: [water, day].map((note) => ({ target_id: note?.entry.id, relation: 'relates_to' })),
  })
  expect(tea?.extra).toEqual({
    aliases: ['Chai', '茶'],
    tags: ['drink', '#hot', 'x'.repeat(40)],
    type: 'book',
    created: '2023-05-01',
    rating: 4.5,
    isbn: '00123',
    id: 'my-own',
    label: 'public',
  })
  expect(water?.entry).toMatchObject({
    timestamp: MTIME_S * 1000,
    links: [tea, day].map((note) => ({ target_id: note?.entry.id, relation: 'relates_to' })),
  })
  expect(day?.entry).toMatchObject({
    type: 'event',
    tags: ['日記', '冬'],
    timestamp: Date.UTC(2024, 0, 2),
    content: '今日はお茶を飲んだ。[[Water]]\n',
  })
  const [deep] = notesAt(items, 'deep/er/Note.md')
  expect(deep?.entry.links).toEqual([{ target_id: tea?.entry.id, relation: 'relates_to' }])
  expect(notesAt(items, 'Bom.md')[0]).toMatchObject({ entry: { content: 'body\n' }, extra: { mood: 'calm' } })
  expect(notesAt(items, 'Only front matter.md')[0]).toMatchObject({
    entry: { content: 'Only front matter' },
    extra: { status: 'open' },
  })
})

test.each(['Broken.md', 'Alias bomb.md', 'Proto.md', 'Inner proto.md', 'Wide.md'])(
  'front matter of %s that can not be kept as such stays in the text, with a warning',
  async (path) => {
    const [first, ...rest] = notesAt(await read(await makeVault()), path)
    expect([first, ...rest].map((note) => note?.entry.content).join('')).toBe(VAULT[path])
    expect(first?.warnings).toHaveLength(1)
    expect(first?.extra).toEqual({})
  },
)

test('what is not taken is named with its reason, and hidden folders are not even named', async () => {
  const skipped = (await read(await makeVault())).flatMap((item) =>
    item.kind === 'skipped' ? [[item.path, item.reason]] : [],
  )
  expect(Object.fromEntries(skipped)).toEqual({
    'Empty.md': 'empty',
    'Huge.md': 'too large',
    'Latin.md': 'not text in UTF-8',
    'Nul.md': 'not text in UTF-8',
    'Secret.md': 'not a file',
    'pot.png': 'not a Markdown note',
  })
})

test('a long note becomes parts that joined are its text, each linked to the one before', async () => {
  const parts = notesAt(await read(await makeVault()), 'Long.md').map(({ entry }) => entry)
  expect(parts.length).toBeGreaterThan(4)
  expect(parts.map(({ content }) => content).join('')).toBe(LONG)
  for (const [at, part] of parts.entries()) {
    expect(Array.from(part.content).length).toBeLessThanOrEqual(2048)
    expect(part.metadata).toMatchObject({ part: at + 1, parts: parts.length })
    expect(part.links?.[0]).toEqual(at === 0 ? undefined : { target_id: parts[at - 1]?.id, relation: 'extends' })
  }
  expect(parts[0]?.content.endsWith('\n\n')).toBe(true)
  expect(parts.at(-1)?.links).toHaveLength(2)
  expect(parts.map(({ id }) => id)).toEqual(parts.map(({ id }) => id).sort())
})

test('importing a vault twice makes no twins and no commit', async () => {
  const { store, home } = await openHome()
  const vault = await makeVault()
  const takeIn = async () => {
    const inputs = (await read(vault)).flatMap((item) => (item.kind === 'note' ? [item.input] : []))
    return store.transact((tx) => createNotes(tx, { ...words, home, actor: DID, existing: 'keep', inputs }))
  }
  const first = await takeIn()
  expect(first.kept).toEqual([])
  expect(first.warnings.flat()).toEqual([])
  const second = await takeIn()
  expect(second).toMatchObject({ commit: first.commit, notes: [], kept: first.notes.map(({ entry }) => entry.id) })
  expect(getRef(store.view(), home, MEMORY)?.commit).toBe(first.commit)

  const tea = first.notes.find(({ entry }) => entry.content.startsWith('# Tea'))
  const kept = getNote(store.view(), home, tea?.entry.id ?? '', OWNER)
  expect(kept).toMatchObject({
    label: { level: 'private' },
    entry: { aliases: ['Chai', '茶'], rating: 4.5 },
    extra: { type: 'book', id: 'my-own', label: 'public' },
  })
})

test('two vaults with a note of the same name and day have two notes', async () => {
  const [one] = await read(await makeVault())
  const other = join(await makeVault(), '..', 'Other')
  await mkdir(other)
  await writeFile(join(other, 'Tea.md'), VAULT['Tea.md'] ?? '')
  const [two] = await read(other)
  expect(one?.kind === 'note' && two?.kind === 'note' && one.input.entry.id !== two.input.entry.id).toBe(true)
})

test('a name is the same name in composed and decomposed spelling', async () => {
  const vault = join(await makeVault(), '..', 'Names')
  const idsWith = async (form: 'NFC' | 'NFD') => {
    await rm(vault, { recursive: true, force: true })
    await mkdir(vault)
    for (const [name, text] of [
      ['Caf\u00e9.md', 'coffee'],
      ['Link.md', 'to [[caf\u00e9]]'],
    ] as const) {
      await writeFile(join(vault, name.normalize(form)), text.normalize(form))
      await utimes(join(vault, name.normalize(form)), MTIME_S, MTIME_S)
    }
    const items = await read(vault)
    return items.map((item) => (item.kind === 'note' ? [item.input.entry.id, item.input.entry.links] : expect.fail()))
  }
  const composed = await idsWith('NFC')
  expect(composed[1]?.[1]).toEqual([{ target_id: composed[0]?.[0], relation: 'relates_to' }])
  expect(await idsWith('NFD')).toEqual(composed)
})

test('a folder that is not there is NOT_FOUND', async () => {
  await expect(read('/nowhere/at/all')).rejects.toMatchObject({ code: 'NOT_FOUND' })
})
