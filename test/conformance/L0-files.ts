import assert from 'node:assert/strict'
import type { Acceptance } from './acceptance.ts'
import type { Door } from './door.ts'

const DAY_MS = 24 * 3_600_000

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
  {
    clause: 'L0.3',
    title: 'a file that a merge deleted is restored byte for byte, with its label',
    needsOwnNodes: true,
    run: async ({ node, own }) => {
      const mark = Date.now()
      const path = `kept-${mark}/précis.md`
      const text = `bytes to be deleted and restored ${mark}\n`
      const approved = async (branch: string) => {
        const asked = await node.merge(branch, 'main')
        assert.equal(asked.body.code, 'GATE_REQUIRED')
        const { card, digest } = await node.card(asked.body.details?.card ?? '')
        await own.command('gate', 'approve', card.id, '--yes', '--digest', digest)
      }
      await node.write(`runs/write-${mark}`, path, text)
      await node.label(`runs/write-${mark}`, path, 'sealed:owner')
      await approved(`runs/write-${mark}`)
      const before = (await node.read('main', path)).body
      assert.equal(before.text, text)

      await node.remove(`runs/delete-${mark}`, path)
      assert.equal((await node.read('main', path)).status, 200, 'deleting on a branch deleted it in main')
      await approved(`runs/delete-${mark}`)
      assert.equal((await node.read('main', path)).status, 404)
      const kept = (await node.recycled()).find((item) => item.path === path)
      assert.equal(kept?.label, 'sealed:owner')
      assert.ok(kept.until > mark + 29 * DAY_MS, 'it is kept for less than 30 days')

      const restored = await node.restore(path, `runs/restore-${mark}`)
      assert.ok(restored.status < 300, `restoring answered ${restored.status} ${restored.body.code ?? ''}`)
      await approved(`runs/restore-${mark}`)
      const after = (await node.read('main', path)).body
      assert.equal(after.text, text)
      assert.equal(after.oid, before.oid)
      assert.deepEqual(after.label, before.label)
    },
  },
  {
    clause: 'L0.4',
    title:
      'a home that is exported, imported elsewhere and exported again is the same bytes, and an altered one is refused',
    needsOwnNodes: true,
    run: async ({ node, own, spawn }) => {
      const branch = `runs/export-${Date.now()}`
      const written = await node.write(branch, 'docs/plan.md', 'to be exported\n')
      assert.ok(written.status < 300, `writing answered ${written.status}`)
      await node.remember('a note that goes along')
      const gone = await node.remember('bytes that were forgotten do not go along')
      await own.command('forget', gone.id, '--yes')
      const out = await node.exportHome()
      assert.equal(out.status, 200)
      assert.equal(out.bytes.includes('bytes that were forgotten'), false, 'what was forgotten is in the export')
      const half = Math.floor(out.bytes.byteLength / 2)
      const rest = await node.exportHome(undefined, { tag: out.tag, offset: half })
      assert.equal(rest.status, 206)
      assert.ok(rest.bytes.equals(out.bytes.subarray(half)), 'an export that goes on has other bytes')

      const other = (await spawn({ name: 'Import' })).door
      const altered = Buffer.from(out.bytes)
      altered[half] = (altered[half] ?? 0) ^ 1
      const refused = await other.importHome(altered)
      assert.ok(refused.status >= 400, `an altered archive answered ${refused.status}`)
      const taken = await other.importHome(out.bytes)
      assert.equal(taken.status, 201, `importing answered ${taken.status} ${taken.body.code ?? ''}`)
      const { home } = taken.body
      assert.ok(home !== undefined)
      const again = await other.exportHome(home)
      assert.ok(again.bytes.equals(out.bytes), 'the second export has other bytes')
      const plan = (await node.list(branch)).find(({ path }) => path === 'docs/plan.md')
      const theirs = (await other.list(branch, home)).find(({ path }) => path === 'docs/plan.md')
      assert.equal(theirs?.oid, plan?.oid)
    },
  },
]
