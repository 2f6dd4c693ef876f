#!/usr/bin/env node
/** The csb command. */
import { Command, CommanderError } from 'commander'
import { EXIT } from '@csb/core'
import { VERSION } from '@csb/node'
import { agentCommands } from './commands/agents.ts'
import { authorityCommands } from './commands/authority.ts'
import { nodeCommands } from './commands/node.ts'
import { noteCommands } from './commands/notes.ts'
import { recordCommands } from './commands/record.ts'
import { t } from './texts.ts'

const program = new Command('csb')
  .description(t('about'))
  .version(VERSION)
  .option('-d, --data <dir>', t('option.data'))
  .option('--json', t('option.json'))
  .enablePositionalOptions()
  .exitOverride()
  .addHelpText('after', t('help.exit'))

nodeCommands(program)
noteCommands(program)
agentCommands(program)
authorityCommands(program)
recordCommands(program)
// options of the program may stand behind the command's name as well
const everyOne = (command: Command): Command[] => [command, ...command.commands.flatMap(everyOne)]
for (const command of program.commands.flatMap(everyOne)) {
  command.option('-d, --data <dir>', t('option.data')).option('--json', t('option.json')).exitOverride()
}

try {
  await program.parseAsync()
} catch (error) {
  if (!(error instanceof CommanderError)) throw error
  process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.input
}
