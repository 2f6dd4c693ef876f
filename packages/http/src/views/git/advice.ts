/** What somebody who pushes by git can do about a refusal: which text of the catalogue says it. */
import { GIT_TEXTS, wordOf, type ErrorCode, type ErrorDetails, type GitText } from '@csb/core'

type Refusal = { readonly code: ErrorCode; readonly details: ErrorDetails }

/**
 * The case that it is stands in the details, as `advice`, or as the `kind` of what is too large.
 * @returns undefined where nothing helps but reading the refusal
 */
export function adviceOn({ code, details }: Refusal): GitText | undefined {
  const { advice, kind, path } = details
  const all = code === 'TOO_LARGE' && path === undefined ? 'push' : undefined
  const keys = [`git.advice.${code}.${wordOf(advice ?? kind ?? all)}`, `git.advice.${code}`]
  const text = keys.find((key) => Object.hasOwn(GIT_TEXTS, key)) as GitText['text'] | undefined
  return text === undefined ? undefined : { text, values: details }
}
