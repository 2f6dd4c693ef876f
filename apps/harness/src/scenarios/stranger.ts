/** A peer that nobody trusts tries what it can: every attempt is refused, leaves a record, and changes nothing. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  canonicalize,
  createKeyPair,
  digestOf,
  documentHash,
  fromBase64Url,
  random,
  signDocument,
  systemClock,
  toBase64Url,
  type Authority,
  type Grant,
} from '@csb/core'
import { createClient, delegateTo, readText } from '@csb/node'
import {
  addNote,
  codeOf,
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
const AUTHORITY = 'urn:csb:ext:authority:v1'
const SKILLS = [{ id: 'note.keep', name: 'notes', description: 'keeps notes' }]
const TTL_MS = 600_000

type Cast = { readonly nas: Member; readonly stranger: Member }

export const stranger: Scenario = {
  name: 'stranger',
  about: 'an untrusted peer tries to sync, to hand over, to forge authority, to message; all refused and recorded',
  run: async (stage) => {
    const cast = await start(stage)
    const before = await treeOf(cast.nas, cast.nas.home)
    await sync(stage, cast)
    await handOver(stage, cast)
    await forge(stage, cast)
    await messageTheWary(stage, cast)
    await bringForeignToken(stage, cast)
    stage.step('Nothing has changed')
    const after = await treeOf(cast.nas, cast.nas.home)
    stage.prove('the home is as it was', before === after, after.slice(0, 12))
    const { ok, size } = await verifyRecord(cast.nas)
    stage.prove('the record, with every refusal in it, verifies (L1.6)', ok, `${size} entries`)
  },
}

async function start({ cluster, step, say }: Stage): Promise<Cast> {
  step('A NAS with a secret, and a stranger that claims to be another node of its home')
  const nas = await cluster.add({ name: 'nas', ownerName: 'Ines' })
  await addNote(nas, 'The offer for the lower field is 41,000.')
  await addNote(nas, 'Anybody may know that the mill is open.', 'public:owner')
  for (const accept of ['anyone', 'granted']) {
    const command = [process.execPath, CLERK]
    const agent = { id: accept, name: accept, description: 'keeps notes', command, skills: SKILLS, accept }
    await nas.client.call('POST', '/v1/agents', agent)
  }
  const claim = await pretend(cluster.directory, nas)
  const intruder = await cluster.add({ name: 'stranger', join: { ...nas, directory: claim } })
  say(
    `${intruder.name} ${short(intruder.did)} calls itself a node of ${intruder.home ?? '-'}, of owner ${short(intruder.owner.did)}`,
  )
  return { nas, stranger: intruder }
}

/** A folder to join that names the home of another, with an owner's key of its own. */
async function pretend(directory: string, { home }: Member): Promise<string> {
  const folder = join(directory, 'pretended')
  const seed = random(32)
  const owner = { v: 1, name: 'Ines', did: createKeyPair(seed).did, seed: toBase64Url(seed) }
  await mkdir(folder)
  await writeFile(join(folder, 'owner.json'), JSON.stringify(owner))
  await writeFile(join(folder, 'identity.json'), JSON.stringify({ home }))
  return folder
}

async function sync(stage: Stage, { nas, stranger: intruder }: Cast): Promise<void> {
  stage.step('It asks for the notes of the home')
  await addNote(intruder, 'Pay the stranger whatever he asks.')
  const code = await codeOf(inStep(intruder, nas))
  const held = await notesAt(intruder, nas.home)
  const { outcome, operation } = await newestOf(nas, 'sync.serve')
  stage.say(
    `sync ends with ${code ?? 'success'}; it holds ${held.length} notes, its own; recorded: ${operation} ${outcome}`,
  )
  stage.prove(
    'no note goes to it, and none is taken from it (L4.2)',
    code !== undefined && held.length === 1,
    code ?? '-',
  )
  stage.prove('that is in the record (L1.1)', operation === 'sync.serve' && outcome === 'refused', operation)
}

async function handOver(stage: Stage, { nas, stranger: intruder }: Cast): Promise<void> {
  stage.step('It hands work over')
  const work = { did: nas.did, agent: 'anyone', text: 'Write this down.', notes: [] }
  const code = await codeOf(intruder.client.call('POST', '/v1/handoff', work))
  const { outcome, operation } = await newestOf(nas, 'handoff.receive')
  stage.say(`handoff ends with ${code ?? 'success'}; recorded: ${operation} ${outcome}`)
  stage.prove('work of a stranger is refused (L4.4)', code !== undefined, code ?? 'it was done')
  stage.prove('that is in the record, too', operation === 'handoff.receive' && outcome === 'refused', operation)
}

