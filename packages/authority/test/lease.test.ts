import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { EVERY_TAG, type Label, type Lease } from '@csb/core'
import { allows, isSubset, meet, type LeaseRequest } from '@csb/authority'
import { wideLease } from './cast.ts'

const some = <T>(...items: T[]) => fc.subarray(items)
const PATHS = ['/', '/notes', '/notes/', '/notes/2026', '/notes2', '/a', '/a/b', '/a/bc', '/photos']
const BRANCHES = ['*', 'main', 'memory', 'runs/*', 'runs/7/*', 'runs/7', 'runs', 'runs7/*']
const LEVELS = ['public', 'trusted', 'private', 'sealed'] as const
const LOCATIONS = [
  'nas://peerA/*',
  'nas://peerA/home1',
  'nas://*/home1',
  'nas://peerB/home1',
  'nas://peerA/home2',
  'nas://*/home2',
]
const ACTIONS = ['list', 'read', 'write', 'propose', 'snapshot', 'send', 'exec'] as const
const TAGS = ['health', 'work', EVERY_TAG]

const lease: fc.Arbitrary<Lease> = fc.record(
  {
    type: fc.constant('urn:csb:lease:1' as const),
    locations: fc.subarray(LOCATIONS, { minLength: 3 }),
    actions: fc.subarray([...ACTIONS], { minLength: 4 }),
    paths: fc.subarray(PATHS, { minLength: 3 }),
    deny_paths: fc.subarray(PATHS.slice(1), { maxLength: 2 }),
    branches: fc.subarray(BRANCHES, { minLength: 3 }),
    labels_max: fc.constantFrom(...LEVELS),
    label_tags: some(...TAGS),
    label_floor: fc.constantFrom(...LEVELS),
    capabilities: some('B' as const, 'C' as const),
    external: fc.constantFrom('taint' as const, 'deny' as const),
    gates: some('send', 'merge'),
    budget: fc.record({ calls: fc.nat(3), bytes_read: fc.nat(3) }, { requiredKeys: [] }),
    max_children: fc.nat(2),
  },
  { requiredKeys: ['type', 'locations', 'actions'] },
) as fc.Arbitrary<Lease>

const label: fc.Arbitrary<Label> = fc.record({
  level: fc.constantFrom(...LEVELS),
  integrity: fc.constant('owner' as const),
  tags: some('health', 'work'),
})
const request = fc.record(
  {
    location: fc.constantFrom('nas://peerA/home1', 'nas://peerB/home1', 'nas://peerC/home1', 'nas://peerA/home2'),
    action: fc.constantFrom(...ACTIONS),
    path: fc.constantFrom(
      '/',
      '/a',
      '/q',
      '/notes',
      '/notes/2026',
      '/notes/2026/x',
      '/notes2/z',
      '/a/b/c',
      '/a/bc',
      '/a/bcd',
    ),
    below: fc.constant(true as const),
    branch: fc.constantFrom('*', 'main', 'memory', 'runs', 'runs/7', 'runs/7/x', 'runs/8', 'runs7/1', 'runs77'),
    label,
    capability: fc.constantFrom('B' as const, 'C' as const),
  },
  { requiredKeys: ['location', 'action'] },
) as fc.Arbitrary<LeaseRequest>

const FIELDS = [
  'locations',
  'actions',
  'paths',
  'deny_paths',
  'branches',
  'labels_max',
  'label_tags',
  'label_floor',
  'capabilities',
] as const
const field = fc.constantFrom(...FIELDS)

function swapped(into: Lease, from: Lease, name: (typeof FIELDS)[number]): Lease {
  const { [name]: _, ...rest } = into
  return { ...rest, ...(from[name] === undefined ? {} : { [name]: from[name] }) } as Lease
}

