import { existsSync } from 'node:fs'
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { listNotes } from '../src/read.ts'
import { rebuildIndex } from '../src/states.ts'
import { readTranscript } from '../src/transcript.ts'
import { createNotes, type NoteInput } from '../src/write.ts'
import { DID, openHome, OWNER, words } from './support.ts'

const LOCOMO = join(import.meta.dirname, '../../../../shared/data/locomo10.json')

async function fileOf(content: string | Uint8Array): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'csb-chat-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const file = join(directory, 'chat.json')
  await writeFile(file, content)
  await utimes(file, 1_700_000_000, 1_700_000_000)
  return file
}

const read = async (value: unknown) => Array.fromAsync(readTranscript(await fileOf(JSON.stringify(value))))
const entriesOf = async (value: unknown) =>
  (await read(value)).flatMap((item) => (item.kind === 'note' ? [item.input.entry] : []))

const SESSIONS = {
  sample_id: 'conv-1',
  conversation: {
    speaker_a: 'Ann',
    session_10: [{ speaker: 'Bo', dia_id: 'D10:1', text: 'Later.' }],
    session_10_date_time: '12:05 am on 9 June, 2023',
    session_2: [
      { speaker: 'Ann', dia_id: 'D2:1', text: 'Hi' },
      { speaker: 'Bo', dia_id: 'D2:2', text: 'Look', img_url: ['http://x/y.png'], blip_caption: 'a cat' },
    ],
    session_2_date_time: '1:56 pm on 8 May, 2023',
  },
}

describe('a transcript', () => {
  test('in sessions: turns in order, with speaker, place and time', async () => {
    const may = Date.UTC(2023, 4, 8, 13, 56)
    const items = await read([SESSIONS])
    expect(items.map((item) => item.path)).toEqual([
      'chat.json#conv-1/D2:1',
      'chat.json#conv-1/D2:2',
      'chat.json#conv-1/D10:1',
    ])
    expect(items.map((item) => item.kind === 'note' && item.input)).toMatchObject([
      {
        entry: {
          content: 'Ann: Hi',
          timestamp: may,
          type: 'event',
          source: 'session',
          metadata: { conversation: 'conv-1', turn: 'D2:1', speaker: 'Ann' },
        },
      },
      {
        entry: { content: 'Bo: Look\n[image: a cat]', timestamp: may + 1 },
        extra: { session: 2, img_url: ['http://x/y.png'], blip_caption: 'a cat' },
      },
      { entry: { content: 'Bo: Later.', timestamp: Date.UTC(2023, 5, 9, 0, 5) } },
    ])
  })

  test.each([
    [
      'a list of messages',
      [
        { role: 'user', content: 'Hi', timestamp: 1_700_000_100 },
        {
          role: 'assistant',
          content: [{ type: 'text', text: 'Hello' }, { type: 'image' }],
          timestamp: '2023-11-14T22:15:01Z',
        },
      ],
    ],
    [
      'messages in an object',
      {
        messages: [
          { role: 'user', content: 'Hi', timestamp: 1_700_000_100_000 },
          { role: 'assistant', content: 'Hello', create_time: 1_700_000_101.5 },
        ],
      },
    ],
    [
      'conversations with chat_messages',
      [
        {
          uuid: 'u',
          chat_messages: [
            { sender: 'user', text: 'Hi', created_at: '2023-11-14T22:15:00.000Z' },
            { sender: 'assistant', text: 'Hello', created_at: '2023-11-14T22:15:01Z' },
          ],
        },
      ],
    ],
  ])('as %s', async (_, value) => {
    expect((await entriesOf(value)).map(({ content, timestamp }) => [content, timestamp])).toEqual([
      ['user: Hi', 1_700_000_100_000],
      ['assistant: Hello', 1_700_000_101_000],
    ])
  })

  test('without times bears the time of its file, and its order', async () => {
    const entries = await entriesOf([
      { role: 'user', content: 'b' },
      { role: 'user', content: 'a' },
    ])
    expect(entries.map(({ content, timestamp }) => [content, timestamp])).toEqual([
      ['user: b', 1_700_000_000_000],
      ['user: a', 1_700_000_000_001],
    ])
  })

  test('a long turn becomes linked parts, an empty one is skipped', async () => {
    const items = await read([
      { role: 'user', content: 'word '.repeat(1000) },
      { role: 'user', content: ' ' },
    ])
    expect(items.map(({ kind }) => kind)).toEqual(['note', 'note', 'note', 'skipped'])
  })

  test.each([
    ['no JSON', 'Ann: Hi'],
    ['an empty list', '[]'],
    ['one message alone', '{"role":"user","content":"x"}'],
    ['another form', '{"mapping":{}}'],
    ['a mixed list', '[{"role":"user","content":"x"},{"foo":1}]'],
    ['equal keys', '{"messages":[],"messages":[]}'],
    ['bytes that are no text', Uint8Array.of(0xff)],
  ])('%s is MALFORMED', async (_, content) => {
    await expect(Array.fromAsync(readTranscript(await fileOf(content)))).rejects.toMatchObject({ code: 'MALFORMED' })
  })

  test('that is not there is NOT_FOUND', async () => {
    await expect(Array.fromAsync(readTranscript('/nowhere.json'))).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })
})

test('ten long conversations are taken in, found, rebuilt, and not taken in twice', async (context) => {
  if (!existsSync(LOCOMO)) context.skip('shared/data/locomo10.json is absent')
  const { store, home } = await openHome()
  const inputs: NoteInput[] = []
  for await (const item of readTranscript(LOCOMO)) {
    if (item.kind === 'note') inputs.push(item.input)
  }
  expect(inputs).toHaveLength(5882)
  const takeIn = async () => {
    let made = 0
    for (let at = 0; at < inputs.length; at += 1000) {
      const { notes, warnings } = await store.transact((tx) =>
        createNotes(tx, { ...words, home, actor: DID, existing: 'keep', inputs: inputs.slice(at, at + 1000) }),
      )
      expect(warnings.flat()).toEqual([])
      made += notes.length
    }
    return made
  }
  expect(await takeIn()).toBe(5882)
  expect(await takeIn()).toBe(0)
  const pageOf = () => listNotes(store.view(), home, { limit: 200, type: 'event', clearance: OWNER })
  const page = await pageOf()
  expect(page.items).toHaveLength(200)
  expect(await store.transact((tx) => rebuildIndex(tx, home))).toBe(5882)
  expect(await pageOf()).toEqual(page)
})
