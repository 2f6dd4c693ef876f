import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '@csb/core'
import type { Acceptance, Context } from './acceptance.ts'
import type { LocalNode } from './nodes.ts'

type Given = { readonly id: string; readonly hash: string }

const ECHO = {
  id: 'echo',
  name: 'echo',
  description: 'says that it was heard',
  command: [process.execPath, '-e', "process.stdout.write(JSON.stringify({result:{text:'heard'}}))"],
  skills: [{ id: 'echo', name: 'echo', description: 'echo' }],
  accept: 'anyone',
}
const SCOPE = ['reports']

export const DEL: readonly Acceptance[] = [
  {
    clause: 'DEL-003.3.2',
    title: 'a message beyond what was delegated counts as an ordinary one, and says which check failed',
    needsOwnNodes: true,
    run: async (context) => {
      const { friend, say } = await stage(context, 'checking')
      const given = await delegate(context.own, friend, 'request')
      assert.equal(await say({ delegation: given.id, scope: SCOPE }), 'with authority from Ines')
      assert.equal(await say({ delegation: given.id, scope: ['payments'] }), ordinary('out_of_scope'))
      assert.equal(await say({ delegation: given.id, scope: SCOPE, level: 'execute' }), ordinary('level_exceeds'))
      const inbox = JSON.parse(await friend.command('inbox')) as { items: { authority: { reason?: string } }[] }
      assert.deepEqual(inbox.items.map(({ authority }) => authority.reason ?? '').sort(), [
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
      const { friend, say } = await stage(context, 'told')
      const given = await delegate(own, friend, 'execute')
      const entries = (await identityOf(own)).delegations
      assert.ok(
        entries.some((entry) => entry.delegation_id === given.id),
        'identity.json does not name it',
      )
      await own.command('delegate', '--to', (await friend.door.status()).did, '--audience', '*', '--send')
      const held = JSON.parse(await friend.command('grants')) as {
        items: { grant: { delegation: { grantor: string } } }[]
      }
      assert.ok(held.items.length > 2, 'no grant came over the wire')

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
      const { friend, say } = await stage(context, 'ending')
      const [one, other] = [await delegate(own, friend, 'execute'), await delegate(own, friend, 'execute')]
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

const ordinary = (reason: string): string => `processed without authority: ${reason}`

/** A friend who honours the owner of the node under test, and listens. */
async function stage({ own, node, spawn }: Context, name: string) {
  const friend = await spawn({ name })
  const { did, addresses } = await friend.door.status()
  await node.dial(addresses[0] ?? '')
  await friend.command('trust', (await node.status()).owner.did, '--name', 'Ines', '--ceiling', 'execute')
  await friend.door.attach(ECHO)
  return { friend, say: (more: object) => own.door.say('echo', did, more) }
}

async function delegate(own: LocalNode, friend: LocalNode, level: string): Promise<Given> {
  const { did } = await friend.door.status()
  const given = ['--audience', did, '--scope', 'reports', '--level', level]
  return JSON.parse(await own.command('delegate', ...given)) as Given
}

async function identityOf({ directory }: LocalNode) {
  const text = await readFile(join(directory, 'identity.json'), 'utf8')
  return JSON.parse(text) as { delegations: { delegation_id?: string }[] }
}
