/** Two nodes of one owner are cut off from each other, both go on writing, and come together again. */
import { until } from '@csb/core'
import { forgetNotes } from '@csb/node'
import { addNote, codeOf, inStep, notesAt, treeOf, verifyRecord } from '../asking.ts'
import type { Scenario } from '../stage.ts'

const HEAL_MS = 30_000
const EACH = 20

export const partition: Scenario = {
  name: 'partition',
  about: 'two nodes of one owner are cut off, both write and forget, and hold the same again afterwards',
  run: async ({ cluster, step, say, prove }) => {
    step('A NAS and a laptop of one owner, in step')
    const nas = await cluster.add({ name: 'nas', ownerName: 'Ines' })
    const laptop = await cluster.add({ name: 'laptop', join: nas })
    const both = [nas, laptop]
    const old = await addNote(nas, 'The mill wheel turns again.')
    await inStep(nas, laptop)
    say(`both hold ${old}`)

    step('They are cut off, and both go on')
    await cluster.partition([nas], [laptop])
    const code = await codeOf(inStep(nas, laptop))
    prove('what is cut off is not reached, and says so', code === 'PEER_UNREACHABLE', code ?? 'it was reached')
    const written = await Promise.all(
      both.flatMap((member) =>
        Array.from({ length: EACH }, (_, n) => addNote(member, `Note ${n} of ${member.name}, alone.`)),
      ),
    )
    await forgetNotes(await nas.desk(), { ids: [old], reason: 'partition' })
    const apart = (await treeOf(nas, nas.home)) !== (await treeOf(laptop, nas.home))
    say(`${EACH} notes each; the NAS has forgotten ${old}, and the laptop can not know yet`)
    prove('both took writes while they were apart', apart && written.length === 2 * EACH, `${EACH} notes each`)

    step('The line is back')
    await cluster.heal()
    const report = await until(() => inStep(laptop, nas).catch(() => undefined), HEAL_MS, 'they reach each other again')
    const trees = await Promise.all(both.map((member) => treeOf(member, nas.home)))
    say(`sent ${report.sent}, received ${report.received}; trees ${trees.map((tree) => tree.slice(0, 12)).join(', ')}`)
    prove('both hold the same tree again (L4.1)', trees[0] === trees[1] && report.equal, trees[0]?.slice(0, 12) ?? '-')
    const held = await Promise.all(both.map(async (member) => (await notesAt(member, nas.home)).map(({ id }) => id)))
    const isWhole = held.every((ids) => written.every((id) => ids.includes(id)) && ids.length === written.length)
    prove('nothing that was written is lost', isWhole, `${held[0]?.length ?? 0} notes at both`)
    prove(
      'what was forgotten meanwhile is gone at both (L4.3)',
      held.every((ids) => !ids.includes(old)),
      old,
    )
    for (const member of both) {
      const { ok, size } = await verifyRecord(member)
      prove(`the record of ${member.name} verifies (L1.6)`, ok, `${size} entries`)
    }
  },
}
