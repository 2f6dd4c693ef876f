/**
 * csb files credential: gives git the token by which the command asks the running node, when git asks for a password
 * there, so that it stands in no address, no file of git's and no list of processes. It speaks git's protocol for helpers:
 * one word, and lines of `name=value` on stdin. Anywhere else than at that node it says nothing, and it keeps nothing.
 */
import { text as readAll } from 'node:stream/consumers'
import type { Command } from 'commander'
import { LIMITS, fail } from '@csb/core'
import { acting } from '../context.ts'
import { accessOf } from '../right.ts'
import { t } from '../texts.ts'

/** @param files the command that it stands under */
export function credentialCommand(files: Command): void {
  files
    .command('credential <operation>')
    .description(t('files.credential.about'))
    .addHelpText('after', t('files.credential.help'))
    .action(
      acting<object, [string]>(async ({ directory, out, isJson }, [operation]) => {
        const asked = await readAll(process.stdin)
        if (asked.length > LIMITS.pathChars * 16) fail('TOO_LARGE', { maxBytes: LIMITS.pathChars * 16 })
        // what git would have kept or thrown away is the node's
        const access = operation === 'get' ? await accessOf(directory) : undefined
        if (access !== undefined && isFor(asked, new URL(access.url))) {
          const answer = { username: 'csb', password: access.token }
          out.answer(answer, `username=${answer.username}\npassword=${answer.password}`)
          // git takes no line for an answer of nothing
        } else if (isJson) out.answer({}, '')
      }),
    )
}

/** Does git want to go there? By its own words, as they stand: what else they could be read as is another place. */
function isFor(asked: string, { protocol, host }: URL): boolean {
  const lines = asked.split('\n')
  const said = (name: string) =>
    lines.filter((line) => line.startsWith(`${name}=`)).map((line) => line.slice(name.length + 1))
  const isOne = (name: string, wanted: string) => said(name).length === 1 && said(name)[0] === wanted
  return isOne('protocol', protocol.slice(0, -1)) && isOne('host', host)
}
