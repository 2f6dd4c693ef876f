import type { Acceptance } from './acceptance.ts'

export const L3: readonly Acceptance[] = []
