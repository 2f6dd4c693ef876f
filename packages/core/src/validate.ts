/** Check a value against a schema of `schemas/`. The validators are compiled ahead; nothing is compiled at run time. */
import { fail, type ErrorCode } from './errors.ts'
import type * as Types from './schema/types.ts'
import * as compiled from './schema/validators.ts'

type Problem = { instancePath: string; message?: string; keyword: string; params?: Record<string, unknown> }
type Validator = ((value: unknown) => boolean) & { errors?: readonly Problem[] | null }

const validators = compiled as unknown as Readonly<Record<string, Validator>>

/** The documents that have a schema, and the types they are read as. */
export type Documents = {
  A2aMessage: Types.A2AMessage
  Grant: Types.Grant
  Authority: Types.Authority
  Revocation: Types.Revocation
  Status: Types.Status
  Approval: Types.Approval
  Envelope: Types.Envelope
  AgentRecord: Types.AgentRecord
  Identity: Types.Identity
  Config: Types.Config
  Memory: Types.Memory
  Tombstone: Types.Tombstone
  Handoff: Types.Handoff
  HandoffResult: Types.HandoffResult
  Conformance: Types.Conformance
  WitnessMessage: Types.WitnessMessage
  KeyStatement: Types.KeyStatement
}

/**
 * @param name title of a schema
 * @param code the error to fail with; default INVALID_INPUT
 * @returns the same value, typed
 * @throws `code` with `errors: [{path, keyword, message}]`
 */
export function validate<Name extends keyof Documents>(
  name: Name,
  value: unknown,
  code: ErrorCode = 'INVALID_INPUT',
): Documents[Name] {
  checkSchema(name, value, code)
  return value as Documents[Name]
}

/** Names of members are the sender's, as long as it likes; what is told of an error goes into the record. */
const NAME_CHARS = 256

/** The same for a schema known only by name, as the inputs of operations are. */
export function checkSchema(name: string, value: unknown, code: ErrorCode = 'INVALID_INPUT'): void {
  const validator = validators[name] ?? fail('INTERNAL', { reason: 'no such schema', name })
  if (validator(value)) return
  const errors = (validator.errors ?? []).slice(0, 8).map(({ instancePath, keyword, message, params }) => ({
    path: instancePath === '' ? '/' : instancePath.slice(0, NAME_CHARS),
    keyword,
    message: message ?? keyword,
    ...(typeof params?.['additionalProperty'] === 'string'
      ? { member: params['additionalProperty'].slice(0, NAME_CHARS) }
      : {}),
  }))
  fail(code, { schema: name, errors })
}
