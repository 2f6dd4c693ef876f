/** npm run bench [-- wire|store|files|authority ...]: figures side by side with their anchors, in one run. */
import { benchAuthority } from './authority.ts'
import { benchFiles } from './files.ts'
import { benchStore } from './store.ts'
import { benchWire } from './wire.ts'

const BENCHES: Readonly<Record<string, () => Promise<void>>> = {
  store: benchStore,
  wire: benchWire,
  files: benchFiles,
  authority: benchAuthority,
}

const asked = process.argv.slice(2)
const unknown = asked.filter((name) => !Object.hasOwn(BENCHES, name))
if (unknown.length > 0) {
  process.stderr.write(`no bench named ${unknown.join(', ')}; there are ${Object.keys(BENCHES).join(', ')}\n`)
  process.exitCode = 2
} else {
  for (const [name, bench] of Object.entries(BENCHES)) if (asked.length === 0 || asked.includes(name)) await bench()
}
