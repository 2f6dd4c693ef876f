/** What the command says of an error and what to do next: the part of the catalogue that texts.ts takes in. */

export const ERROR_TEXTS = {
  'error.line': 'csb: {message} [{code}]',
  // where the table's sentence is true and says too little; the word behind the code is `reason` in the details
  'message.PEER_UNREACHABLE.not_running': 'The node in that folder does not run.',
  'message.PEER_UNREACHABLE.not_answering': 'The node in that folder does not answer.',
  'message.PASSPHRASE.none_given': "The owner's key needs a passphrase, or a word that it should have none.",
  'message.PASSPHRASE.no_new': 'The key that follows needs a passphrase, or a word that it should have none.',
  'message.PASSPHRASE.too_short': 'That passphrase is too short.',
  'message.PASSPHRASE.wrong': 'The passphrase is wrong.',
  'message.PASSPHRASE.sealed_already': "The owner's key is sealed already.",
  'message.INVALID_INPUT.not_a_folder': 'What --data names is a file. The data of a node is a folder.',
  'message.INVALID_INPUT.not_an_archive': 'That is a folder. A home is taken in from one file.',
  'message.INVALID_INPUT.no_terminal': 'There is no terminal to ask at, so nothing was decided.',
  'message.GRANT_INVALID.already_used': 'The card {card} was decided before: it is {state}.',
  'message.DENIED.left_to_the_owner':
    'Whom the node trusts and what it runs is left to its owner here, since no card shows it.',
  'message.DENIED.run_of_agent':
    "That takes the owner's key. In a run of an agent (CSB_RUN, CSB_URL or CSB_TOKEN is set) nothing is done as the owner.",
  'message.LEASE_REQUIRED.run_without_token':
    'A run of an agent asks by the token in CSB_TOKEN, and there is none. Nothing is done as the owner instead.',
  'message.DENIED.needs_changes': 'The owner gave this back to be changed: {words}',
  'message.ALREADY_HERE': 'That home is here already: {home}. Nothing was taken in.',
  'message.ALREADY_HERE.file': 'There is a file of that name already. Nothing was written.',
  'message.INVALID_INPUT.in_data_folder': 'A recovery key in the data folder is lost together with it.',
  'message.INVALID_INPUT.no_such_folder': 'There is no such folder.',
  'message.MALFORMED.not_a_recovery_key': 'That is no file with a recovery key.',
  'message.PASSPHRASE.no_recovery': 'The file with the recovery key has a passphrase, and none was given.',
  'message.PASSPHRASE.no_new_recovery': 'A recovery key needs a passphrase.',
  'message.HOME_LOCKED.key_before': 'That is not the key which this folder has, so the node must not run meanwhile.',
  'message.HOME_LOCKED.no_right': 'The node runs, and its command line has no right any more.',
  'message.CONFLICT.recovery_set': 'A recovery key is set already.',
  'message.GRANT_INVALID.key_elsewhere': "The owner's key was changed elsewhere, and this folder has the one before.",
  'message.CONFIG_INVALID.missing': 'That folder holds keys of a node, and its identity.json is missing.',

  'hint.ALREADY_INITIALISED': 'Start it with: csb start --data {directory}. For another node choose another --data.',
  'hint.AGENT_FAILED': 'Run its command by hand with a JSON object on its stdin: csb agent list shows the command.',
  'hint.AGENT_TIMEOUT': 'Give it longer: csb agent attach ID --timeout 10m -- COMMAND.',
  'hint.BUSY': 'Wait a moment and try again.',
  'hint.CLEARANCE': 'The owner may raise it: csb share DID --level LEVEL.',
  'hint.CONFIG_INVALID': 'Correct what is named above; schemas/config-v1.schema.json lists what there is.',
  'hint.CONFIG_INVALID.missing':
    'Put identity.json back from a copy, or make a new node in another folder: nothing was changed.',
  'hint.DATA_TOO_NEW': 'Install the newer version that wrote it; nothing was changed.',
  'hint.DATA_TOO_OLD':
    'Nothing was changed. Take what is in it out with the version that wrote it (csb files export), make a node in another folder with this one (csb init), and take it in there (csb files import).',
  'hint.DENIED': 'Ask its owner to trust you: csb trust DID --ceiling LEVEL, at that node.',
  'hint.DENIED.left_to_the_owner':
    'The owner does it, at the command line of the node: csb trust, csb agent attach. Or hand out a lease under which nothing from outside was read yet: csb lease --for NAME',
  'hint.DENIED.run_of_agent':
    'Ask the node for what you need (csb forget, csb files merge, csb lease --narrow): what only the owner may let happen waits there as a card. Are you the owner? Unset CSB_RUN, CSB_URL and CSB_TOKEN.',
  'hint.DENIED.needs_changes':
    'Change it, and ask again. As it is it can be asked for again a day after the card {card}.',
  'hint.DISK_FULL': 'Free some space, then do it again: nothing of it was kept.',
  'hint.GRANT_INVALID': 'See what is granted with: csb grants',
  'hint.GRANT_INVALID.type_rule.level':
    'To override goes with everything, and is not passed on: leave --scope, --task and --depth out.',
  'hint.GRANT_INVALID.malformed.branches':
    'A branch is its whole name, as in main; runs/* is all below runs/, and * is all. A * stands nowhere else.',
  'hint.GRANT_INVALID.malformed.paths': 'A path begins with /, as in /docs with all below it; / is all.',
  'hint.GRANT_INVALID.malformed.deny_paths': 'A path begins with /, as in /docs with all below it; / is all.',
  'hint.GRANT_INVALID.malformed': 'That field does not fit; grant-v1.schema.json says what it takes.',
  'hint.GATE_REQUIRED': 'The owner decides with: csb gate show {card}, csb gate approve {card}',
  'hint.GATE_STALE': 'The field named is not what it was. Ask for it again, and look at the new card: csb gate list',
  'hint.HOME_LOCKED.key_before': 'Stop the node (process {pid}), and do it again.',
  'hint.HOME_LOCKED.no_right': 'Stop the node (process {pid}), and do it again.',
  'hint.HOME_LOCKED': 'Process {pid} holds it. Stop that one, or use another folder with --data.',
  'hint.INSECURE_LISTEN':
    'Leave --host out, or say --insecure where nobody can listen in, or a proxy with TLS stands in front.',
  'hint.INTERNAL': 'If it comes again, run it with CSB_LOG_LEVEL=debug and report what it says.',
  'hint.INVALID_INPUT.in_data_folder': 'Name a file elsewhere: on another disk, or one that you print.',
  'hint.INVALID_INPUT.no_such_folder': 'Make it first, or name a file in another one.',
  'hint.MALFORMED.not_a_recovery_key': 'Name the file that csb key recovery new wrote.',
  'hint.CONFLICT.recovery_set': 'To put another one in its place: csb key recovery new FILE --replace OLDFILE',
  'hint.INVALID_INPUT.not_a_folder': 'Name a folder with --data, or leave it out.',
  'hint.INVALID_INPUT.not_an_archive': 'Name the file that csb files export made. Notes of a folder: csb import FOLDER',
  'hint.INVALID_INPUT.no_terminal':
    'Run it in a terminal. Or read csb gate show {card}, and say: csb gate {decision} {card} --yes --digest DIGEST',
  'hint.LEASE_EXPIRED': 'Hand out a new one with: csb lease --for NAME',
  'hint.LEASE_REVOKED':
    'Ask for a new one. Are you the owner, and was your key changed elsewhere? csb key take DIR. Was it not you: stop the node, then csb key recover FILE',
  'hint.LEASE_REQUIRED.run_without_token':
    'A run on a message without authority is given none: who sent it asks again with authority. Are you the owner? Unset CSB_RUN and CSB_URL.',
  'hint.LEASE_REQUIRED': 'Hand one out with: csb lease --for NAME',
  'hint.NOT_FOUND': 'Names are listed by: csb note list, csb agent list, csb files refs, csb grants.',
  'hint.NOT_FOUND.not_explained':
    'A clone that shows a part of the home has ids of its own: run this in the clone, or name the run that git log shows there behind Csb-Run: csb explain RUN',
  'hint.NOT_INITIALISED': 'Make one with: csb init --data {directory}',
  'hint.PASSPHRASE': 'Set CSB_PASSPHRASE, or run the command in a terminal that can ask.',
  'hint.PASSPHRASE.none_given': 'Set CSB_PASSPHRASE, run it in a terminal that can ask, or say --unsealed.',
  'hint.PASSPHRASE.no_new': 'Set CSB_NEW_PASSPHRASE, run it in a terminal that can ask, or say --unsealed.',
  'hint.PASSPHRASE.too_short': 'Take at least {shortest} characters.',
  'hint.PASSPHRASE.wrong':
    'Try again; CSB_PASSPHRASE wins over what is typed. Where it is lost: csb key recover FILE, with a recovery key.',
  'hint.PASSPHRASE.no_recovery': 'Set CSB_RECOVERY_PASSPHRASE, or run it in a terminal that can ask.',
  'hint.PASSPHRASE.no_new_recovery': 'Set CSB_NEW_PASSPHRASE, or run it in a terminal that can ask.',
  'hint.ALREADY_HERE.file': 'Name another file.',
  'hint.PASSPHRASE.sealed_already': 'There is nothing to do.',
  'hint.PEER_UNREACHABLE': 'See who is there with: csb peers. Connect to one with: csb peers MULTIADDR',
  'hint.PEER_UNREACHABLE.not_running': 'Start it with: csb start --data {directory}',
  'hint.PEER_UNREACHABLE.not_answering': 'Look at what it logs; stop it and start it again.',
  'hint.PORT_IN_USE': 'This one is free, with the two after it: csb start --data {directory} --port {next}',
  'hint.PROTECTED': 'Write into a run branch instead, as runs/NAME.',
  'hint.RECORD_HELD': 'See why with: csb record witnessed. After a restored backup: csb record resume --after-restore',
  'hint.GRANT_INVALID.holder_mismatch':
    'It was made out to somebody else. csb grants marks with * what this node or its owner may pass on.',
  'hint.GRANT_INVALID.already_used': 'What became of it: csb gate show {card}. What waits: csb gate list',
  'hint.ALREADY_HERE': 'See what it holds with: csb files refs --home {home}',
  'hint.GRANT_INVALID.key_elsewhere':
    'Take the key from where the change was made: csb key take DIR. Was it not you: csb key recover FILE. See: csb key show',
  'hint.SCOPE_EXCEEDED': 'See what is granted with: csb grants',
  'hint.TIMEOUT': 'Try again; csb peers shows whether it is connected.',
  'message.UNAUTHENTICATED.no_token': 'There is no token whose lease could be narrowed.',
  'hint.UNAUTHENTICATED.no_token': 'Put it into CSB_TOKEN, as it stands there for an agent that is run.',
  'hint.UNAUTHENTICATED':
    'What was shown is the token in CSB_TOKEN where that is set, as in a run of an agent, and ends with it; else the one in owner.token of the data folder, which is for the node of that folder only.',
} as const
