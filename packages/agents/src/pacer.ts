/**
 * Bounds how often an agent is heard: each event is a transaction of the store, and what it writes is foreign.
 *
 * Texts that came together become one event. An agent that goes on in little pieces is told in larger ones, so that no
 * text is lost; one that has no end of statuses and artifacts is ended.
 */
import { LIMITS, fail } from '@csb/core'
import type { AgentEvent } from './output.ts'

/** `take` gives what may be told of events that came together, `flush` the text that was held back. */
export type Pacer = { take(events: Iterable<AgentEvent>): Generator<AgentEvent>; flush(): Generator<AgentEvent> }

/**
 * One per run.
 * @throws AGENT_OUTPUT_TOO_LARGE (from `take` and `flush`) above {@link LIMITS.agentEvents}
 */
export function createPacer(): Pacer {
  let count = 0
  let texts = 0
  let held = ''

  const counted = (event: AgentEvent): AgentEvent => {
    // a run that said all it has to say has ended well
    if (++count > LIMITS.agentEvents && event.kind !== 'result')
      fail('AGENT_OUTPUT_TOO_LARGE', { events: LIMITS.agentEvents })
    return event
  }
  function* flush(): Generator<AgentEvent> {
    if (held === '') return
    const text = held
    held = ''
    texts++
    yield counted({ kind: 'text', text })
  }
  const isDue = () => texts < LIMITS.agentTexts || Buffer.byteLength(held) >= LIMITS.agentTextBytes

  return {
    flush,
    *take(events) {
      try {
        for (const event of events) {
          if (event.kind === 'text') {
            held += event.text
            continue
          }
          yield* flush()
          yield counted(event)
        }
      } catch (error) {
        // what was said before something went wrong was said
        yield* flush()
        throw error
      }
      if (isDue()) yield* flush()
    },
  }
}
