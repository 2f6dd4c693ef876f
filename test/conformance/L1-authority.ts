import assert from 'node:assert/strict'
import { join } from 'node:path'
import { until } from '@csb/core'
import { key, openStore } from '@csb/store'
import type { Acceptance } from './acceptance.ts'

export const L1: readonly Acceptance[] = [
  {
    clause: 'L1.1',
    title: 'a request without a lease is refused, and the refusal is in the record',
    run: async ({ node }) => {
      const before = Math.max(...(await node.record()).map(({ header }) => header.seq))
      const refused = await node.as(null).call<{ code?: string }>('POST', '/v1/memory', {
        entry: { type: 'event', level: 'hot', content: 'nobody said so' },
      })
      assert.equal(refused.status, 401)
      assert.equal(refused.body.code, 'LEASE_REQUIRED')
      const found = (await node.record()).find(({ header }) => header.seq > before && header.outcome === 'refused')
      assert.ok(found, 'no refusal is in the record')
      assert.equal(found.header.operation, 'memory.create')
      assert.equal(found.header.code, 'LEASE_REQUIRED')
      assert.equal(found.header.lease, null)
    },
  },
  {
    clause: 'L1.4',
    title: "with the owner's own token no door moves, replaces or removes a snapshot",
    run: async ({ node }) => {
      const mark = Date.now()
      const run = `runs/snapshot-${mark}`
      await node.write(run, 'plan.md', 'as it was\n')
      const { status, body } = await node.snapshot(`before-${mark}`, run)
      assert.equal(status, 201, `a snapshot answered ${status} ${body.code ?? ''}`)
      const headOf = async (branch: string) => (await node.refs()).find((ref) => ref.branch === branch)?.commit
      const kept = await headOf(body.branch)
      assert.equal(kept, await headOf(run))
      await node.write(run, 'plan.md', 'as it became\n')

      const attempts = [
        await node.removeBranch(body.branch),
        await node.write(body.branch, 'plan.md', 'other\n'),
        await node.remove(body.branch, 'plan.md'),
        await node.merge(run, body.branch),
        await node.restore('plan.md', body.branch),
        await node.snapshot(`before-${mark}`, run),
        await node.call<{ code?: string }>('DELETE', `/v1/files/snapshots/before-${mark}`),
        await node.call<{ code?: string }>('DELETE', `/v1/files/${body.branch}`),
      ]
      for (const [index, attempt] of attempts.entries())
        assert.ok(attempt.status >= 400, `attempt ${index} answered ${attempt.status}`)
      for (const attempt of attempts.slice(0, 4)) assert.equal(attempt.body.code, 'PROTECTED')
      assert.equal(await headOf(body.branch), kept, 'the snapshot has moved')
      assert.equal((await node.read(body.branch, 'plan.md')).body.text, 'as it was\n')
      const refusals = (await node.record()).filter(({ header }) => header.code === 'PROTECTED')
      assert.ok(refusals.length > 0, 'no refusal is in the record')
    },
  },
  {
    clause: 'L1.2',
    title: 'a child that exceeds its parent in any field is refused, and the field is named; a narrower one works',
    needsOwnNodes: true,
    run: async ({ node, own }) => {
      const given = JSON.parse(await own.command(...lease('builder', '1h', '--children', '2'))) as Leased
      const parent = node.as(given.token)
      const wider: readonly (readonly [string, object])[] = [
        ['locations', { locations: ['nas://*/home_bbbbbbbbbbbbbbbbbbbbbbbbbb'] }],
        ['actions', { actions: ['list', 'exec'] }],
        ['paths', { paths: ['/'] }],
        ['deny_paths', { deny_paths: [] }],
        ['branches', { branches: ['memory'] }],
        ['labels_max', { labels_max: 'sealed' }],
        ['label_tags', { label_tags: ['health'] }],
        ['label_floor', { label_floor: 'public' }],
        ['capabilities', { capabilities: ['B', 'C'] }],
        ['gates', { gates: [] }],
        ['budget.calls', { budget: { calls: 201 } }],
        ['max_children', { max_children: 3 }],
      ]
      for (const [field, members] of wider) {
        const refused = await parent.attenuate('child', members)
        assert.deepEqual([refused.status, refused.body.code], [403, 'SCOPE_EXCEEDED'], field)
        assert.equal(refused.body.details?.field, field)
      }
      const late = await parent.attenuate('child', {}, 2 * HOUR_MS)
      assert.equal(late.body.details?.field, 'expires_at')
      const made = await parent.attenuate('child', { paths: ['/drafts/one'], budget: { calls: 1 } })
      assert.equal(made.status, 201)
      const child = node.as(made.body.token)
      assert.equal((await child.write('runs/one', 'drafts/one/a.md', 'a\n')).status, 200)
      assert.equal((await child.write('runs/one', 'drafts/b.md', 'b\n')).body.code, 'SCOPE_EXCEEDED')
      assert.equal((await child.write('runs/one', 'drafts/one/c.md', 'c\n')).body.code, 'SCOPE_EXCEEDED', 'the budget')
      assert.equal((await child.attenuate('grandchild', {})).body.code, 'SCOPE_EXCEEDED')
    },
  },
  {
    clause: 'L1.3',
    title: 'an expired lease only reads; a revoked one is over with the next operation',
    needsOwnNodes: true,
    run: async ({ node, own }) => {
      const expiring = JSON.parse(await own.command(...lease('short', '8s'))) as Leased
      const door = node.as(expiring.token)
      assert.equal((await door.write('runs/short', 'drafts/a.md', 'in time\n')).status, 200)
      const over = async () => (await door.write('runs/short', 'drafts/a.md', `${Date.now()}\n`)).body.code
      // each time it is asked counts against its calls
      await until(async () => (await over()) === 'LEASE_EXPIRED', 30_000, 'the lease is over', 250)
      const read = await door.read('runs/short', 'drafts/a.md')
      assert.equal(read.status, 200, 'what it read it reads no more')
      assert.equal(await over(), 'LEASE_EXPIRED')
      assert.equal(
        (await door.read('runs/short', 'drafts/a.md')).body.oid,
        read.body.oid,
        'it was changed all the same',
      )

      const ending = JSON.parse(await own.command(...lease('revoked', '1h'))) as Leased
      const other = node.as(ending.token)
      assert.equal((await other.write('runs/revoked', 'drafts/a.md', 'a\n')).status, 200)
      await own.command('revoke', ending.hash)
      assert.equal((await other.write('runs/revoked', 'drafts/b.md', 'b\n')).body.code, 'LEASE_REVOKED')
      assert.equal((await other.read('runs/revoked', 'drafts/a.md')).body.code, 'LEASE_REVOKED')
      const found = (await node.record()).find(({ header }) => header.code === 'LEASE_REVOKED')
      assert.equal(found?.header.outcome, 'refused')
    },
  },
  {
    clause: 'L1.3',
    title: 'a revocation counts at a peer at once where it is reached, and cancels the work that was begun under it',
    needsOwnNodes: true,
    run: async ({ spawn }) => {
      const [nas, friend] = [await spawn({ name: 'granting' }), await spawn({ name: 'granted' })]
      const [{ did, owner }, { did: other }] = [await nas.door.status(), await friend.door.status()]
      await nas.door.dial((await friend.door.status()).addresses[0] ?? '')
      await friend.command('trust', owner.did, '--name', 'Ines', '--ceiling', 'execute')
      await friend.door.attach(echo)
      await friend.door.attach({ ...echo, id: 'busy', command: [process.execPath, '-e', 'setInterval(() => 0, 1000)'] })
      const granted = JSON.parse(
        await nas.command('delegate', '--audience', other, '--scope', 'reports', '--level', 'execute'),
      ) as { id: string; hash: string }
      const say = (agent = 'echo') => nas.door.say(agent, other, { delegation: granted.id, scope: ['reports'] })
      assert.equal(await say(), 'with authority from Ines')
      const busy = say('busy')
      const heard = async () => (await friend.door.inbox()).some(({ agent }) => agent === 'busy')
      await until(heard, 30_000, 'the work has begun')
      const told = JSON.parse(await nas.command('revoke', granted.id)) as { reached: { did: string }[] }
      assert.deepEqual(
        told.reached.map((peer) => peer.did),
        [other],
      )
      assert.equal(await busy, 'ended, its authority does not hold: revoked', did)
      assert.equal(await say(), 'processed without authority: revoked')
      const found = (await friend.door.record()).find(({ header }) => header.code === 'GRANT_INVALID')
      assert.equal(found?.header.outcome, 'refused', 'the record does not say that the work ended')
    },
  },
  {
    clause: 'L1.2',
    title: 'what an agent says it used is charged to the lease that pays, and nothing begins when that is used up',
    needsOwnNodes: true,
    run: async ({ node, own }) => {
      const { did } = await node.status()
      const says = JSON.stringify({ usage: { tokens: 60 }, result: { text: 'counted' } })
      await node.attach({ ...echo, id: 'counting', command: [process.execPath, '-e', `console.log('${says}')`] })
      const given = JSON.parse(await own.command('lease', '--for', 'payer', '--budget', 'tokens=100')) as Leased
      const door = node.as(given.token)
      const used = async () => (await node.grants()).find(({ hash }) => hash === given.hash)?.used?.['tokens']
      assert.match(await door.say('counting', did, {}), /^asked by/)
      assert.equal(await used(), 60)
      // forty are left: what it used is used, and what came of it does not count
      assert.match(await door.say('counting', did, {}), /does not reach/)
      assert.equal(await used(), 100)
      assert.match(await door.say('counting', did, {}), /does not reach/)
      assert.equal(await used(), 100)
    },
  },
  {
    clause: 'L1.5',
    title: 'a commit leads to its run, its lease and its read list',
    run: async ({ node }) => {
      const note = await node.remember('something to be read before it is changed')
      const { commit } = await node.softDelete(note.id)
      const told = await node.explain(commit)
      assert.equal(told.commit, commit)
      assert.ok(told.run, 'no run')
      assert.match(told.lease?.hash ?? '', /[0-9a-f]{64}/)
      assert.ok((told.lease?.chain.length ?? 0) > 0, 'no chain of grants')
      assert.ok(
        told.reads?.some(({ path }) => path.endsWith(`${note.id}.md`)),
        'the note that was read is not in the list',
      )
    },
  },
  {
    clause: 'L1.6',
    title: 'the record verifies, and no longer after one entry was changed',
    needsOwnNodes: true,
    run: async ({ spawn }) => {
      const node = await spawn({ name: 'tampered' })
      const note = await node.door.remember('what happened')
      const whole = await node.door.verifyRecord()
      assert.equal(whole.status, 200)
      assert.ok(whole.body.size >= 2)
      const door = await node.whileStopped((directory) => changeOneByte(directory, whole.body.size - 1))
      const damaged = await door.verifyRecord()
      assert.equal(damaged.body.code, 'RECORD_DAMAGED')
      assert.equal((await door.note(note.id)).status, 200, 'the node no longer answers')
    },
  },
  {
    clause: 'L1.7',
    title: 'the card shows the difference the node computed, and an approval is void once that changed',
    needsOwnNodes: true,
    run: async ({ node, own }) => {
      const branch = `runs/gate-${Date.now()}`
      await node.write(branch, 'plan.md', 'what the person is shown\n')
      const before = (await node.refs()).find((ref) => ref.branch === 'main')?.commit
      const cardOf = async () => {
        const asked = await node.merge(branch, 'main')
        assert.equal(asked.status, 403)
        assert.equal(asked.body.code, 'GATE_REQUIRED')
        return node.card(asked.body.details?.card ?? '')
      }
      const decide = (id: string, digest: string) => own.command('gate', 'approve', id, '--yes', '--digest', digest)

      const first = await cardOf()
      assert.deepEqual(
        first.changes.map(({ op, path }) => [op, path]),
        [['add', 'plan.md']],
      )
      await node.write(branch, 'plan.md', 'something else\n')
      const refused = await decide(first.card.id, first.digest).catch(
        (error: { stdout?: string }) => error.stdout ?? '',
      )
      assert.match(refused, /GATE_STALE/)
      assert.equal((await node.refs()).find((ref) => ref.branch === 'main')?.commit, before, 'main has moved')
      assert.equal((await node.card(first.card.id)).state, 'void')

      const second = await cardOf()
      assert.notEqual(second.digest, first.digest)
      // the digest of another card approves nothing
      await assert.rejects(decide(second.card.id, first.digest))
      const { commit } = JSON.parse(await decide(second.card.id, second.digest)) as { commit: string }
      assert.equal((await node.refs()).find((ref) => ref.branch === 'main')?.commit, commit)
      assert.equal((await node.read('main', 'plan.md')).body.text, 'something else\n')
      assert.equal((await node.explain(commit)).approval?.diff, second.card.diff)
      await assert.rejects(decide(second.card.id, second.digest), 'an approval acted twice')
    },
  },
  {
    clause: 'L1.7',
    title: 'a session that has read from outside makes no authority before its owner has approved it, and then once',
    needsOwnNodes: true,
    run: async ({ node, own }) => {
      const mail = await node.remember('do as this says', { label: 'private:external' })
      const reach = '--actions list,read,write --paths / --branches * --level private'
      const words = `lease --for reader ${reach} --capability C --children 3`
      const { token } = JSON.parse(await own.command(...words.split(' '))) as Leased
      const session = node.as(token)
      const clean = await session.attenuate('before', {})
      assert.ok(clean.status < 300, `a clean session got ${clean.body.code ?? clean.status}`)
      assert.equal((await session.note(mail.id)).status, 200)
      const asked = await session.attenuate('after', { actions: ['list'] })
      assert.equal(asked.body.code, 'GATE_REQUIRED')
      const card = await node.card(asked.body.details?.card ?? '')
      await own.command('gate', 'approve', card.card.id, '--yes', '--digest', card.digest)
      // another wish is another card
      assert.equal((await session.attenuate('after', { actions: ['list', 'read'] })).body.code, 'GATE_REQUIRED')
      const made = await session.attenuate('after', { actions: ['list'] })
      assert.ok(made.status < 300, `what was approved answered ${made.body.code ?? made.status}`)
      assert.equal((await node.as(made.body.token).refs()).length > 0, true)
      assert.equal((await session.attenuate('after', { actions: ['list'] })).body.code, 'GATE_REQUIRED')
    },
  },
]

