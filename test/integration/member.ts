/** Node processes for tests about what goes wrong, and the few things that show that one is well. */
import { afterAll, expect } from 'vitest'
import { createCluster, type Cluster, type Member } from '../../apps/harness/src/cluster.ts'

const clusters: Cluster[] = []

afterAll(async () => {
  for (const cluster of clusters) await cluster.close()
})

export async function startMember(): Promise<Member> {
  const cluster = await createCluster()
  clusters.push(cluster)
  return cluster.add({ name: 'nas' })
}

export const remember = (member: Member, content: string): Promise<string> =>
  member.client
    .call<{ id: string }>('POST', '/v1/memory', { entry: { content, level: 'warm', type: 'lesson' } })
    .then(({ id }) => id)

export const recall = (member: Member, id: string) => member.client.call<{ content: string }>('GET', `/v1/memory/${id}`)

export const verify = (member: Member) => member.client.call<{ ok: boolean; size: number }>('GET', '/v1/record/verify')

/** It answers, and what it acknowledged is there. */
export async function isWell(member: Member): Promise<void> {
  const id = await remember(member, 'still here')
  await expect(recall(member, id)).resolves.toMatchObject({ content: 'still here' })
  await expect(verify(member)).resolves.toMatchObject({ ok: true })
}
