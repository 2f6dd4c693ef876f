import assert from 'node:assert/strict'
import type { Acceptance } from './acceptance.ts'

export const L2: readonly Acceptance[] = [
  {
    clause: 'L2.2',
    title: 'a note is a Markdown file that the files of the home show',
    run: async ({ node }) => {
      const content = 'The kettle is descaled with vinegar.'
      const note = await node.remember(content)
      const entry = (await node.list('memory')).find(({ path }) => path.endsWith(`/${note.id}.md`))
      assert.ok(entry, 'no file of that note')
      const { text } = (await node.read('memory', entry.path)).body
      assert.ok(text.startsWith('---\n'), 'no front matter')
      assert.ok(text.includes(note.id) && text.includes('discovery'), 'the front matter does not name the note')
      assert.equal(text.slice(text.indexOf('\n---\n') + '\n---\n'.length).trim(), content)
    },
  },
]
