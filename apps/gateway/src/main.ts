#!/usr/bin/env node
/**
 * A gateway as a process of its own, for a small server: a node without a home, that serves agents of other nodes to
 * clients in the cloud. It makes itself at its first start; configuration and flags are those of `csb start`.
 *
 * It answers nobody without a token. One is handed out on the same machine, while it runs:
 * `csb lease --data DIR --for NAME` gives the right to send to agents, and prints the token once;
 * `csb grants --data DIR` and `csb revoke ID --data DIR` list and end them. In a container the same command is
 * `node apps/node/dist/main.js lease --for NAME`.
 */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { fail, systemClock, toNodeError } from '@csb/core'
import {
  VERSION,
  defaultDirectory,
  forgetSecrets,
  initNode,
  passphraseOf,
  readOwner,
  readSettings,
  readText,
  serveNode,
  type Flags,
  type RunningNode,
} from '@csb/node'

const USAGE = `Usage: csb-gateway [options]

a gateway of csb: agents of other nodes, for A2A clients, without a home of its own

  -d, --data <dir>         its folder, made at the first start (default: $CSB_DATA or ~/.csb)
  --name <name>            its name, and its owner's at the first start (default: gateway)
  -p, --port <port>        HTTP port; peers connect at the two after it (default 7480)
  --host <address>         address of the HTTP door (default 127.0.0.1)
  --insecure               let the HTTP door listen beyond this machine without TLS
  --listen <multiaddr>     where to listen for peers; may be given again
  --bootstrap <multiaddr>  a peer to find others by; may be given again
  --no-mdns                do not look for nodes on the local network
  --json                   answer in one line of JSON
  -h, --help, --version

The owner's key is sealed where CSB_PASSPHRASE is set at the first start.
A token for a client: csb lease --data <dir> --for NAME
Exit codes: 0 done, 1 fault, 2 bad input, 3 refused, 4 not found, 5 busy or unreachable.
`

const OPTIONS = {
  data: { type: 'string', short: 'd' },
  name: { type: 'string' },
  port: { type: 'string', short: 'p' },
  host: { type: 'string' },
  insecure: { type: 'boolean' },
  listen: { type: 'string', multiple: true },
  bootstrap: { type: 'string', multiple: true },
  'no-mdns': { type: 'boolean' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean' },
} as const

type Values = ReturnType<typeof readArguments>

const isJson = process.argv.includes('--json')
const say = (line: string) => process.stderr.write(`${line}\n`)

try {
  const values = readArguments()
  if (values.help === true) process.stdout.write(USAGE)
  else if (values.version === true) process.stdout.write(`${VERSION}\n`)
  else await serve(resolve(values.data ?? defaultDirectory()), values)
} catch (thrown) {
  const error = toNodeError(thrown)
  process.exitCode = error.row.exit
  if (isJson) process.stdout.write(`${JSON.stringify({ error: error.toJSON() })}\n`)
  else {
    say(`csb-gateway: ${error.message} [${error.code}]`)
    for (const [name, value] of Object.entries(error.details)) say(`  ${name}: ${JSON.stringify(value)}`)
    if (error.code === 'INTERNAL' && error.cause instanceof Error) say(`  ${error.cause.message.split('\n', 1)[0]}`)
  }
}

/** @throws INVALID_INPUT */
function readArguments() {
  try {
    return parseArgs({ options: OPTIONS }).values
  } catch (error) {
    return fail('INVALID_INPUT', { problem: (error as Error).message, usage: 'csb-gateway --help' }, error)
  }
}

async function serve(directory: string, values: Values): Promise<void> {
  const flags = flagsOf(values)
  const isMaking = (await readText(directory, 'identity')) === undefined
  if (isMaking) await make(directory, values.name ?? 'gateway')
  forgetSecrets(isMaking)
  const settings = await readSettings(directory, flags)
  const owner = (await readText(directory, 'owner')) === undefined ? undefined : await readOwner(directory)
  await serveNode(directory, settings, {
    ready: (node) => {
      if (owner?.isSealed === false) say(`NOTE: the owner's key in ${directory} is not sealed.`)
      process.stdout.write(readyText(node, directory))
    },
    stopping: () => {
      if (!isJson) say('Stopping.')
    },
  })
}

async function make(directory: string, name: string): Promise<void> {
  const passphrase = passphraseOf()
  const custody = passphrase === undefined ? ('unsealed' as const) : { passphrase }
  await initNode({ directory, name, custody, withHome: false, now: systemClock.now() })
  say(`Made a gateway in ${directory}`)
}

function flagsOf({ port, host, insecure, listen, bootstrap, ...values }: Values): Flags {
  if (port !== undefined && !/^[0-9]{1,5}$/.test(port)) fail('INVALID_INPUT', { option: '--port', value: port })
  return {
    ...(port === undefined ? {} : { port: Number(port) }),
    ...(host === undefined ? {} : { host }),
    ...(insecure === undefined ? {} : { insecure }),
    ...(listen === undefined ? {} : { listen }),
    ...(bootstrap === undefined ? {} : { bootstrap }),
    ...(values['no-mdns'] === true ? { mdns: false } : {}),
  }
}

function readyText({ identity, url, addresses }: RunningNode, directory: string): string {
  const { name, did } = identity
  if (isJson) return `${JSON.stringify({ ready: true, name, did, home: null, url, addresses, pid: process.pid })}\n`
  return [
    `${name} is up.`,
    `  id       ${did}`,
    `  url      ${url}`,
    `  card     ${url}/agents/<did of a node>/<agent>/agent-card.json`,
    `  peers    ${addresses.join('\n           ')}`,
    `  data     ${directory}`,
    `A token for a client: csb lease --data ${directory} --for NAME`,
    '',
  ].join('\n')
}
