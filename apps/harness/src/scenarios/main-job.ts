/**
 * The main job, whole: three nodes and a cloud client, from finding one another to handing work over. Every claim is
 * a row of the table at the end.
 */
import { fileURLToPath } from 'node:url'
import { access } from 'node:fs/promises'
import { resolve } from 'node:path'
import { fail, newId, systemClock } from '@csb/core'
import {
  callerDirectory,
  connectCloud,
  delegateTo,
  forgetNotes,
  importNotes,
  leaseFor,
  shareWith,
  type ImportReport,
} from '@csb/node'
import {
  addNote,
  codeOf,
  findProvider,
  inStep,
  message,
  noteOf,
  notesAt,
  send,
  short,
  tailOf,
  treeOf,
  verifyRecord,
} from '../asking.ts'
import type { Member } from '../cluster.ts'
import type { Scenario, Stage } from '../stage.ts'

const CLERK = fileURLToPath(new URL('../../agents/clerk.mjs', import.meta.url))
const SAMPLE = fileURLToPath(new URL('../../sample/vault', import.meta.url))
const SKILL = 'report.write'
/** One is forgotten, another handed over. */
const FEWEST = 2

type Explained = {
  readonly commit: string | null
  readonly run: string
  readonly lease: { readonly chain: readonly unknown[] } | null
  readonly basis: {
    readonly chain: readonly { readonly from: { readonly name: string; readonly did: string } }[]
  } | null
}

type Cast = { readonly nas: Member; readonly laptop: Member; readonly friend: Member; readonly gateway: Member }

export const mainJob: Scenario = {
  name: 'demo',
  about: 'the whole story: discovery, notes, authority, sync, forgetting, handoff, a cloud client, the record',
  run: async (stage) => {
    const { transcript, vault } = stage.options
    const source = resolve(callerDirectory(), transcript ?? vault ?? SAMPLE)
    // before four nodes are started for nothing
    await access(source).catch(() => fail('NOT_FOUND', { path: source }))
    const cast = await start(stage)
    await discover(stage, cast)
    const notes = await remember(stage, cast, source)
    await sync(stage, cast, notes)
    await speak(stage, cast)
    await forget(stage, cast, notes)
    await handOver(stage, cast, notes)
    await fromTheCloud(stage, cast)
    await verify(stage, cast)
  },
}

async function start({ cluster, step, say }: Stage): Promise<Cast> {
  step('Four processes: a NAS and a laptop of one owner, a friend, and a gateway without a home')
  const nas = await cluster.add({ name: 'nas', ownerName: 'Ines' })
  const laptop = await cluster.add({ name: 'laptop', join: nas })
  const friend = await cluster.add({ name: 'friend', ownerName: 'Tomás' })
  const gateway = await cluster.add({ name: 'gateway', ownerName: 'Ines', withHome: false })
  for (const { name, did, owner } of [nas, laptop, friend, gateway])
    say(`${name.padEnd(8)} ${did}  owner ${owner.name} ${short(owner.did)}`)
  // people say whom they trust; nothing that arrives over the network does
  const ines = { did: nas.owner.did, name: 'Ines', ceiling: 'execute', clearance: { level: 'trusted', tags: [] } }
  await friend.client.call('POST', '/v1/trust', ines)
  for (const member of [nas, laptop, friend]) {
    await member.client.call('POST', '/v1/agents', {
      id: 'clerk',
      name: `clerk of ${member.name}`,
      description: 'writes short reports',
      command: [process.execPath, CLERK],
      skills: [{ id: member === friend ? SKILL : 'note.keep', name: 'reports', description: 'writes a report' }],
      accept: 'anyone',
    })
  }
  return { nas, laptop, friend, gateway }
}

async function discover({ step, say, prove }: Stage, { nas, friend }: Cast): Promise<void> {
  step(`The NAS looks for somebody who can do "${SKILL}"`)
  const record = await findProvider(nas, SKILL, friend)
  say(
    `found ${record.name} ${short(record.did)}, record number ${record.seq}, agents ${record.agents.map(({ id }) => id).join(', ')}`,
  )
  prove(
    'an agent is found by capability through the DHT',
    record.did === friend.did,
    `${SKILL} -> ${short(record.did)}`,
  )
  const card = await nas.client.call<{ name: string; signatures: unknown[] }>(
    'GET',
    `/v1/agents/clerk/card?did=${friend.did}`,
  )
  say(`its card came by stream: "${card.name}", signed by its node, hash as in the record`)
  prove('its card is fetched by stream and checked', card.signatures.length === 1, card.name)
}

type Notes = {
  readonly report: ImportReport
  readonly shared: string
  readonly secret: string
  readonly sealed: string
}

