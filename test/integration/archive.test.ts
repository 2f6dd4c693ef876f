import { mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createNodes, type LocalNode } from '../conformance/nodes.ts'

const nodes = createNodes()
let folder = ''
let one: LocalNode
let two: LocalNode

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'csb-archive-'))
  one = await nodes.spawn({ name: 'One' })
  two = await nodes.spawn({ name: 'Two' })
  await one.door.write('runs/one', 'large.txt', 'a line of a large file\n'.repeat(60_000))
  await one.door.remember('a note that goes along')
})

afterAll(async () => {
  await nodes.close()
  await rm(folder, { recursive: true, force: true })
})

const missing = async (file: string): Promise<boolean> =>
  stat(file).then(
    () => false,
    () => true,
  )

describe('csb files export and import', () => {
  test('L0.4 a file that broke off is resumed to the bytes it would have had, and comes in elsewhere', async () => {
    const whole = join(folder, 'whole.csbar')
    const told = JSON.parse(await one.command('files', 'export', whole)) as { bytes: number; resumedAt: number }
    const bytes = await readFile(whole)
    expect(told).toMatchObject({ bytes: bytes.byteLength, resumedAt: 0 })
    expect((await stat(whole)).mode & 0o077).toBe(0)

    const broken = join(folder, 'broken.csbar')
    const { tag } = await one.door.exportHome()
    await writeFile(`${broken}.part`, bytes)
    await truncate(`${broken}.part`, 700_001)
    await writeFile(`${broken}.part.id`, `${tag}\n`)
    const resumed = JSON.parse(await one.command('files', 'export', broken, '--resume')) as { resumedAt: number }
    expect(resumed.resumedAt).toBe(700_001)
    expect(bytes.equals(await readFile(broken))).toBe(true)
    expect(await missing(`${broken}.part`)).toBe(true)

    const taken = JSON.parse(await two.command('files', 'import', broken)) as { home: string }
    const again = join(folder, 'again.csbar')
    await two.command('files', 'export', again, '--home', taken.home)
    expect(bytes.equals(await readFile(again))).toBe(true)
    await expect(two.command('files', 'import', broken)).rejects.toMatchObject({ code: 2 })
    // what the record of the first says of a commit is told by the second, marked as the first one's word
    const log = await one.door.call<{ items: { commit: string }[] }>('GET', '/v1/files/log?branch=runs/one')
    const commit = log.body.items[0]?.commit ?? ''
    const [there, here] = [one, two].map(async (node) => JSON.parse(await node.command('explain', commit)) as object)
    expect(await there).toMatchObject({ operation: 'files.write', imported: null })
    expect(await here).toMatchObject({
      operation: 'files.write',
      imported: { home: taken.home, signed: true },
      inclusion: null,
    })
    await expect(one.command('files', 'export', whole)).rejects.toMatchObject({ code: 2 })
    expect((await two.door.verifyRecord()).status).toBe(200)
  })

  test('what is left of an export that is no more is begun anew', async () => {
    const file = join(folder, 'anew.csbar')
    await writeFile(`${file}.part`, 'left over from another time')
    await writeFile(`${file}.part.id`, `"${'f'.repeat(64)}"\n`)
    const done = JSON.parse(await one.command('files', 'export', file, '--resume')) as { resumedAt: number }
    expect(done.resumedAt).toBe(0)
    expect((await readFile(file)).equals((await one.door.exportHome()).bytes)).toBe(true)
  })

  test('L1.1 only a lease that reaches everything takes a home out, and only the owner takes one in', async () => {
    const narrow = ['--actions', 'read,list,write', '--level', 'private', '--branches', '*', '--paths', '/']
    const { token } = JSON.parse(await one.command('lease', '--for', 'Agent', ...narrow)) as { token: string }
    const agent = one.door.as(token)
    expect((await agent.exportHome()).status).toBe(403)
    expect((await one.door.as(null).exportHome()).status).toBe(401)
    const archive = (await two.door.exportHome()).bytes
    expect(await agent.importHome(archive)).toMatchObject({ status: 403, body: { code: 'SCOPE_EXCEEDED' } })
    expect((await one.door.as(null).importHome(archive)).status).toBe(401)
    const refusals = (await one.door.record()).filter(({ header }) => header.outcome === 'refused')
    expect(refusals.map(({ header }) => header.operation)).toEqual(
      expect.arrayContaining(['files.export', 'files.import']),
    )
  })

  test('an archive is taken as bytes and as nothing else', async () => {
    const answer = await fetch(`${one.door.url}/v1/files/import`, {
      method: 'POST',
      headers: { 'content-type': 'text/plain' },
      body: 'csb-archive 1.0\n',
    })
    expect(answer.status).toBe(415)
  })
})
