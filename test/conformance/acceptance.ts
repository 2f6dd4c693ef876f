/** What an acceptance test is. To add one: put `{ clause, title, run }` into the list of its level. */
import type { Door } from './door.ts'
import type { LocalNode, SpawnOptions } from './nodes.ts'

export type Context = {
  /** the node under test, with the owner's token */
  readonly node: Door
  /** start one more node of one's own; it is stopped and its folder removed when the run ends */
  readonly spawn: (options: SpawnOptions) => Promise<LocalNode>
  /** one more node that is started once, for all tests that ask for it: what earlier ones left there stays */
  readonly friend: () => Promise<LocalNode>
  /** the node under test as a process and a folder; only for tests that say `needsOwnNodes` */
  readonly own: LocalNode
}

export type Acceptance = {
  /** id of the clause, as in protocols/clauses.json */
  readonly clause: string
  readonly title: string
  /** true where it starts nodes, or looks into the folder of one: not to be had with `--target` */
  readonly needsOwnNodes?: boolean
  /** Resolves where the clause holds; rejects with what was seen instead. */
  readonly run: (context: Context) => Promise<void>
}
