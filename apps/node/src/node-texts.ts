/** What the command says of the node and its owner: the part of the catalogue that texts.ts takes in. */

export const NODE_TEXTS = {
  'init.about': 'make a node: its key, the key of its owner, its home',
  'init.name': 'name of the node',
  'init.owner': 'name of its owner',
  'init.unsealed': "leave the owner's key without a passphrase",
  'init.join': 'be another node of the owner whose node lies in DIR, with the same home',
  'init.no-home': 'a node without a home, for a gateway',
  'init.no-home.done': 'none',
  'init.my-node': 'my node',
  'init.passphrase': "A passphrase seals the owner's key. At least {shortest} characters:",
  'init.again': 'Once more:',
  'init.differ': 'They differ. Try again.',
  'init.short': 'That is too short. Try again.',
  'init.done': 'Made {name} in {directory}\n  node   {did}\n  owner  {owner} {ownerDid}\n  home   {home}',
  'init.unsealed.notice':
    "NOTE: the owner's key is not sealed. Who can read {directory} can act as {owner}.\n      Seal it with: {csb} key seal{data}",

  'start.about': 'run the node until it is stopped',
  'start.init': 'make the node first where there is none',
  'start.port': 'HTTP port; peers connect at the two after it (default 7480)',
  'start.host': 'address of the HTTP door (default 127.0.0.1)',
  'start.insecure': 'let the HTTP door listen beyond this machine without TLS',
  'start.listen': 'multiaddr to listen at for peers; may be given again',
  'start.bootstrap': 'multiaddr of a peer to find others by; may be given again',
  'start.no-mdns': 'do not look for nodes on the local network',
  'start.ready':
    '{name} is up.\n  id       {did}\n  url      {url}\n  peers    {addresses}\n  data     {directory}\n  token    {directory}/owner.token\nNext, in another terminal:\n  {csb} status{data}\n  {csb} note add "The spare key hangs behind the mill."{data}\nStop it with Ctrl-C.',
  'start.stopping': 'Stopping.',

  'status.about': 'how the node is',
  'status.line':
    '{name}  {did}\n  owner    {owner}\n  home     {home}\n  url      {url}\n  peers    {connected} connected, {known} known\n  record   {size} entries, {vouched}\n{addresses}',
  'status.short': '{name}  {did}\n  url      {url}',
  'status.address': '  address  {address}',
  'status.copy': '  copy     {home} of {owner}',

  'owner.passphrase': 'Passphrase of {owner}:',
} as const
