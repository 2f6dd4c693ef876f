/** Who may speak for a person: how that is granted, checked, handed over and ended. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '@csb/core'
import type { Acceptance } from './acceptance.ts'
import { SCOPE, delegate, ordinary, stage } from './DEL-stage.ts'
import type { LocalNode } from './nodes.ts'

/** As the document has it. */
const CERTIFICATE = ['id', 'grantor', 'grantee', 'granted_at', 'expires_at', 'scope', 'level', 'signature', 'revocable']

export const DEL: readonly Acceptance[] = [
  {
    clause: 'DEL-001',
    title: 'an agent speaks for its owner about everything, about one thing for a time, or once',
    needsOwnNodes: true,
    run: async (context) => {
      const { own } = context
      const { did, say } = await stage(context)
      const typeOf = ({ grant: { delegation } }: Awaited<ReturnType<typeof delegate>>) => [
        delegation.type,
        delegation.expires_at === null ? null : delegation.expires_at - delegation.granted_at,
      ]
      const all = await delegate(own, '*')
      assert.deepEqual(typeOf(all), ['global', null])
      for (const scope of [SCOPE, ['payments']])
        assert.equal(await say({ delegation: all.id, scope }), 'with authority from Ines')

      const some = await delegate(own, did, '--scope', 'reports', '--ttl', '2h')
      assert.deepEqual(typeOf(some), ['scoped', 7_200_000])
      assert.equal(await say({ delegation: some.id, scope: ['reports/weekly'] }), 'with authority from Ines')
      assert.equal(await say({ delegation: some.id, scope: ['reports-of-others'] }), ordinary('out_of_scope'))

      const once = await delegate(own, did, '--scope', 'reports', '--task', 'task_weekly')
      assert.equal(typeOf(once)[0], 'single')
      assert.equal(await say({ delegation: once.id }), 'with authority from Ines')
      assert.equal(await say({ delegation: once.id }), ordinary('already_used'))

      const narrow = delegate(own, did, '--scope', 'reports', '--level', 'override')
      await assert.rejects(narrow, ({ stdout }: { stdout?: string }) => stdout?.includes('"type_rule"') === true)
      await own.command('revoke', all.id)
    },
  },
  {
    clause: 'DEL-003.3.1',
    title: 'what is granted is a signed certificate with the members of the document; a changed one is none',
    needsOwnNodes: true,
    run: async (context) => {
      const { own } = context
      const { friend, did } = await stage(context)
      const { grant, hash } = await delegate(own, did, '--scope', 'reports', '--level', 'execute')
      const { delegation } = grant
      const lacking = CERTIFICATE.filter((member) => !Object.hasOwn(delegation, member))
      assert.deepEqual(lacking, [], 'members are missing')
      assert.equal((await friend.door.call('POST', '/v1/grants', { grant })).status, 201)
      const changes = { id: 'del_other', scope: ['*'], level: 'override', expires_at: null, grantee: 'somebody else' }
      for (const [member, value] of Object.entries(changes)) {
        const changed = { ...grant, delegation: { ...delegation, [member]: value } }
        const answer = await friend.door.call<{ code?: string }>('POST', '/v1/grants', { grant: changed })
        assert.deepEqual([answer.status, answer.body.code], [403, 'GRANT_INVALID'], member)
      }
      assert.ok((await friend.door.grants()).some((kept) => kept.hash === hash))
    },
  },
  {
    clause: 'DEL-003.3.2',
    title: 'a message beyond what was delegated counts as an ordinary one, and says which check failed',
    needsOwnNodes: true,
    run: async (context) => {
      const { friend, did, say } = await stage(context)
      const { own } = context
      const given = await delegate(own, did, '--scope', 'reports', '--level', 'request')
      const before = (await friend.door.inbox()).length
      assert.equal(await say({ delegation: given.id, scope: SCOPE }), 'with authority from Ines')
      assert.equal(await say({ delegation: given.id, scope: ['payments'] }), ordinary('out_of_scope'))
      assert.equal(await say({ delegation: given.id, scope: SCOPE, level: 'execute' }), ordinary('level_exceeds'))
      const news = (await friend.door.inbox()).slice(0, -before || undefined)
      assert.deepEqual(news.map(({ authority }) => authority?.reason ?? '').sort(), [
        '',
        'level_exceeds',
        'out_of_scope',
      ])
    },
  },
  {
    clause: 'DEL-003.3.3',
    title: 'a delegation is declared in identity.json, brought over the wire, and written down by word of mouth',
    needsOwnNodes: true,
    run: async (context) => {
      const { own } = context
      const { friend, did: audience, say } = await stage(context)
      const given = await delegate(own, audience, '--scope', 'reports', '--level', 'execute')
      const entries = (await identityOf(own)).delegations
      assert.ok(
        entries.some((entry) => entry.delegation_id === given.id),
        'identity.json does not name it',
      )
      const brought = await delegate(own, '*', '--to', audience, '--send')
      assert.ok(
        (await friend.door.grants()).some(({ hash }) => hash === brought.hash),
        'no grant came over the wire',
      )

      assert.equal(await say({ level: 'execute', scope: SCOPE }), ordinary('untrusted_root'))
      const { did } = await own.door.status()
      const told = ['--delegate', 'Ines on the phone', '--scope', 'reports', '--level', 'execute']
      await friend.command('trust', did, '--name', 'laptop', ...told)
      assert.equal(await say({ level: 'execute', scope: SCOPE }), 'with authority from Ines on the phone')
    },
  },
  {
    clause: 'DEL-003.3.4',
    title: 'a delegation ends by a word, and when its entry is deleted from identity.json',
    needsOwnNodes: true,
    run: async (context) => {
      const { own } = context
      const { did, say } = await stage(context)
      const given = ['--scope', 'reports', '--level', 'execute'] as const
      const [one, other] = [await delegate(own, did, ...given), await delegate(own, did, ...given)]
      for (const { id } of [one, other])
        assert.equal(await say({ delegation: id, scope: SCOPE }), 'with authority from Ines')
      await own.command('revoke', one.id)
      assert.equal(await say({ delegation: one.id, scope: SCOPE }), ordinary('revoked'))
      const identity = await identityOf(own)
      const delegations = identity.delegations.filter((entry) => entry.delegation_id !== other.id)
      await writeFile(join(own.directory, 'identity.json'), JSON.stringify({ ...identity, delegations }, null, 2))
      const isOver = async () => (await say({ delegation: other.id, scope: SCOPE })) === ordinary('revoked')
      await until(isOver, 30_000, 'the entry is gone and the delegation is not')
    },
  },
]

async function identityOf({ directory }: LocalNode) {
  const text = await readFile(join(directory, 'identity.json'), 'utf8')
  return JSON.parse(text) as { delegations: { delegation_id?: string }[] }
}
