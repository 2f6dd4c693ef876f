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
        if (access !== undefined && originIn(asked) === new URL(access.url).origin) {
          const answer = { username: 'csb', password: access.token }
          out.answer(answer, `username=${answer.username}\npassword=${answer.password}`)
          // git takes no line for an answer of nothing
        } else if (isJson) out.answer({}, '')
      }),
    )
}

/** Where git wants to go; undefined where it does not say so. */
function originIn(asked: string): string | undefined {
  const said = new Map(
    asked.split('\n').map((line) => [line.split('=', 1)[0] ?? '', line.slice(line.indexOf('=') + 1)]),
  )
  const place = `${said.get('protocol') ?? ''}://${said.get('host') ?? ''}`
  return URL.canParse(place) ? new URL(place).origin : undefined
}