async function remember({ step, say, prove }: Stage, { nas }: Cast, source: string): Promise<Notes> {
  step(`The NAS takes in notes from ${source}`)
  const label = { level: 'trusted', integrity: 'owner', tags: [] } as const
  const report = await importNotes(nas.client, source, { label }, () => undefined)
  say(`${report.created} notes taken in, ${report.skipped.length} files skipped`)
  for (const { path, reason } of report.skipped.slice(0, 5)) say(`skipped ${path}: ${reason}`)
  for (const { path, warnings } of report.warnings.slice(0, 3))
    say(`taken in with a remark: ${path}: ${warnings[0] ?? ''}`)
  const again = await importNotes(nas.client, source, { label }, () => undefined)
  prove(
    'real notes are imported, and a second time make no twins',
    report.created > 0 && again.created === 0,
    `${report.created} notes`,
  )
  if (report.ids.length < FEWEST)
    throw new Error(`${source} holds ${report.ids.length} notes; the story needs ${FEWEST}`)
  const secret = await addNote(nas, 'The offer for the lower field is 41,000.', 'private:owner')
  const sealed = await addNote(nas, 'The safe opens with the old house number.', 'sealed:owner')
  say(`and two of its own: ${secret} (private), ${sealed} (sealed)`)
  return { report, shared: report.ids.at(-1) ?? '', secret, sealed }
}

async function sync({ step, say, prove }: Stage, { nas, laptop, friend }: Cast, notes: Notes): Promise<void> {
  step('Sync: everything to the laptop, to the friend only what the owner shares')
  const toLaptop = await inStep(nas, laptop)
  const [here, there] = [await treeOf(nas, nas.home), await treeOf(laptop, nas.home)]
  say(`nas -> laptop: ${toLaptop.sent} notes; tree ${here.slice(0, 12)} here, ${there.slice(0, 12)} there`)
  prove(
    'two nodes of one owner hold the same tree (L4.1)',
    here === there && toLaptop.equal,
    `tree ${here.slice(0, 12)}`,
  )

  const { hash } = await shareWith(await nas.desk(), {
    to: { name: 'friend', did: friend.did },
    level: 'trusted',
    tags: [],
    mayWrite: false,
  })
  say(`Ines lets the friend's node see notes up to trusted, by grant ${hash.slice(0, 19)}`)
  const toFriend = await inStep(nas, friend)
  const held = await notesAt(friend, nas.home)
  const tooHigh = held.filter(({ label }) => !label.startsWith('public') && !label.startsWith('trusted'))
  const hidden = [notes.secret, notes.sealed].filter((id) => held.some((note) => note.id === id))
  say(`nas -> friend: ${toFriend.sent} notes; it holds ${held.length}, none above trusted`)
  prove(
    'higher-labelled notes are never sent (L4.2)',
    tooHigh.length === 0 && hidden.length === 0 && held.length === notes.report.created,
    `${held.length} of ${notes.report.created + 2}`,
  )
}

async function speak({ step, say, prove }: Stage, { nas, friend }: Cast): Promise<void> {
  step("An instruction with the owner's authority, and one whose authority does not reach")
  const { grant } = await delegateTo(await nas.desk(), {
    audience: [friend.did],
    scope: ['reports'],
    level: 'execute',
    ttlMs: 3_600_000,
  })
  const { id: delegation } = grant.delegation
  say(`Ines delegates: the NAS may speak for her about "reports" at level execute, ${delegation}`)
  const speaking = { to: friend, agent: 'clerk', delegation, level: 'execute' }
  const done = await send(nas, { ...speaking, scope: ['reports'], params: message('Write the report on the orchard.') })
  const place = done.status.message?.metadata?.['urn:csb:ext:commit:v1'] as { branch: string } | undefined
  say(`task ${done.id} at the friend: ${done.status.state}, "${noteOf(done)}", work on ${place?.branch ?? '-'}`)
  prove(
    'a delegated instruction executes',
    done.status.state === 'TASK_STATE_COMPLETED' && noteOf(done) === 'with authority from Ines' && place !== undefined,
    noteOf(done),
  )
  const { commit } = await friend.client.call<Explained>('GET', `/v1/record/runs/${done.id}`)
  const explained = await friend.client.call<Explained>('GET', `/v1/record/explain/${commit ?? ''}`)
  say(
    `the friend's node explains the commit ${commit?.slice(0, 12) ?? '-'} of it: run ${explained.run}, ${explained.lease?.chain.length ?? 0} grants up to its owner, on the word of ${explained.basis?.chain[0]?.from.name ?? '-'}`,
  )
  prove(
    'the commit is explained to run, lease, owner and whose word it was (L1.5)',
    explained.run === done.id &&
      explained.lease?.chain.length === 2 &&
      explained.basis?.chain[0]?.from.did === nas.owner.did,
    commit?.slice(0, 12) ?? '-',
  )
  const refused = await send(nas, { ...speaking, scope: ['payments'], params: message('Pay the invoice.') })
  say(`task ${refused.id}: ${refused.status.state}, "${noteOf(refused)}"`)
  prove(
    'one beyond its scope is downgraded, and says why (DEL-003 3.2)',
    noteOf(refused) === 'processed without authority: out_of_scope',
    noteOf(refused),
  )
}

