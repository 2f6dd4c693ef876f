#!/usr/bin/env node
/** The csb command: its frame, its help, its errors of usage. What each command does stands in commands/. */
import { Command, CommanderError, Option } from 'commander'
import { EXIT, NodeError } from '@csb/core'
import { VERSION } from '@csb/node'
import { agentCommands } from './commands/agents.ts'
import { authorityCommands } from './commands/authority.ts'
import { fileCommands } from './commands/files.ts'
import { gateCommands } from './commands/gate.ts'
import { keyCommands } from './commands/keys.ts'
import { leaseCommands } from './commands/leases.ts'
import { nodeCommands } from './commands/node.ts'
import { noteCommands } from './commands/notes.ts'
import { peerCommands } from './commands/peers.ts'
import { recordCommands } from './commands/record.ts'
import { reportError, visible } from './terminal.ts'
import { t } from './texts.ts'

const WIDTH = 100
const args = process.argv.slice(2)
const isJson = (args.includes('--') ? args.slice(0, args.indexOf('--')) : args).includes('--json')

// whoever read the output has seen enough
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })

const program = new Command('csb')
  .usage(t('usage.frame'))
  .version(VERSION, '-V, --version', t('option.version'))
  // everybody knows it, and the whole help has to fit a screen; the last line names it
  .addHelpOption(new Option('-h, --help', t('option.help')).hideHelp())
  .helpCommand(false)
  .enablePositionalOptions()
  .exitOverride()
  .configureHelp({
    helpWidth: Math.min(process.stdout.columns || WIDTH, WIDTH),
    subcommandTerm: (command) => [command.name(), ...command.registeredArguments.map(shownArgument)].join(' '),
  })
  .configureOutput({
    // with --json the error is the answer, below
    writeErr: (text) => (isJson ? true : process.stderr.write(visible(text))),
    outputError: (text, write) => write(text.replace(/^error: /, 'csb: ')),
  })
  .addHelpText('after', t('help.after'))

// this one too
program.options.find(({ long }) => long === '--version')?.hideHelp()

nodeCommands(program)
noteCommands(program)
fileCommands(program)
agentCommands(program)
peerCommands(program)
authorityCommands(program)
leaseCommands(program)
keyCommands(program)
gateCommands(program)
recordCommands(program)

program.commandsGroup(t('group.any'))
for (const command of everyOne(program)) {
  if (command !== program) command.helpOption('-h, --help', t('option.help'))
  // options of the program may stand behind the command's name as well
  command.option('-d, --data <dir>', t('option.data')).option('--json', t('option.json'))
  command.helpCommand(false).showHelpAfterError(t('usage.hint', { command: nameOf(command) }))
}

try {
  await program.parseAsync()
} catch (error) {
  if (!(error instanceof CommanderError)) reportError(error, isJson)
  else if (error.exitCode === 0) process.exitCode = EXIT.ok
  else {
    process.exitCode = EXIT.input
    if (isJson) reportError(new NodeError('INVALID_INPUT', { problem: problemOf(error) }), true)
  }
}

function everyOne(command: Command): Command[] {
  return [command, ...command.commands.flatMap(everyOne)]
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`
}

function shownArgument(argument: Command['registeredArguments'][number]): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`
  return argument.required ? `<${name}>` : `[${name}]`
}

function problemOf({ code, message }: CommanderError): string {
  return code === 'commander.help' ? t('usage.command') : message.replace(/^error: /, '')
}
