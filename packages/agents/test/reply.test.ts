import { describe, expect, test } from 'vitest'
import { LIMITS, NodeError } from '@csb/core'
import { failureUpdate } from '../src/index.ts'

const error = new NodeError('AGENT_FAILED', {
  exit: 3,
  signal: null,
  reason: 'why',
  lease: 'sha256:0',
  stderr: `${'x'.repeat(10_000)}the end\n`,
})

describe('why a task failed', () => {
  test('a stranger is told the code and nothing else', () => {
    expect(failureUpdate(error, 0)).toMatchObject({
      statusUpdate: { metadata: { 'urn:csb:ext:error:v1': { code: 'AGENT_FAILED', retryable: expect.any(Boolean) } } },
    })
    expect(JSON.stringify(failureUpdate(error, 0))).not.toContain('the end')
  })

  test('the own people are told how the command ended and the end of its stderr', () => {
    const update = failureUpdate(error, 0, { details: true })
    const { details } = (update as { statusUpdate: { metadata: Record<string, { details: Record<string, unknown> }> } })
      .statusUpdate.metadata['urn:csb:ext:error:v1'] ?? { details: {} }
    expect(Object.keys(details).sort()).toEqual(['exit', 'reason', 'stderr'])
    expect(details).toMatchObject({ exit: 3, reason: 'why', stderr: expect.stringMatching(/^x+the end$/) })
    expect(details['stderr']).toHaveLength(LIMITS.agentErrorShownChars)
  })
})
