/** What is hidden in a node: one word of its own for each way in which something may be hidden. */
import { changeRef, getRef } from '@csb/files'
import { attach, cardFor, messageOf } from './house.ts'
import { grantOf, remember, taskOf, type World } from './every-operation-rig.ts'

/** Why it is hidden: by its label, by the place where it lies, or because it speaks of everything. */
export type Why = 'label' | 'place' | 'all'

/** Words that stand nowhere but in what is hidden. */
export const PLANTED: Readonly<Record<string, Why>> = {
  zqnote: 'label',
  zqsealed: 'label',
  zqprivatename: 'label',
  zqoutsidetext: 'place',
  zqoutsidename: 'place',
  zqbranch: 'place',
  zqsnapshot: 'place',
  zqtag: 'place',
  zqgonebranch: 'place',
  zqdeletedname: 'place',
  zqmessage: 'place',
  zqtask: 'all',
  zqinbox: 'all',
  zqreason: 'all',
  zqgrantee: 'all',
  zqtrusted: 'all',
  zqcard: 'all',
  zqcommand: 'all',
}

export type Plants = {
  readonly note: string
  readonly task: string
  readonly grant: string
  readonly card: string
  readonly heads: readonly string[]
  readonly run: string
}

/** One of each, by the owner. */
export async function plant(world: World): Promise<Plants> {
  const { house, clock } = world
  const write = (branch: string, path: string, text: string, label: string, message?: string) =>
    house.owned<{ commit: string }>('files.write', {
      branch,
      path,
      text,
      label,
      ...(message === undefined ? {} : { message }),
    })
  const note = await remember(world, 'zqnote', 'private:owner')
  await write('runs/x', 'drafts/sealed.md', 'zqsealed', 'sealed:owner')
  await write('runs/x', 'drafts/zqprivatename.md', 'a name', 'private:owner')
  const { commit } = await write('runs/x', 'other/zqoutsidename.md', 'zqoutsidetext', 'public:owner', 'zqmessage')
  await write('runs/zqbranch', 'drafts/a.md', 'another draft', 'public:owner')
  await house.owned('files.snapshot', { name: 'zqsnapshot', of: 'runs/x' })
  await house.store.transact((tx) =>
    changeRef(
      tx,
      house.home,
      { name: 'refs/tags/zqtag', from: null, to: commit },
      { now: clock.now(), outside: false },
    ),
  )
  await write('runs/zqgonebranch', 'drafts/a.md', 'gone', 'public:owner')
  await house.owned('files.removeBranch', { branch: 'runs/zqgonebranch' })
  await write('runs/z', 'other/zqdeletedname.md', 'deleted', 'public:owner')
  const merge = () => house.owned('files.merge', { from: 'runs/z', into: 'runs/y' })
  await merge()
  await house.owned('files.write', { branch: 'runs/z', path: 'other/zqdeletedname.md', delete: true })
  await merge()
  const task = await taskOf(world, house.owning, 'show zqtask')
  await world.friend.owned('agents.send', {
    did: house.key.did,
    agent: 'clerk',
    params: { message: messageOf('show zqinbox') },
  })
  await house.owned('memory.delete', { id: await remember(world), reason: 'zqreason' })
  const grant = await house.grant({
    to: { name: 'zqgrantee', did: world.friend.key.did },
    type: 'scoped',
    scope: ['reports'],
    ttlMs: 3_600_000,
  })
  await house.owned('authority.trust', { did: grantOf(house).delegation.grantee_key, name: 'zqtrusted' })
  const card = await cardFor(house.owned('memory.forget', { ids: [note], reason: 'zqcard' }), house.owned)
  await attach(house, { id: 'vault', command: [process.execPath, 'zqcommand'] })
  const heads = ['runs/x', 'runs/zqbranch', 'memory'].map(
    (branch) => getRef(house.store.view(), house.home, branch)?.commit ?? '',
  )
  const run = (await house.records()).findLast(({ effect }) => effect['branch'] === 'runs/x')?.run ?? ''
  const { hash } = (
    await house.owned<{ items: { hash: string; grant: { delegation: { id: string } } }[] }>('authority.grants')
  ).items.find((one) => one.grant.delegation.id === grant.delegation.id) ?? { hash: '' }
  return { note, task, grant: hash, card: card.id, heads, run }
}
