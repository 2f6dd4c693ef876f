/** csb files on a home that is not the node's own: what is asked is asked of that home. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EXIT } from '@csb/core'
import { connect, exportToFile, importFromFile, type Client } from '@csb/node'
import { csb, csbStart, type Running } from './command.ts'

const parent = await mkdtemp(join(tmpdir(), 'csb-files-'))
const [alder, maple] = [join(parent, 'alder'), join(parent, 'maple')]
let running: Running
let client: Client
let home = ''

beforeAll(async () => {
  // a home of Ines, and a copy of it at Oda's
  await csb(['init', '--data', alder, '--name', 'alder', '--owner', 'Ines', '--unsealed'])
  const first = await csbStart(['--data', alder, '--port', '0'])
  const archive = join(parent, 'copy.csbar')
  const theirs = await connect(alder)
  await theirs.call('PUT', '/v1/files/file', { branch: 'runs/copy', path: 'a.md', text: 'a\n' })
  const { owner, ...state } = await theirs.call<{ home: string; owner: { did: string } }>('GET', '/v1/status')
  home = state.home
  await exportToFile(theirs, { file: archive, resume: false, onProgress: () => undefined })
  await first.stop()
  await csb(['init', '--data', maple, '--name', 'maple', '--owner', 'Oda', '--unsealed'])
  running = await csbStart(['--data', maple, '--port', '0'])
  client = await connect(maple)
  await importFromFile(client, archive, () => undefined)
  await client.call('POST', '/v1/trust', { did: owner.did, name: 'Aunt Ines' })
})
afterAll(async () => {
  await running.stop()
  await rm(parent, { recursive: true, force: true })
})

const at = async (args: readonly string[], input?: string): Promise<string> => {
  const { code, out, err } = await csb([...args, '--data', maple], input === undefined ? {} : { input })
  expect(err).toBe('')
  expect(code).toBe(EXIT.ok)
  return out
}
const there = (args: readonly string[], input?: string) => at(['files', ...args, '--home', 'Aunt Ines'], input)

test('L1.5 explain of what another node recorded leaves no line empty', async () => {
  const { items } = await client.call<{ items: { commit: string }[] }>(
    'GET',
    `/v1/files/log?branch=runs/copy&home=${home}`,
  )
  const words = await at(['explain', items[0]?.commit ?? ''])
  expect(words).toContain('imported evidence')
  expect(words).not.toContain('\n\n')
})

describe('a home that is kept for somebody else', () => {
  test('has notes that every command of notes works on, and the own home is not touched', async () => {
    const note = (args: readonly string[]) => at([...args, '--home', 'Aunt Ines'])
    const own = await client.call('GET', '/v1/memory')
    const [id = ''] = /mem_\w+/.exec(await note(['note', 'add', 'The mill stands still.'])) ?? []
    expect(await note(['note', 'list'])).toContain('The mill stands still.')
    expect(await note(['note', 'show', id])).toContain('The mill stands still.')
    await note(['note', 'rm', id])
    await note(['note', 'restore', id])
    const file = join(parent, 'plan.md')
    await writeFile(file, '# A plan\n\nMend the wheel.\n')
    await note(['import', file])
    expect(await note(['note', 'list'])).toContain('A plan')
    expect(await client.call('GET', '/v1/memory')).toEqual(own)
    // what is forgotten there is for its owner to say
    const asked = await csb(['forget', id, '--home', home.slice(0, 12), '--yes', '--data', maple])
    expect(asked.err).toContain('[GRANT_INVALID]')
    const { refs } = await client.call<{ refs: unknown[] }>('GET', `/v1/files/refs?home=${home}`)
    expect(refs.length).toBeGreaterThan(2)
  })

  test('is named by the name of its owner, its id, or the beginning of it', async () => {
    const [status, ls, cat, refs, none] = await Promise.all([
      at(['status']),
      there(['ls', 'runs/copy']),
      at(['files', 'cat', 'runs/copy', 'a.md', '--home', home]),
      at(['files', 'refs', '--home', home.slice(0, 12)]),
      csb(['files', 'refs', '--home', 'nobody', '--data', maple]),
    ])
    expect(status).toMatch(new RegExp(`copy +${home} of Aunt Ines`))
    expect(ls).toBe('a.md\n')
    expect(cat).toBe('a\n')
    expect(refs).toContain('runs/copy')
    expect(none.code).toBe(EXIT.missing)
  })

  test('is what every command works on, and the own home is not touched', async () => {
    const own = await client.call('GET', '/v1/files/refs')
    await there(['put', 'runs/copy', 'b.md'], 'b\n')
    await there(['branch', 'runs/more', 'runs/copy'])
    await there(['rm', 'runs/more', 'a.md'])
    const [diff, preview] = await Promise.all([
      there(['diff', 'runs/copy', 'runs/more']),
      there(['merge', 'runs/more', 'runs/copy', '--preview']),
      there(['snapshot', 'kept', 'runs/copy']),
    ])
    expect(diff).toContain('a.md')
    expect(preview).toContain('a.md')
    await there(['merge', 'runs/more', 'runs/copy'])
    const [recycle, log] = await Promise.all([there(['recycle']), there(['log', 'runs/copy'])])
    expect(recycle).toContain('a.md')
    expect(log).toContain('merge runs/more into runs/copy')
    await there(['restore', 'a.md', 'runs/copy'])
    await Promise.all([there(['branch', 'runs/more', '--remove']), there(['fsck']), there(['gc'])])
    expect(await there(['export', join(parent, 'again.csbar')])).toContain('again.csbar')
    const { refs } = await client.call<{ refs: { branch: string }[] }>('GET', `/v1/files/refs?home=${home}`)
    expect(refs.map(({ branch }) => branch)).toEqual(['main', 'memory', 'runs/copy', 'snapshots/kept'])
    expect(await client.call('GET', '/v1/files/refs')).toEqual(own)
  })
})