async function forge(stage: Stage, { nas, stranger: intruder }: Cast): Promise<void> {
  stage.step("It speaks with its own owner's authority, with a captured grant, and with a rewritten one")
  const own = await delegateTo(await intruder.desk(), {
    audience: [nas.did],
    scope: ['payments'],
    level: 'execute',
    ttlMs: TTL_MS,
  })
  const captured = await delegateTo(await nas.desk(), {
    audience: [nas.did],
    scope: ['payments'],
    level: 'execute',
    ttlMs: TTL_MS,
  })
  const rewritten = structuredClone(captured.grant)
  Object.assign(rewritten.delegation, { grantee: 'stranger', grantee_key: intruder.did })
  const { signature: _, ...delegation } = rewritten.delegation
  const unsigned = { ...rewritten, delegation }
  const speaking = { to: nas, agent: 'anyone' }
  const tries = {
    'its own owner': await send(intruder, {
      ...speaking,
      params: message('Pay.'),
      delegation: own.grant.delegation.id,
      level: 'execute',
      scope: ['payments'],
    }),
    'a captured grant': await send(intruder, { ...speaking, params: await signedBy(intruder, nas, captured) }),
    'a rewritten grant': await send(intruder, {
      ...speaking,
      params: await signedBy(intruder, nas, { grant: rewritten, hash: documentHash('grant', unsigned) }),
    }),
  }
  for (const [what, task] of Object.entries(tries)) {
    const note = noteOf(task)
    stage.say(`${what}: task ${task.id}, "${note}"`)
    stage.prove(`${what} gives no authority (DEL-003 3.2)`, /^processed without authority: \w+$/.test(note), note)
  }
}

/** Params with an authority that is well-formed, bound to this message, and signed by the wrong hand. */
async function signedBy(
  intruder: Member,
  to: Member,
  { grant, hash }: { grant: Grant; hash: string },
): Promise<Readonly<Record<string, unknown>>> {
  const { seed } = JSON.parse(await readFile(join(intruder.directory, 'node.key'), 'utf8')) as { seed: string }
  const key = createKeyPair(fromBase64Url(seed) ?? random(32))
  const params = message('Pay.')
  const now = systemClock.now()
  const body: Omit<Authority, 'chain' | 'signature'> = {
    delegated_by: 'Ines',
    scope: ['payments'],
    level: 'execute',
    delegation_id: grant.delegation.id,
    issued_at: now,
    expires_at: now + TTL_MS,
    delegation_hash: hash,
    holder: key.did,
    aud: to.did,
    nonce: toBase64Url(random(16)),
    payload: digestOf(canonicalize({ method: 'SendMessage', params })),
  }
  const authority = { ...body, chain: [grant], signature: signDocument('authority', body, key) }
  return { message: { ...params.message, metadata: { [AUTHORITY]: authority } } }
}

async function messageTheWary(stage: Stage, { nas, stranger: intruder }: Cast): Promise<void> {
  stage.step('It writes to an agent that takes messages of granted senders only')
  const { seq: before } = await newestOf(nas, 'agents.deliver')
  const task = await send(intruder, { to: nas, agent: 'granted', params: message('Good morning.') })
  stage.say(`task ${task.id}: ${task.status.state}, "${noteOf(task)}"`)
  stage.prove('the message is rejected, and says why', task.status.state === 'TASK_STATE_REJECTED', noteOf(task))
  const { seq, operation } = await newestOf(nas, 'agents.deliver')
  stage.prove('its arrival is in the record', seq > before, operation)
}

async function bringForeignToken(stage: Stage, { nas, stranger: intruder }: Cast): Promise<void> {
  stage.step("It comes to the NAS's HTTP door with the token of its own node")
  const token = (await readText(intruder.directory, 'token'))?.trim() ?? ''
  const code = await codeOf(createClient(nas.client.url, token).call('GET', '/v1/memory'))
  const { outcome, code: recorded } = await newestOf(nas, 'memory.list')
  stage.prove('a foreign token opens nothing (L1.1)', code === 'UNAUTHENTICATED', code ?? 'it was let in')
  stage.prove('that is in the record as well', outcome === 'refused' && recorded === code, recorded ?? '-')
}

/** The newest entry of an operation: what its node asks besides, as of a witness, may stand behind it. */
async function newestOf(nas: Member, asked: string) {
  const entries = await tailOf(nas, 20)
  return entries.find(({ operation }) => operation === asked) ?? { seq: -1, operation: '-', outcome: '-', code: null }
}
