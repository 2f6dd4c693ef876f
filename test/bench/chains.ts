/**
 * Verifying a chain of three grants from its bytes, as it comes over the network, beside two libraries that do the
 * same kind of work: UCAN delegations of iso-ucan with the verifier it ships, and three JWS of jose, which compares no
 * rights. iso-ucan compares one delegation with the next only when an invocation is checked, so that is a pair of its
 * own: the chain and what its holder signed, four signatures on either side.
 *
 * Candidates take turns in short slices; rates are per second of CPU, the median of the turns.
 */
import { createPrivateKey, createPublicKey } from 'node:crypto'
import { EdDSASigner } from 'iso-signatures/signers/eddsa.js'
import { Resolver } from 'iso-signatures/verifiers/resolver.js'
import { verifier } from 'iso-signatures/verifiers/eddsa.js'
import { Delegation } from 'iso-ucan/delegation'
import { Invocation } from 'iso-ucan/invocation'
import { CompactSign, compactVerify } from 'jose'
import { createChainCache, draftGrant, signGrant, verifyChain, type ChainCache } from '@csb/authority'
import {
  LIMITS,
  canonicalize,
  createKeyPair,
  digestOf,
  exportSeed,
  parseStrict,
  signDocument,
  systemClock,
  verifyDocument,
  type Grant,
  type KeyPair,
  type Lease,
} from '@csb/core'
import type { Row } from './rows.ts'

const ROUNDS = 11
const SLICE_CPU_US = 100_000
const STEP_MS = 5
const TTL_MS = 3_600_000

type Candidate = { readonly what: string; readonly work: () => void | Promise<void> }

/** @returns rows in the order: chain cold, chain warm, jose, iso-ucan; then with a message: cold, iso-ucan */
export async function chainRows(now: number): Promise<readonly Row[]> {
  const people = Array.from({ length: 4 }, () => createKeyPair())
  const chain = grants(people, now)
  const text = canonicalize(chain)
  const cache = createChainCache()
  verifyText(text, now, people, cache)
  const last = people[3] ?? createKeyPair()
  const word = { aud: people[0]?.did, nonce: 'n', payload: digestOf('what is asked'), issued_at: now }
  const signature = signDocument('authority', word, last)
  const ucan = await ucanWork()
  const candidates: readonly Candidate[] = [
    { what: 'csb: 3 grants, cold', work: () => verifyText(text, now, people) },
    { what: 'csb: 3 grants, verified before', work: () => verifyText(text, now, people, cache) },
    { what: 'jose: 3 compact JWS, no rights compared', work: await joseWork(people, chain) },
    { what: 'iso-ucan: 3 delegations, its own verifier', work: ucan.delegations },
    {
      what: 'csb: 3 grants and the word of the holder, cold',
      work: () => {
        verifyText(text, now, people)
        if (!verifyDocument('authority', word, signature, last.did)) throw new Error('not signed')
      },
    },
    { what: 'iso-ucan: invocation under 3 delegations', work: ucan.invocation },
  ]
  return measureInTurns(candidates)
}

function verifyText(text: string, now: number, [root, , , last]: readonly KeyPair[], cache?: ChainCache): void {
  const { rootDid, leaf } = verifyChain({
    chain: parseStrict(text, { maxBytes: LIMITS.chainBytes }) as unknown[],
    now,
    isRevoked: () => false,
    trustedRoot: (did) => (did === root?.did ? { ceiling: 'override' } : undefined),
    ...(cache === undefined ? {} : { cache }),
  })
  if (rootDid !== root?.did || leaf.delegation.grantee_key !== last?.did) throw new Error('another chain')
}

/** Root, helper, leaf: each with a full lease. */
function grants(people: readonly KeyPair[], now: number): readonly Grant[] {
  const chain: Grant[] = []
  people.slice(0, -1).forEach((from, at) => {
    const to = people[at + 1] ?? from
    const parent = chain.at(-1)
    const lease: Lease = {
      type: 'urn:csb:lease:1',
      locations: [`nas://${people[0]?.peerId}/home_abcdefghijklmnopqrstuvwxyz`],
      actions: ['list', 'read', 'write', 'propose'],
      paths: ['/notes'],
      branches: ['memory', 'runs/*'],
      labels_max: 'private',
      capabilities: ['B', 'C'],
    }
    const draft = draftGrant({
      type: 'scoped',
      from: { name: `person ${at}`, did: from.did },
      to: { name: `clerk ${at}`, did: to.did },
      audience: [people[0]?.did ?? ''],
      scope: ['csb-protocol', 'protocol-group-management'],
      level: 'execute',
      now,
      ttlMs: TTL_MS,
      maxDepth: 3 - at,
      lease,
      ...(parent === undefined ? {} : { parent }),
    })
    chain.push(signGrant(draft, from))
  })
  return chain
}

