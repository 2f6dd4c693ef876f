/** A node as a process of its own, so that its memory is its own: tells where its homes are, ends when its parent does. */
import { startGitNode, type GitFolder } from '../interop/git-rig.ts'

const made = JSON.parse(process.argv[2] ?? '') as GitFolder
const rig = await startGitNode(made)
process.send?.({ urls: made.homes.map((home) => rig.url(undefined, home)) })
process.on('disconnect', () => {
  void rig.node.stop().then(() => process.exit(0))
})
