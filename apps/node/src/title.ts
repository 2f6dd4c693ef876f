/** What a note is called in a list. */

const TITLE_CHARS = 60

/** The first line that says something: front matter that was kept as text, fences and the marks of a heading do not. */
export function titleOf(content: string): string {
  const lines = content.split(/\r\n|\r|\n/).map((line) => line.trim())
  const end = lines[0] === '---' ? lines.indexOf('---', 1) : -1
  const says = (line: string) => line !== '' && !/^-{3,}$/.test(line)
  const line = lines.slice(end + 1).find(says) ?? lines.find(says) ?? ''
  return Array.from(line.replace(/^#{1,6}\s+/, ''))
    .slice(0, TITLE_CHARS)
    .join('')
}
