/**
 * Agent cards (A2A 1.0.1 section 4.4 and 8): built, signed by the node's key, checked, hashed.
 *
 * What is signed is the RFC 8785 text of the wire JSON without `signatures`. A card built here holds no member
 * at its proto default, so a verifier that strips defaults first sees the same text. Nothing of a request's
 * Host header ever gets into a card: `url` is configuration.
 * @clause A2A-001
 */
import {
  EXTENSIONS,
  LIMITS,
  canonicalize,
  didFromPeerId,
  digestOf,
  fail,
  fromBase64Url,
  fromUtf8,
  toBase64Url,
  utf8,
  verifySignature,
  type KeyPair,
} from '@csb/core'
import type { JsonObject } from './a2a.ts'
import type { AttachedAgent } from './attached.ts'

/** How A2A is spoken between two nodes: an envelope on a Noise stream. */
export const LIBP2P_BINDING = 'urn:csb:binding:libp2p:1'

export type AgentCard = JsonObject & {
  readonly name: string
  readonly supportedInterfaces: readonly {
    readonly url: string
    readonly protocolBinding: string
    readonly protocolVersion: string
  }[]
  readonly signatures?: readonly { readonly protected: string; readonly signature: string }[]
}

export type CardInput = {
  readonly agent: AttachedAgent
  readonly node: { readonly name: string; readonly did: string; readonly peerId: string }
  /** base of the HTTP door, `https://host:port` without a slash at the end */
  readonly url: string
}

const MODES = ['text/plain', 'application/json']

/** The unsigned card of an agent. The HTTP door comes first among its interfaces. */
export function agentCard({ agent, node, url }: CardInput): AgentCard {
  return {
    name: agent.name,
    description: agent.description,
    version: agent.version === undefined || agent.version === '' ? '1.0.0' : agent.version,
    provider: { organization: node.name, url },
    supportedInterfaces: [
      { url: `${url}/a2a/${agent.id}`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      { url: `${url}/a2a/${agent.id}`, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
      { url: `p2p:${node.peerId}/${agent.id}`, protocolBinding: LIBP2P_BINDING, protocolVersion: '1.0' },
    ],
    capabilities: {
      streaming: true,
      pushNotifications: false,
      extendedAgentCard: false,
      extensions: [
        {
          uri: EXTENSIONS.authority,
          description: 'signed authority of a person on a message (CSB-Delegation)',
          params: { alg: 'EdDSA', levels: ['inform', 'request', 'execute', 'override'], audience: node.did },
        },
      ],
    },
    securitySchemes: { lease: { httpAuthSecurityScheme: { scheme: 'Bearer' } } },
    securityRequirements: [{ schemes: { lease: {} } }],
    defaultInputModes: MODES,
    defaultOutputModes: MODES,
    skills: agent.skills.map(({ id, name, description, tags }) => ({
      id,
      name,
      description,
      tags: tags === undefined || tags.length === 0 ? [id] : tags,
    })),
  }
}

/** The card with one JWS: EdDSA, `kid` = peer id of the node. Signing twice gives the same bytes. */
export function signCard(card: AgentCard, signer: KeyPair): AgentCard {
  const header = toBase64Url(utf8(canonicalize({ alg: 'EdDSA', kid: signer.peerId, typ: 'JOSE' })))
  const signature = toBase64Url(signer.sign(signingInput(header, card)))
  return { ...card, signatures: [{ protected: header, signature }] }
}

/**
 * Check that a card was signed by the node it is said to be of.
 * @param value what came over the wire
 * @param peerId of the node that must have signed it
 * @throws TOO_LARGE; MALFORMED where it is no card; PEER_MISBEHAVED where no signature of that node is good
 */
export function verifyCard(value: unknown, peerId: string): AgentCard {
  if (!isCard(value)) fail('MALFORMED', { reason: 'not an agent card' })
  if (Buffer.byteLength(canonicalize(value)) > LIMITS.cardBytes) fail('TOO_LARGE', { maxBytes: LIMITS.cardBytes })
  const did = didFromPeerId(peerId)
  const signatures = Array.isArray(value.signatures) ? (value.signatures as readonly unknown[]) : []
  if (!signatures.slice(0, 8).some((one) => isGood(one, value, did, peerId)))
    fail('PEER_MISBEHAVED', { reason: 'card signature' })
  return value
}

/** `sha256:` of the canonical card without its signatures. */
export const cardHash = (card: AgentCard): string => digestOf(payloadOf(card))

function payloadOf(card: AgentCard): string {
  const { signatures: _, ...unsigned } = card
  return canonicalize(unsigned)
}

const signingInput = (header: string, card: AgentCard): Uint8Array =>
  utf8(`${header}.${toBase64Url(utf8(payloadOf(card)))}`)

function isGood(one: unknown, card: AgentCard, did: string, peerId: string): boolean {
  const { protected: header, signature } = (one ?? {}) as { protected?: unknown; signature?: unknown }
  if (typeof header !== 'string' || typeof signature !== 'string') return false
  const { alg, kid, crit } = headerOf(header)
  // `crit` names rules this reader does not know; a JWS with it must be refused
  if (alg !== 'EdDSA' || kid !== peerId || crit !== undefined) return false
  const bytes = fromBase64Url(signature)
  return bytes !== undefined && verifySignature(did, signingInput(header, card), bytes)
}

function headerOf(header: string): { alg?: unknown; kid?: unknown; crit?: unknown } {
  try {
    const value = JSON.parse(fromUtf8(fromBase64Url(header) ?? new Uint8Array()) ?? '') as unknown
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

function isCard(value: unknown): value is AgentCard {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const { name, supportedInterfaces, skills } = value as Record<string, unknown>
  return (
    typeof name === 'string' &&
    Array.isArray(supportedInterfaces) &&
    supportedInterfaces.length > 0 &&
    Array.isArray(skills)
  )
}
