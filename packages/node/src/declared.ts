/**
 * identity.json as a person edits it: an entry of `delegations` that is deleted ends its grant, at the next start or at
 * once while the node runs. An entry that was written by hand declares nothing until the owner signs: csb delegate.
 * @clause DEL-003.3.3, DEL-003.3.4
 */
import { watch } from 'node:fs/promises'
import { isNodeError, validate, type Identity } from '@csb/core'
import type { Log, Service } from '@csb/service'
import { FILES, readJson } from './data-folder.ts'

const NODE = { kind: 'node', door: 'timer' } as const

type Watching = { readonly directory: string; readonly service: Service; readonly log: Log }

/** Look at the file now. One that can not be read, as while it is being written, says nothing. */
export async function heedDeclared({ directory, service, log }: Watching): Promise<void> {
  try {
    const { delegations } = validate('Identity', await readJson(directory, 'identity'), 'CONFIG_INVALID')
    for (const entry of delegations.filter(({ delegation_id: id }) => id === undefined))
      log('warn', 'a delegation is declared without a grant', { agent: entry.agent })
    await service.perform(NODE, 'authority.declared', { ids: idsOf(delegations) })
  } catch (error) {
    log('warn', 'what identity.json declares was not heeded', { code: isNodeError(error) ? error.code : String(error) })
  }
}

/** Look at it whenever it changes. @returns ends it */
export function watchDeclared(watching: Watching): () => Promise<void> {
  const stopped = new AbortController()
  const done = (async () => {
    for await (const { filename } of watch(watching.directory, { signal: stopped.signal })) {
      if (filename === FILES.identity) await heedDeclared(watching)
    }
  })().catch((error: unknown) => {
    // the system gives no more of them: it is looked at when the node starts
    if (!stopped.signal.aborted) watching.log('warn', 'identity.json is not watched', { error: String(error) })
  })
  return async () => {
    stopped.abort()
    await done
  }
}

const idsOf = (delegations: Identity['delegations']): string[] => [
  ...new Set(delegations.flatMap(({ delegation_id: id }) => (id === undefined ? [] : [id]))),
]
