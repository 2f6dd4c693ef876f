/** A process that forgets a note and is killed before it has cleared the disk. Folder, point of death, then ids on stdout. */
import { createKeyPair } from '@csb/core'
import { createHome } from '@csb/files'
import { key, openStore } from '@csb/store'
import { NOW, nodeOf } from './open-home.ts'

const [, , folder = '', point = '', secret = ''] = process.argv
const store = await openStore(folder)
const owner = createKeyPair()
const home = await store.transact((tx) => createHome(tx, { owner: owner.did, origin: owner.did, now: NOW }))
const node = nodeOf(store, home)
const note = await node.create(secret)
const other = await node.create('this one stays')
const { erase } = await node.forget(note.entry.id)
const stored = erase.oids.map((oid) => Buffer.from(store.view().get(key('object', home.id, oid)) ?? []).toString('hex'))
if (point === 'after the delete') {
  await store.transact((tx) => {
    for (const oid of erase.oids) tx.del(key('object', home.id, oid))
  })
}
process.stdout.write(JSON.stringify({ home, id: note.entry.id, other: other.entry.id, stored }), () =>
  process.kill(process.pid, 'SIGKILL'),
)
