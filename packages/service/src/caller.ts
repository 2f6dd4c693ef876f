/** Who stands at a door, as the door saw it. Evidence only: who it is and what it may do is decided in the pipeline. */

export type Door = 'http' | 'libp2p' | 'timer'

export type Caller =
  /** holds a bearer token that was issued with a lease */
  | { readonly kind: 'bearer'; readonly token: string; readonly door: Door }
  /** the other end of a Noise stream: its key is proved */
  | { readonly kind: 'peer'; readonly did: string; readonly door: 'libp2p' }
  /** showed nothing */
  | { readonly kind: 'nobody'; readonly door: Door }
  /** the node itself, for its own jobs, under the grant that made it */
  | { readonly kind: 'node'; readonly door: 'timer' }
