import { describe, expect, test } from 'vitest'
import { failureText } from '../src/failure-text.ts'
import { handedText } from '../src/handed-text.ts'
import { t } from '../src/texts.ts'
import { titleOf } from '../src/title.ts'

describe('the title of a note', () => {
  test.each([
    ['The mill turns.', 'The mill turns.'],
    ['# Tea\r\nhot', 'Tea'],
    ['\r\n\r\n### Tea time\r\n', 'Tea time'],
    ['---\r\ntitle: [broken\r\n---\r\n# Tea\r\n', 'Tea'],
    ['---\nonly: front matter\n---\n', 'only: front matter'],
    ['---\nno end of it', 'no end of it'],
    ['#tag is no heading', '#tag is no heading'],
    ['', ''],
  ])('%j is %j', (content, title) => {
    expect(titleOf(content)).toBe(title)
  })

  test('is cut between characters', () => {
    expect(titleOf('🌸'.repeat(100))).toBe('🌸'.repeat(60))
  })
})

describe('a count', () => {
  test.each([
    [{ created: 1, kept: 1, skipped: 1 }, '1 note taken in, 1 was here already, 1 file skipped.'],
    [{ created: 0, kept: 11, skipped: 2 }, '0 notes taken in, 11 were here already, 2 files skipped.'],
  ])('%j is told in the singular for one alone', (counts, text) => {
    expect(t('import.done', counts)).toBe(text)
  })
})

describe('why a task failed', () => {
  test('says how the command ended, and the end of its stderr behind a bar', () => {
    const details = { exit: 3, reason: 'why', stderr: 'one\ntwo \u001B[2J\n' }
    expect(failureText({ 'urn:csb:ext:error:v1': { code: 'AGENT_FAILED', details } })).toEqual([
      '  exit  3',
      '  reason  why',
      '  what it wrote to stderr, at the end:',
      '  | one',
      '  | two \\u{1b}[2J',
    ])
  })

  test('says nothing where nothing was told', () => {
    expect(failureText()).toEqual([])
    expect(failureText({ 'urn:csb:ext:error:v1': { code: 'AGENT_FAILED' } })).toEqual([])
  })
})

describe('a handoff', () => {
  const done = { outcome: 'completed', text: 'Done.', withheld: ['mem_1', 'mem_2'] }

  test('of which every named note was withheld says so first', () => {
    expect(handedText(done, ['mem_1', 'mem_2'])).toMatch(/^NOTE: none of the notes/)
    expect(handedText(done, ['mem_1', 'mem_3'])).toMatch(/^completed: Done/)
    expect(handedText({ ...done, withheld: [] }, [])).toMatch(/^completed: Done/)
  })
})
