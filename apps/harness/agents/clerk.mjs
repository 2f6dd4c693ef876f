#!/usr/bin/env node
// A small agent: JSON on stdin, JSON on stdout. It writes a report where its lease lets it, and answers otherwise.
import { text } from 'node:stream/consumers'

const input = JSON.parse(await text(process.stdin))
const asked = (input.message?.parts ?? []).map((part) => part.text ?? '').join('\n')
const titles = (input.files ?? []).map(
  (file) => file.text.split('\n').findLast((line) => line.trim() !== '') ?? file.path,
)
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`)

if (input.handoff !== undefined) {
  const report = ['# Summary', '', `Asked: ${asked}`, '', ...titles.map((title) => `- ${title}`), ''].join('\n')
  const path = `${input.handoff.paths[0].slice(1)}/summary.md`
  say({ result: { text: `summarised ${titles.length} notes`, files: [{ path, text: report }] } })
} else if (input.lease.actions.includes('write')) {
  say({ status: 'writing' })
  const report = `# Report\n\n${asked}\n`
  say({ result: { text: 'report written', files: [{ path: 'reports/report.md', text: report }] } })
} else {
  say({ result: { text: `noted, I was not given the right to act: ${asked}` } })
}
