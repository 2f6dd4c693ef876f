import assert from 'node:assert/strict'
import type { Acceptance, Context } from './acceptance.ts'
import type { Door } from './door.ts'
import type { LocalNode } from './nodes.ts'

/** Two nodes of one owner, connected: the one under test and a fresh one that holds the same home. */
async function pairOf(
  { own, spawn }: Context,
  name: string,
): Promise<{ one: Door; two: Door; did: string; node: LocalNode }> {
  const node = await spawn({ name, join: own.directory })
  const did = await connect(own.door, node.door)
  return { one: own.door, two: node.door, did, node }
}

async function connect(from: Door, to: Door): Promise<string> {
  const { addresses } = await to.status()
  const address = addresses.find((text) => text.includes('/127.0.0.1/')) ?? addresses[0]
  assert.ok(address, 'the second node has no address')
  return (await from.dial(address)).did
}

const pathsOf = async (node: Door) => (await node.list('memory')).map(({ path, oid }) => `${path} ${oid}`).sort()

/** An attached agent in one line of JavaScript: reads its input, writes one file where it was told. */
const agentThatWrites = (path: string) => {
  const answer = JSON.stringify({ result: { text: 'done', files: [{ path, text: 'written elsewhere\n' }] } })
  return {
    id: 'scribe',
    name: 'Scribe',
    description: 'writes one file',
    skills: [{ id: 'write', name: 'Write', description: 'writes one file' }],
    command: [process.execPath, '-e', `process.stdin.resume().on('end', () => console.log(${JSON.stringify(answer)}))`],
  }
}

export const L4: readonly Acceptance[] = [
  {
    clause: 'L4.1',
    title: 'two nodes that wrote apart have equal trees after a sync',
    needsOwnNodes: true,
    run: async (context) => {
      const { one, two, did } = await pairOf(context, 'equal')
      for (let n = 1; n <= 5; n++) {
        await one.remember(`from the first, ${n}`)
        await two.remember(`from the second, ${n}`)
      }
      assert.notDeepEqual(await pathsOf(one), await pathsOf(two))
      await one.sync(did)
      const paths = await pathsOf(one)
      assert.deepEqual(await pathsOf(two), paths)
      assert.ok(paths.length >= 10)
    },
  },
  {
    clause: 'L4.2',
    title: 'nothing above a peer its clearance is sent to it',
    needsOwnNodes: true,
    run: async ({ own, friend }) => {
      const stranger = await friend()
      const { owner, home } = await own.door.status()
      await stranger.door.trust(owner.did, owner.name)
      const did = await connect(own.door, stranger.door)
      await own.share(did, 'public')
      const open = await own.door.remember('anybody may know this', { label: 'public:owner' })
      const secret = await own.door.remember('only the owner may know this', { label: 'private:owner' })
      await own.door.sync(did)
      const seen = (await stranger.door.notes(home)).map(({ id }) => id)
      assert.ok(seen.includes(open.id), 'the public note did not arrive')
      assert.ok(!seen.includes(secret.id), 'the private note arrived')
      assert.equal((await stranger.door.note(secret.id, home)).status, 404)
      assert.ok(!(await stranger.door.list('memory', home)).some(({ path }) => path.includes(secret.id)))
    },
  },
  {
    clause: 'L4.3',
    title: 'what is forgotten on one node is gone on the other and does not come back',
    needsOwnNodes: true,
    run: async (context) => {
      const { one, two, did } = await pairOf(context, 'forgetful')
      const note = await one.remember('to be forgotten everywhere')
      await one.sync(did)
      assert.equal((await two.note(note.id)).status, 200)
      const asked = await one.askToForget(note.id)
      assert.equal(asked.body.code, 'GATE_REQUIRED', 'it was forgotten before its owner had approved that')
      assert.equal((await one.note(note.id)).status, 200)
      await context.own.command('forget', note.id, '--yes')
      await one.sync(did)
      for (const node of [two, one])
        assert.ok([404, 410].includes((await node.note(note.id)).status), 'it is still there')
      await two.sync((await one.status()).did)
      for (const node of [two, one])
        assert.ok(!(await pathsOf(node)).some((path) => path.includes(note.id)), 'it came back')
    },
  },
  {
    clause: 'L4.4',
    title: 'a handoff runs on the peer, and reaches no further than its lease',
    needsOwnNodes: true,
    run: async (context) => {
      const { one, two, did } = await pairOf(context, 'helper')
      await two.attach(agentThatWrites('results/answer.md'))
      const done = await one.handoff({ did, agent: 'scribe', text: 'write the answer', paths: ['/results'] })
      assert.equal(done.outcome, 'completed', `the handoff ended with ${done.code ?? done.outcome}`)
      assert.ok(done.branch, 'the result is on no branch')
      assert.equal((await one.read(done.branch, 'results/answer.md')).body.text, 'written elsewhere\n')
      assert.equal((await one.read('main', 'results/answer.md')).status, 404)

      const greedy = { ...agentThatWrites('secrets/answer.md'), id: 'greedy' }
      await two.attach(greedy)
      const refused = await one.handoff({ did, agent: 'greedy', text: 'write elsewhere', paths: ['/results'] })
      assert.equal(refused.outcome, 'failed', 'a file outside of the lease was taken')
      assert.equal(refused.code, 'SCOPE_EXCEEDED')
    },
  },
]