describe('lease relations', () => {
  test('L1.2 attack 12: whatever a lease within another allows, the other allows too', () => {
    let compared = 0
    fc.assert(
      fc.property(lease, lease, field, fc.array(request, { minLength: 20, maxLength: 20 }), (a, b, name, requests) => {
        for (const [child, parent] of [
          [a, b],
          [meet(a, b), b],
          // one field of another lease: a relation that forgets a field is caught by that field alone
          [swapped(b, a, name), b],
        ] as const) {
          if (child === null || !isSubset(child, parent).ok) continue
          for (const asked of requests) {
            if (!allows(child, asked).ok) continue
            compared++
            expect(allows(parent, asked)).toEqual({ ok: true })
          }
        }
      }),
      { numRuns: 3000 },
    )
    expect(compared).toBeGreaterThan(500)
  })

  test('L1.2 what is left of two leases together is within both, and allows what both allow', () => {
    let compared = 0
    fc.assert(
      fc.property(lease, lease, fc.array(request, { minLength: 10, maxLength: 10 }), (a, b, requests) => {
        const both = meet(a, b)
        if (both !== null) {
          expect(isSubset(both, a)).toEqual({ ok: true })
          expect(isSubset(both, b)).toEqual({ ok: true })
        }
        for (const asked of requests) {
          const inBoth = allows(a, asked).ok && allows(b, asked).ok
          if (inBoth) compared++
          expect(both !== null && allows(both, asked).ok).toBe(inBoth)
        }
      }),
      { numRuns: 2000 },
    )
    expect(compared).toBeGreaterThan(20)
  })

  test('being within is reflexive and transitive', () => {
    fc.assert(
      fc.property(lease, lease, lease, (a, b, c) => {
        expect(isSubset(a, a)).toEqual({ ok: true })
        if (isSubset(a, b).ok && isSubset(b, c).ok) expect(isSubset(a, c)).toEqual({ ok: true })
        const ab = meet(a, b)
        const abc = ab === null ? null : meet(ab, c)
        if (ab !== null && abc !== null) expect(isSubset(abc, a)).toEqual({ ok: true })
      }),
      { numRuns: 1000 },
    )
  })

  test('one home anywhere and every home at one node have one place in common', () => {
    const [anywhere, everyHome] = [wideLease({ locations: ['nas://*/h'] }), wideLease({ locations: ['nas://p/*'] })]
    expect(meet(anywhere, everyHome)?.locations).toEqual(['nas://p/h'])
    expect(meet(everyHome, anywhere)?.locations).toEqual(['nas://p/h'])
  })

  test('two leases with no place or no action in common leave nothing', () => {
    expect(meet(wideLease({ actions: ['read'] }), wideLease({ actions: ['write'] }))).toBeNull()
    expect(meet(wideLease({ locations: ['nas://a/h'] }), wideLease({ locations: ['nas://b/h'] }))).toBeNull()
  })
})

describe('what a lease allows', () => {
  const base = wideLease({ paths: ['/notes'], deny_paths: ['/notes/private'], label_floor: 'trusted' })
  const location = base.locations[0] ?? ''
  const owners = (level: Label['level'], ...tags: string[]): Label => ({ level, integrity: 'owner', tags })
  const ask = (extra: Partial<LeaseRequest>, from = base) => {
    const verdict = allows(from, { location, action: 'read', ...extra })
    return verdict.ok ? 'ok' : verdict.field
  }

  test.each<[Partial<LeaseRequest>, string]>([
    [{}, 'ok'],
    [{ path: '/notes/a' }, 'ok'],
    [{ path: '/notes2/a' }, 'paths'],
    [{ path: '/notes/../x' }, 'paths'],
    [{ path: '/notes//a' }, 'paths'],
    [{ path: '/notes/./a' }, 'paths'],
    [{ path: 'notes/a' }, 'paths'],
    [{ path: '/notes\\a' }, 'paths'],
    [{ path: '/notes/\u0000' }, 'paths'],
    [{ path: '/notes/e\u0301' }, 'paths'],
    [{ path: '/notes/private' }, 'deny_paths'],
    [{ path: '/notes/private/x' }, 'deny_paths'],
    [{ path: '/notes/private2' }, 'ok'],
    [{ path: '/notes' }, 'ok'],
    [{ path: '/notes', below: true }, 'deny_paths'],
    [{ path: '/notes/a', below: true }, 'ok'],
    [{ branch: 'runs/7' }, 'ok'],
    [{ branch: 'runs' }, 'branches'],
    [{ branch: 'runs77' }, 'branches'],
    [{ branch: 'runs/*' }, 'branches'],
    [{ branch: '*' }, 'branches'],
    [{ action: 'exec' }, 'actions'],
    [{ location: 'nas://other/home' }, 'locations'],
    [{ label: owners('private', 'health') }, 'ok'],
    [{ label: owners('sealed') }, 'labels_max'],
    [{ label: owners('public', 'money') }, 'label_tags'],
    [{ action: 'write', label: owners('public') }, 'label_floor'],
    [{ action: 'write', label: owners('sealed', 'money') }, 'ok'],
    [{ action: 'send', label: owners('sealed') }, 'labels_max'],
  ])('%j: %s', (extra, expected) => expect(ask(extra)).toBe(expected))

  test('an absent permission grants nothing', () => {
    const bare: Lease = { type: 'urn:csb:lease:1', locations: base.locations, actions: ['read'] }
    expect(ask({}, bare)).toBe('ok')
    expect(ask({ path: '/a' }, bare)).toBe('paths')
    expect(ask({ branch: 'main' }, bare)).toBe('branches')
    expect(ask({ label: owners('trusted') }, bare)).toBe('labels_max')
    expect(ask({ label: owners('public') }, bare)).toBe('ok')
    expect(ask({ capability: 'B' }, bare)).toBe('capabilities')
  })
})