async function forget({ step, say, prove }: Stage, { nas, laptop, friend }: Cast, { shared }: Notes): Promise<void> {
  step('The NAS forgets a note that the others have')
  const before = (await notesAt(friend, nas.home)).some(({ id }) => id === shared)
  const asked = await codeOf(nas.client.call('DELETE', `/v1/memory/${shared}/hard?reason=demo`))
  const { report = [] } = await forgetNotes(await nas.desk(), { ids: [shared], reason: 'demo' })
  prove('nothing is forgotten before the owner has approved what goes (L1.7)', asked === 'GATE_REQUIRED', String(asked))
  await inStep(nas, friend)
  await inStep(laptop, nas)
  const gone =
    !(await notesAt(friend, nas.home)).some(({ id }) => id === shared) &&
    !(await notesAt(laptop, nas.home)).some(({ id }) => id === shared)
  say(`${shared} was at the friend: ${before}; after one round it is gone there and on the laptop`)
  prove('a forgotten note disappears at every peer (L4.3)', before && gone, shared)
  await inStep(friend, nas).catch(() => undefined)
  await inStep(laptop, nas)
  const back = (await codeOf(nas.client.call('GET', `/v1/memory/${shared}`))) === undefined
  const clean = report.length > 0 && report.every(({ remains }) => remains.length === 0)
  say(`further rounds do not bring it back; its bytes are gone from the data folder: ${clean}`)
  prove('it does not come back, and its bytes are gone', !back && clean, 'raw scan clean')
}

async function handOver({ step, say, prove }: Stage, { nas, friend }: Cast, { report, secret }: Notes): Promise<void> {
  step('The NAS hands work to the friend, with a lease for one branch and only what the friend may see')
  const notes = [...report.ids.slice(0, -1).slice(0, 2), secret]
  type Done = { id: string; outcome: string; text: string; branch: string; commit: string; withheld: string[] }
  const done = await nas.client.call<Done>('POST', '/v1/handoff', {
    did: friend.did,
    agent: 'clerk',
    text: 'Summarise these notes.',
    notes,
  })
  say(`${done.id}: ${done.outcome}, "${done.text}"; withheld ${done.withheld.join(', ')}`)
  const { text } = await nas.client.call<{ text: string }>(
    'GET',
    `/v1/files/file?branch=${encodeURIComponent(done.branch)}&path=results/summary.md`,
  )
  say(`the result is on branch ${done.branch}: ${text.split('\n').length} lines, commit ${done.commit.slice(0, 12)}`)
  prove(
    'a handoff runs at the peer and comes back as a branch (L4.4)',
    done.outcome === 'completed' && text.startsWith('# Summary'),
    done.branch,
  )
  prove(
    'what the peer may not see was not handed over',
    done.withheld.length === 1 && done.withheld[0] === secret,
    secret,
  )
}

async function fromTheCloud({ step, say, prove }: Stage, { nas, gateway }: Cast): Promise<void> {
  step("A cloud client, with the stock A2A client, reaches the NAS's agent through the gateway")
  const { token } = await leaseFor(await gateway.desk(), {
    name: 'cloud client',
    lease: { actions: ['send'] },
    ttlMs: 3_600_000,
  })
  const client = await connectCloud(`${gateway.client.url}/agents/${nas.did}/clerk/agent-card.json`, token)
  const answer = (await client.sendMessage({
    message: {
      messageId: newId('message', systemClock.now()),
      role: 1,
      parts: [{ content: { $case: 'text', value: 'Good morning.' } }],
    },
  } as never)) as unknown as { id?: string; status?: { state: number } }
  say(`task ${answer.id ?? '-'} on the NAS, state ${answer.status?.state ?? '-'}`)
  prove('the stock A2A client is served through the gateway', answer.status?.state === 3, answer.id ?? '-')
  const bare = await fetch(`${gateway.client.url}/a2a/${nas.did}/clerk`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: message('hello') }),
  })
  const { outcome, code } = (await tailOf(gateway, 1))[0] ?? { outcome: '-', code: '-' }
  say(`without a token it answers ${bare.status}, and the refusal is in the record: ${outcome} ${code}`)
  prove(
    'no lease, refused, and recorded (L1.1)',
    bare.status === 401 && outcome === 'refused' && code === 'LEASE_REQUIRED',
    code ?? '-',
  )
}

async function verify({ cluster, step, say, prove }: Stage, _cast: Cast): Promise<void> {
  step('Every node verifies its whole record')
  for (const member of cluster.members) {
    const { ok, size, root } = await verifyRecord(member)
    say(`${member.name.padEnd(8)} ${size} entries, root ${root.slice(0, 16)}`)
    prove(`the record of ${member.name} verifies (L1.6)`, ok, `${size} entries`)
  }
}
