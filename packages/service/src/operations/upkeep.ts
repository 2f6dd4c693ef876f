/** Keeping a home in order: what nothing needs is collected, what is damaged is named. For the owner's command line. */
import { checkHome, collectGarbage, getHome, type Collected } from '@csb/files'
import { heard } from '../session/taint.ts'
import { EVERYWHERE, homeOf, locationOf, ruling, type Context, type Operation, type Parts } from '../operation.ts'

type Home = { readonly home?: string }

export const upkeepOperations: readonly Operation[] = [
  {
    name: 'files.gc',
    input: 'FilesGc',
    kind: 'call',
    open: 'lease',
    // whoever's home it is a copy of: the disk is this node's, and nothing is told or lost by it
    needs: ruling,
    run: async (context: Context, input: Home) => {
      const { store, signal, clock, runs } = context
      const { id: home } = getHome(context.view, homeOf(input, context))
      let done: Collected = { kept: 0, removed: 0, expired: 0, isPaused: false }
      for await (const step of collectGarbage(store, home, {
        now: clock.now(),
        signal,
        held: () => runs.holds.of(home),
      }))
        done = step
      const { kept, removed, expired, isPaused: paused } = done
      const told = { home, kept, removed, expired, paused }
      return context.write(
        () => told,
        (collected) => collected,
      )
    },
  },
  {
    name: 'files.fsck',
    input: 'FilesFsck',
    kind: 'read',
    open: 'lease',
    // names files whatever they bear
    needs: (input: Home, parts: Parts) => ({
      location: locationOf(parts, homeOf(input, parts)),
      action: 'exec' as const,
      capability: 'C' as const,
      ...EVERYWHERE,
    }),
    run: async (context: Context, input: Home) => {
      const { view, clock, signal } = context
      const { id: home } = getHome(view, homeOf(input, context))
      const { objects, unneeded, damaged } = await checkHome(view, home, { now: clock.now(), signal })
      // names are content, and labels of what is damaged can not be trusted to be whole
      if (damaged.length > 0) context.outside.push(heard(context, 'names of damaged files'))
      const shown = damaged.map(({ isCut, ...damage }) => ({ ...damage, cut: isCut }))
      return { home, objects, unneeded, damaged: shown }
    },
  },
]