async function joseWork(people: readonly KeyPair[], chain: readonly Grant[]): Promise<() => Promise<void>> {
  const keys = people.map((pair) => {
    const pkcs8 = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), exportSeed(pair)])
    const secret = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
    return { secret, open: createPublicKey(secret) }
  })
  const tokens = await Promise.all(
    chain.map(async (grant, at) => {
      const secret = keys[at]?.secret
      if (secret === undefined) throw new Error('no key')
      return new CompactSign(Buffer.from(canonicalize(grant))).setProtectedHeader({ alg: 'EdDSA' }).sign(secret)
    }),
  )
  return async () => {
    for (const [at, token] of tokens.entries()) {
      const open = keys[at]?.open
      if (open === undefined) throw new Error('no key')
      const { payload } = await compactVerify(token, open)
      JSON.parse(Buffer.from(payload).toString())
    }
  }
}

/** The library's types were not made for exact optional members. */
type Signer = Parameters<typeof Delegation.create>[0]['iss']
type Audience = NonNullable<Parameters<typeof Invocation.from>[0]['audience']>
type Ucan = { readonly delegations: () => Promise<void>; readonly invocation: () => Promise<void> }

/** Proofs are taken from a store of verified ones, as its own store does: each signature is checked once. */
async function ucanWork(): Promise<Ucan> {
  const signers = await Promise.all(Array.from({ length: 4 }, () => EdDSASigner.generate()))
  const [root, , , last] = signers
  if (root === undefined || last === undefined) throw new Error('no keys')
  const verifierResolver = new Resolver(verifier)
  const exp = Math.floor(systemClock.now() / 1000) + TTL_MS
  const delegations = await Promise.all(
    signers.slice(0, -1).map((iss, at) =>
      Delegation.create({
        iss: iss as unknown as Signer,
        aud: signers[at + 1]?.did ?? root.did,
        sub: root.did,
        cmd: at < 1 ? '/crud' : '/crud/read',
        pol: [
          ['==', '.type', 'note'],
          ['like', '.path', '/notes/*'],
        ],
        exp,
      }),
    ),
  )
  const kept = new Map(
    delegations.map(({ cid, bytes }) => [cid.toString(), Buffer.from(bytes).toString('base64')] as const),
  )
  const { bytes: invocation } = await Invocation.create({
    iss: last as unknown as Signer,
    sub: root.did,
    cmd: '/crud/read',
    args: { type: 'note', path: '/notes/a' },
    prf: delegations,
    exp,
    verifierResolver,
  })
  return {
    delegations: async () => {
      for (const { bytes } of delegations) await Delegation.from({ bytes, verifierResolver })
    },
    invocation: async () => {
      await Invocation.from({
        bytes: invocation,
        audience: root.didObject as unknown as Audience,
        verifierResolver,
        resolveProof: async (cid) => Delegation.fromString(kept.get(cid.toString()) ?? ''),
      })
    },
  }
}

async function measureInTurns(candidates: readonly Candidate[]): Promise<readonly Row[]> {
  const rates = candidates.map((): number[] => [])
  for (const { work } of candidates) for (let at = 0; at < 20; at++) await work()
  for (let round = 0; round < ROUNDS; round++) {
    for (const [at, { work }] of candidates.entries()) rates[at]?.push(await rateOf(work))
  }
  return candidates.map(({ what }, at) => {
    const sorted = (rates[at] ?? []).toSorted((a, b) => a - b)
    const perSecond = sorted[Math.floor(sorted.length / 2)] ?? 0
    return { what, perSecond, cpuUs: 1_000_000 / perSecond }
  })
}

/** Times per second of CPU, over one slice. */
async function rateOf(work: Candidate['work']): Promise<number> {
  const began = process.cpuUsage()
  let count = 0
  let usedUs = 0
  while (usedUs < SLICE_CPU_US) {
    // asking for the time costs as much as a part of the quickest candidate: once every few milliseconds
    const until = performance.now() + STEP_MS
    while (performance.now() < until) {
      const pending = work()
      if (pending !== undefined) await pending
      count++
    }
    const { user, system } = process.cpuUsage(began)
    usedUs = user + system
  }
  return (count / usedUs) * 1_000_000
}
