import assert from 'node:assert/strict'
import type { Acceptance } from './acceptance.ts'
import type { Door } from './door.ts'

const headOf = async (node: Door, branch: string) => (await node.refs()).find((ref) => ref.branch === branch)?.commit

export const L0: readonly Acceptance[] = [
  {
    clause: 'L0.1',
    title: 'a change in a run branch leaves the protected main line alone',
    run: async ({ node }) => {
      const before = await headOf(node, 'main')
      assert.ok(before, 'the home has a main branch')
      const branch = `runs/conformance-${Date.now()}`
      const written = await node.write(branch, 'plan.md', 'first draft\n')
      assert.ok(written.status < 300, `writing into ${branch} answered ${written.status} ${written.body.code ?? ''}`)
      assert.equal((await node.read(branch, 'plan.md')).body.text, 'first draft\n')
      assert.equal(await headOf(node, branch), written.body.commit)
      assert.equal(await headOf(node, 'main'), before, 'main has moved')
      assert.equal((await node.read('main', 'plan.md')).status, 404)
    },
  },
  {
    clause: 'L0.2',
    title: 'a direct write into the protected main line is refused with a valid token',
    run: async ({ node }) => {
      const before = await headOf(node, 'main')
      const refused = await node.write('main', 'plan.md', 'straight in\n')
      assert.equal(refused.status, 403)
      assert.equal(refused.body.code, 'PROTECTED')
      assert.equal(await headOf(node, 'main'), before, 'main has moved')
    },
  },
]
