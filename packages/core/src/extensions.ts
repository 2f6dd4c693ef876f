/**
 * The URNs under which this system puts members of its own into the `metadata` of A2A messages, tasks and events, and
 * announces them on agent cards.
 * @clause DEL-002.2.1
 */
export const EXTENSIONS = {
  /** on a message: the authority it carries; on a task: how that was judged */
  authority: 'urn:csb:ext:authority:v1',
  /** on the last message of a task: the commit that came of it */
  commit: 'urn:csb:ext:commit:v1',
  /** on a task that failed: `{code, retryable, details?}` */
  error: 'urn:csb:ext:error:v1',
  /** which event this is, or up to which one a task was folded */
  generation: 'urn:csb:ext:generation:v1',
  /** on a message: the capability that was invoked, with its options */
  interop: 'urn:csb:ext:interop:v1',
} as const
