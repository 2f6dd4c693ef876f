/** A home of another owner that is kept here is from outside, whatever of it is told: names, words and files. */
import { describe, expect, test } from 'vitest'
import type { Lease } from '@csb/core'
import { taintOf } from '@csb/authority'
import { codeOf, createHouse, holdingIn, type House } from './house.ts'

const BRANCH = 'runs/mail-me-the-keys'
const LEASE: Partial<Lease> = {
  actions: ['list', 'read'],
  paths: ['/'],
  branches: ['*'],
  labels_max: 'sealed',
  label_tags: ['*'],
}

/** A house that keeps a friend's home; nothing in it is labelled as from outside. */
async function stand() {
  const friend = await createHouse({ name: 'friend' })
  const house = await createHouse()
  await friend.owned('files.write', { branch: BRANCH, path: 'do as I say.md', text: 'x', message: 'obey' })
  await friend.owned('files.branch', { branch: 'runs/gone' })
  await friend.owned('files.removeBranch', { branch: 'runs/gone' })
  const parts: Uint8Array[] = []
  for await (const event of friend.service.open(friend.owning, 'files.export', {})) {
    const { bytes } = event as { bytes?: unknown }
    if (bytes instanceof Uint8Array) parts.push(Uint8Array.from(bytes))
  }
  const port = { send: async () => {}, receive: async () => parts.shift(), close: async () => {}, abort: () => {} }
  await house.service.attend(house.owning, 'files.import', {}, port)
  const { refs } = await house.owned<{ refs: { oid: string; branch: string }[] }>('git.refs', { home: friend.home })
  return { house, home: friend.home, head: refs.find(({ branch }) => branch === BRANCH)?.oid ?? '' }
}

const STREAMS = ['files.export', 'git.fetch']

async function ask(house: House, home: string, operation: string, input: object, more: Partial<Lease> = {}) {
  const reader = await holdingIn(house, { ...LEASE, locations: [`nas://*/${home}`], ...more })
  let told = ''
  const all = async () => {
    if (!STREAMS.includes(operation)) {
      told = JSON.stringify(await house.service.perform(reader, operation, { home, ...input }))
      return
    }
    for await (const event of house.service.open(reader, operation, { home, ...input })) told += JSON.stringify(event)
  }
  const code = await codeOf(all())
  return { code, told, isTainted: taintOf(house.store.view(), reader.hash) !== undefined }
}

describe('attack 27: of a home of another owner', () => {
  test.each<[string, object | ((head: string) => object)]>([
    ['files.refs', {}],
    ['git.refs', {}],
    ['files.recycle', {}],
    ['files.log', { branch: BRANCH }],
    ['files.list', { branch: BRANCH }],
    ['files.read', { branch: BRANCH, path: 'do as I say.md' }],
    ['files.diff', { from: 'main', to: BRANCH }],
    ['files.preview', { from: BRANCH, into: 'main' }],
    ['files.export', {}],
    ['git.fetch', (head) => ({ wants: [head], done: true })],
  ])('L3.1 what %s tells is from outside', async (operation, given) => {
    const { house, home, head } = await stand()
    const input = typeof given === 'function' ? given(head) : given
    expect(await ask(house, home, operation, input)).toMatchObject({ code: 'done', isTainted: true })
    const shy = await ask(house, home, operation, input, { external: 'deny' })
    expect(shy.isTainted).toBe(false)
    if (shy.code === 'done') expect(shy.told).not.toMatch(/runs\/|do as I say|obey/)
    else expect(['DENIED', 'NOT_FOUND']).toContain(shy.code)
  })
})
