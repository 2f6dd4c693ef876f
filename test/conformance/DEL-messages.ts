/** What delegated authority looks like on a message, and what it makes the receiver do. */
import assert from 'node:assert/strict'
import { EXTENSIONS, until } from '@csb/core'
import type { Acceptance } from './acceptance.ts'
import { wordsOf, type Task } from './door.ts'
import { SCOPE, createStranger, delegate, ordinary, stage } from './DEL-stage.ts'

const REQUIRED = ['delegated_by', 'scope', 'level', 'issued_at']
const OPTIONAL = ['delegation_id', 'expires_at']
const WITH_AUTHORITY = /^with authority from Ines/

export const DEL_MESSAGES: readonly Acceptance[] = [
  {
    clause: 'DEL-002.2.1',
    title: 'tasks/send of the document carries authority in its params, and none of it is taken on trust',
    needsOwnNodes: true,
    run: async (context) => {
      const { friend, did } = await stage(context)
      const { did: to, say } = createStranger()
      const { grant } = await delegate(context.own, did, '--to', to, '--scope', 'reports', '--level', 'request')
      assert.match(await say(friend, 'echo', grant), WITH_AUTHORITY)
      const thief = createStranger()
      const stolen = { ...grant, delegation: { ...grant.delegation, grantee_key: thief.did } }
      assert.equal(await thief.say(friend, 'echo', stolen), ordinary('bad_signature'))
    },
  },
  {
    clause: 'DEL-002.2.2',
    title: 'who, what about, how and since when are required; until when and by which certificate are not',
    needsOwnNodes: true,
    run: async (context) => {
      const { friend, did } = await stage(context)
      const { did: to, say } = createStranger()
      const { grant } = await delegate(context.own, did, '--to', to, '--scope', 'reports', '--level', 'request')
      for (const member of REQUIRED)
        assert.equal(await say(friend, 'echo', grant, member), ordinary('malformed'), member)
      for (const member of OPTIONAL) assert.match(await say(friend, 'echo', grant, member), WITH_AUTHORITY, member)
    },
  },
  {
    clause: 'DEL-002.2.3',
    title: 'inform is noted, a request may be refused, what is to be executed is done, and an override goes before it',
    needsOwnNodes: true,
    run: async (context) => {
      const { own, node } = context
      const { did, send } = await stage(context)
      const { id: delegation } = await delegate(own, did, '--level', 'override')
      const at = (level: string) => ({ delegation, scope: SCOPE, level })

      const informed = await send('echo', at('inform'))
      assert.equal(wordsOf(informed), 'noted, with authority from Ines')
      assert.deepEqual(informed.artifacts ?? [], [], 'the agent was run')

      const requested = await send('echo', at('request'))
      assert.deepEqual([requested.status.state, textOf(requested)], ['TASK_STATE_COMPLETED', 'heard'])
      assert.equal((await send('guarded', at('request'))).status.state, 'TASK_STATE_REJECTED')

      const executed = await send('guarded', at('execute'))
      assert.deepEqual([executed.status.state, textOf(executed)], ['TASK_STATE_COMPLETED', 'heard'])

      const { id } = await send('sleeper', at('execute'), { configuration: { returnImmediately: true } })
      const stateOf = async () => (await node.rpc<Task>(`/a2a/${did}/sleeper`, 'GetTask', { id })).status.state
      assert.match(await stateOf(), /SUBMITTED|WORKING/)
      const over = await send('sleeper', at('override'), { configuration: { returnImmediately: true } })
      await until(async () => (await stateOf()) === 'TASK_STATE_CANCELED', 30_000, 'what was said before goes on')
      await node.rpc(`/a2a/${did}/sleeper`, 'CancelTask', { id: over.id })
    },
  },
  {
    clause: 'DEL-002.2.4',
    title: 'who receives it checks it, acts by its level under a lease of its own, and answers by whose authority',
    needsOwnNodes: true,
    run: async (context) => {
      const { own, node } = context
      const { friend, did, send } = await stage(context)
      const { id: delegation, hash } = await delegate(own, did, '--scope', 'reports', '--level', 'execute')
      const main = (await friend.door.refs()).find(({ branch }) => branch === 'main')
      const task = await send('scribe', { delegation, scope: SCOPE })
      assert.equal(wordsOf(task), 'with authority from Ines')
      const mark = { accepted: true, level: 'execute', delegated_by: 'Ines', scope: SCOPE }
      assert.deepEqual(task.metadata?.[EXTENSIONS.authority], mark)

      const branch = `runs/${task.id}`
      const refs = await friend.door.refs()
      const { commit } = refs.find((ref) => ref.branch === branch) ?? assert.fail('its work is on no branch')
      assert.equal((await friend.door.read(branch, 'report.md')).body.text, 'all is well\n')
      assert.deepEqual(
        refs.find((ref) => ref.branch === 'main'),
        main,
        'main has moved',
      )
      const explained = await friend.door.explain(commit)
      assert.equal(explained.basis?.hash, hash, 'it is not explained by what was delegated')
      assert.equal(explained.basis.chain[0]?.from.did, (await node.status()).owner.did)
      assert.notEqual(explained.lease?.hash, hash)
      // what it does for anybody else is not taken in
      const other = await send('scribe', { delegation, scope: ['payments'] })
      assert.equal(other.status.state, 'TASK_STATE_FAILED')
      assert.ok(!(await friend.door.refs()).some((ref) => ref.branch === `runs/${other.id}`))
    },
  },
]

const textOf = ({ artifacts = [] }: Task): string =>
  artifacts.flatMap(({ parts }) => parts.map(({ text }) => text ?? '')).join('')
