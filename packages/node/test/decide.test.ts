/** What the command signs is what the person named, whatever the node at the other end shows. */
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { isNodeError, systemClock } from '@csb/core'
import { connect, createClient, type Client } from '../src/client.ts'
import { askToForget, decideCard, forgetNotes, reviewCard, type Review } from '../src/decide.ts'
import { readJson, writeJson } from '../src/data-folder.ts'
import { openOwner } from '../src/owner.ts'
import { rotateOwner } from '../src/rotate.ts'
import { createFolder, made, started } from './folder.ts'

async function running() {
  const directory = await createFolder()
  await made(directory, { ownerName: 'Ines' })
  await started(directory)
  const client = await connect(directory)
  const desk = { directory, client, owner: await openOwner(directory, undefined), now: systemClock.now() }
  const remember = async (content: string) =>
    (await client.call<{ id: string }>('POST', '/v1/memory', { entry: { content, level: 'warm', type: 'lesson' } })).id
  return { desk, client, remember }
}

/** A node that answers whatever is asked with one card. */
async function showing(review: Review): Promise<Client> {
  const server = createServer((request, response) => {
    const isAsking = request.method === 'POST'
    const problem = { code: 'GATE_REQUIRED', details: { card: review.card.id }, status: 403, title: 'x' }
    response.writeHead(isAsking ? 403 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(isAsking ? problem : { ...review, next_page: null }))
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return createClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 'token')
}

const cardOf = async (client: Client, ids: readonly string[], reason?: string): Promise<Review> => {
  const asked = { ids, ...(reason === undefined ? {} : { reason }) }
  const error = await client.call('POST', '/v1/memory/forget', asked).then(
    () => expect.unreachable('it was forgotten'),
    (thrown: unknown) => thrown,
  )
  if (!isNodeError(error, 'GATE_REQUIRED')) throw error
  return reviewCard(client, String(error.details['card']))
}

test('L1.7 a card about other notes, more notes, or another reason than were named is not approved', async () => {
  const { desk, client, remember } = await running()
  const [one, two] = [await remember('one'), await remember('two')]
  const wanted = { ids: [one], reason: 'asked to' }
  for (const review of [
    await cardOf(client, [two], 'asked to'),
    await cardOf(client, [one, two], 'asked to'),
    await cardOf(client, [one], 'something else'),
  ]) {
    const lying = { ...desk, client: await showing(review) }
    await expect(forgetNotes(lying, wanted)).rejects.toMatchObject({ code: 'GATE_STALE' })
  }
  // nor one of another home
  const own = await cardOf(client, [one], 'asked to')
  await expect(askToForget(await showing(own), { ...wanted, home: `home_${'a'.repeat(26)}` })).rejects.toMatchObject({
    code: 'GATE_STALE',
    details: { field: 'home' },
  })
  // nor one whose digest is of another card
  const honest = await cardOf(client, [one], 'asked to')
  const turned = { ...honest, card: { ...honest.card, risks: [] } }
  await expect(askToForget(await showing(turned), wanted)).rejects.toMatchObject({
    code: 'GATE_STALE',
    details: { field: 'card' },
  })
  await expect(client.call('GET', `/v1/memory/${one}`)).resolves.toMatchObject({ content: 'one' })

  await expect(forgetNotes(desk, wanted)).resolves.toMatchObject({ outcome: 'approved', forgotten: [one] })
  await expect(client.call('GET', `/v1/memory/${one}`)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await expect(client.call('GET', `/v1/memory/${two}`)).resolves.toMatchObject({ content: 'two' })
})

test('L1.7 who decides with another key than the card names is told of the change of keys, and not of somebody else', async () => {
  const { desk, client, remember } = await running()
  const note = await remember('one')
  const file = await readJson(desk.directory, 'owner')
  const before = await cardOf(client, [note])
  const deciding = { decision: 'approve', shownAt: desk.now } as const
  await rotateOwner(desk, { custody: 'unsealed', isStolen: false })
  const next = { ...desk, owner: await openOwner(desk.directory, undefined), now: systemClock.now() }
  await expect(decideCard(next, { ...deciding, review: before })).rejects.toMatchObject({
    code: 'GATE_STALE',
    details: { field: 'owner' },
  })
  const after = await cardOf(client, [note])
  // the files are from before the change
  await writeJson(desk.directory, 'owner', file)
  await expect(decideCard(desk, { ...deciding, review: after })).rejects.toMatchObject({
    code: 'GRANT_INVALID',
    details: { reason: 'key_elsewhere', key: desk.owner.did, to: next.owner.did },
  })
  await expect(decideCard(next, { ...deciding, review: after })).resolves.toMatchObject({ outcome: 'approved' })
})