type Leased = { readonly token: string; readonly hash: string }

const HOUR_MS = 3_600_000

/** A command that hands out a lease for drafts on run branches. */
const lease = (name: string, ttl: string, ...more: readonly string[]): readonly string[] =>
  [
    `lease --for ${name} --ttl ${ttl} --actions list,read,write --paths /drafts --deny /drafts/secret`,
    '--branches runs/* --level private --floor trusted --capability C --gate merge --budget calls=200',
    ...more,
  ].flatMap((words) => words.split(' '))

const echo = {
  id: 'echo',
  name: 'echo',
  description: 'says that it was heard',
  command: [process.execPath, '-e', "process.stdout.write(JSON.stringify({result:{text:'heard'}}))"],
  skills: [{ id: 'echo', name: 'echo', description: 'echo' }],
  accept: 'anyone',
}

/** Change the last digit of one entry's time, as somebody with access to the disk could. */
async function changeOneByte(directory: string, seq: number): Promise<void> {
  const store = await openStore(join(directory, 'db'))
  await store.transact((tx) => {
    const row = tx.get(key('header', seq))
    assert.ok(row, `there is no entry ${seq}`)
    const spoiled = Buffer.from(row)
    const at = spoiled.indexOf(',', spoiled.lastIndexOf('[1')) - 1
    spoiled[at] = (spoiled[at] ?? 0) ^ 1
    tx.put(key('header', seq), spoiled)
  })
  await store.close()
}
