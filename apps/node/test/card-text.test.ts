import { describe, expect, test } from 'vitest'
import type { Review } from '@csb/node'
import { cardLine, cardText, unseenParts } from '../src/card-text.ts'

type Card = Review['card']
type Change = Review['changes'][number]

const DID = 'did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK'

const change = (path: string, op: Change['op'] = 'change'): Change => ({
  op,
  path,
  mode_old: '100644',
  mode_new: '100644',
  sha256_old: '1'.repeat(64),
  sha256_new: '2'.repeat(64),
  size_old: 1,
  size_new: 2,
  label_old: 'private:owner',
  label_new: 'private:owner',
})

function review(changes: readonly Change[], extra: Partial<Card> = {}, texts: Review['texts'] = []): Review {
  const card: Card = {
    v: 1,
    id: 'gate_1800000000000_aaaaaaaaaa',
    kind: 'merge',
    nas: DID,
    home: `home_${'a'.repeat(26)}`,
    owner: { name: 'Ada', did: DID },
    target: 'main',
    source: 'runs/1',
    meaning: 'Merge 0 added, 1 changed, 0 deleted from "runs/1" into "main"',
    base: 'a'.repeat(64),
    head: 'b'.repeat(64),
    result_tree: 'c'.repeat(64),
    diff: `sha256:${'d'.repeat(64)}`,
    changes: { add: 0, change: changes.length, delete: 0, rename: 0, label: 0, send: 0, bytes_old: 1, bytes_new: 2 },
    conflicts: 0,
    labels: ['private:owner'],
    taint: false,
    policy: `sha256:${'e'.repeat(64)}`,
    asked_by: { name: '若兰 🌸', did: DID, door: 'http', lease: null },
    exec: 'run_1800000000000_aaaaaaaaaa',
    made_by: [],
    more_makers: 0,
    unrecorded: 0,
    risks: [],
    log: { size: 7, root: 'f'.repeat(64) },
    witnessed: null,
    opened_at: 1_800_000_000_000,
    expires_at: 1_800_086_400_000,
    ...extra,
  }
  return { card, digest: `sha256:${'9'.repeat(64)}`, state: 'open', field: null, quick: 0, left: {}, changes, texts }
}

describe('a card in words', () => {
  test('L1.7 shows every member that is signed, whole', () => {
    const shown = review([change('a.md')])
    const text = cardText(shown)
    const { base, head, result_tree: tree, diff, policy, exec, log, home, target } = shown.card
    for (const value of [base, head, tree, diff, policy, exec, log.root, String(log.size), home, target, shown.digest])
      expect(text).toContain(value)
  })

  test('attack 32: what others named can not forge a line of it', () => {
    const evil = 'x\u001B[2K\r\nRISKS\n  none by the rules\u202E\u200B'
    const honest = cardText(review([change('a.md')])).split('\n').length
    const forged = review([change(evil)], {
      asked_by: { name: evil, did: DID, door: evil, lease: null },
      owner: { name: evil, did: DID },
      source: evil,
      target: evil,
      meaning: evil,
    })
    const text = cardText(forged)
    expect(text.split('\n')).toHaveLength(honest)
    for (const char of ['\u001B', '\r', '\u202E', '\u200B']) expect(text).not.toContain(char)
    expect(text).toContain('\\u{1b}[2K\\u{d}\\u{a}RISKS')
    expect(cardLine(forged)).not.toContain('\n')
  })

  test('a name is quoted and followed by the end of its key', () => {
    expect(cardText(review([change('a.md')]))).toContain(`"若兰 🌸" (…${DID.slice(-8)})`)
  })

  test('what a run read from outside is named, quoted and escaped', () => {
    const outside = [{ path: 'mail\u202E/1.md\nRISKS', label: 'private:external' }]
    const maker = { run: 'run_1', actor: null, lease: null, commits: 1, reads: 9, label: 'private:external', outside }
    const text = cardText(review([change('a.md')], { made_by: [{ ...maker, more_outside: 3 }] }))
    expect(text).toContain(
      'read from outside: "mail\\u{202e}/1.md\\u{a}RISKS"  private:external\n           and 3 more',
    )
  })

  test.each([
    [1, 0, 'public:owner', '1 commit after reading nothing'],
    [2, 0, 'private:external', '2 commits after reading nothing, private:external in all'],
    [2, 1, 'public:owner', '2 commits after 1 read, public:owner in all'],
    [1, 9, 'private:owner', '1 commit after 9 reads, private:owner in all'],
  ])('%i commits after %i reads of %s are told as a person would', (commits, reads, label, words) => {
    const maker = { run: 'run_1', actor: null, lease: null, commits, reads, label, outside: [], more_outside: 0 }
    expect(cardText(review([change('a.md')], { made_by: [maker], unrecorded: 1 }))).toContain(
      `made by    run run_1 of -: ${words}\n           no lease\nmade by    nobody known: 1 commit is not`,
    )
  })

  test('deletions and labels come first', () => {
    const text = cardText(review([change('a.md'), change('b.md', 'label'), change('c.md', 'delete')]))
    expect(text.indexOf('"c.md"')).toBeLessThan(text.indexOf('"b.md"'))
    expect(text.indexOf('"b.md"')).toBeLessThan(text.indexOf('"a.md"'))
  })

  test('what is not printed is counted, and a red card is printed whole', () => {
    const changes = Array.from({ length: 7 }, (_, i) => change(`${i}.md`))
    expect(cardText(review(changes), 5)).toContain('and 2 more')
    const red = review(changes, { risks: [{ id: 'deletes-many', severity: 'red', count: 11 }] })
    expect(cardText(red, 5)).not.toContain('more, which')
    expect(cardText(red, 5)).toContain('RED    deletes many files (11)')
  })
})

const textOf = (path: string, text: string | null, extra: object = {}) =>
  ({ path, form: 'diff', text, more_lines: 0, ...extra }) as const

describe('the words behind a change', () => {
  test('L1.7 are of a submodule the commit that it is at, in place of bytes', () => {
    const [file, module] = ['100644', '160000']
    const added = { ...change('lib', 'add'), mode_old: null, mode_new: module, size_old: null, label_old: null }
    const commit = 'ab'.repeat(32)
    const shown = cardText(review([added], {}, [textOf('lib', `@@ -0,0 +1,1 @@\n+submodule at ${commit}`)]))
    expect(shown).toContain('"lib"  - -> submodule  mode - -> 160000')
    expect(shown).toContain(`    | +submodule at ${commit}\n`)
    const moved = cardText(review([{ ...change('lib'), mode_old: module, mode_new: module, size_old: 2 }]))
    expect(moved).toContain('"lib"  submodule  private:owner')
    const replaced = cardText(review([{ ...change('lib'), mode_old: file, mode_new: module }]))
    expect(replaced).toContain('"lib"  1 byte -> submodule  mode 100644 -> 160000')
  })

  test('L1.7 stand below it, line by line, as they are', () => {
    const shown = review([change('a.md'), change('b.md')], {}, [
      textOf('a.md', '@@ -1,1 +1,1 @@\n-old\n+new\twords 若兰 🌸'),
    ])
    expect(cardText(shown)).toContain(
      '"a.md"  1 -> 2 bytes  private:owner\n    | @@ -1,1 +1,1 @@\n    | -old\n    | +new\twords 若兰 🌸\n  change "b.md"',
    )
  })

  test('attack 32: no character of them steers a terminal or turns letters round, no line passes for one of the card', () => {
    const evil = [
      '+\u001B[2J\u001B]0;title\u0007',
      '+a\u202Eb\u2066c\u2069',
      '+ze\u200Bro\u200D\u2060\uFEFF\u00AD',
      '+\r\u0008\u007F\u0085\u2028\u2029',
      '+\u{E0041}\uE000\uFFFE\uD800\u115F',
      'RISKS',
      '  none by the rules',
      '',
      'digest     sha256:0',
    ]
    const plain = cardText(review([change('a.md')])).split('\n')
    const lines = cardText(review([change('a.md')], {}, [textOf('a.md', evil.join('\n'))])).split('\n')
    const behind = lines.filter((line) => line.startsWith('    | '))
    expect(behind).toHaveLength(evil.length)
    expect(lines.filter((line) => !line.startsWith('    | '))).toEqual(plain)
    expect(behind.join('')).toMatch(/^[\x20-\x7e]*$/)
    expect(behind[0]).toBe('    | +\\u{1b}[2J\\u{1b}]0;title\\u{7}')
    expect(behind[1]).toBe('    | +a\\u{202e}b\\u{2066}c\\u{2069}')
  })

  test('what is cut is counted, here and by the node, and a red card is printed whole', () => {
    const long = Array.from({ length: 70 }, (_, i) => `+${i}`).join('\n')
    const texts = [textOf('a.md', long, { more_lines: 412 })]
    const asked = cardText(review([change('a.md')], {}, texts), 200)
    expect(asked).toContain('    | +59\n    ... 422 more lines: csb gate show gate_1800000000000_aaaaaaaaaa')
    expect(asked).not.toContain('| +60')
    const whole = /\| \+69\n {4}\.\.\. 412 more lines, which the node does not show/
    expect(cardText(review([change('a.md')], {}, texts))).toMatch(whole)
    const red = review([change('a.md')], { risks: [{ id: 'deletes-many', severity: 'red', count: 11 }] }, texts)
    expect(cardText(red, 200)).toMatch(whole)
  })

  test('what is not shown is counted for who approves: lines that are cut, and texts that are none', () => {
    const texts = [textOf('a', 'x', { more_lines: 3 }), textOf('b', null, { why: 'large' }), textOf('c', 'x')]
    expect(unseenParts(review([], {}, texts))).toBe(4)
  })

  test('what is not shown says why', () => {
    const changes = ['a', 'b'].map((path) => change(path))
    const shown = cardText(
      review(changes, {}, [textOf('a', null, { why: 'binary' }), textOf('b', null, { why: '\u001B' })]),
    )
    expect(shown).toContain('    | (no text)')
    expect(shown).toContain('    | (what the card names is not there any more)')
  })
})

describe('the card of a forgetting and of a minting', () => {
  test('L3.4 tells what goes, who holds it, what stays and why it is asked', () => {
    const text = cardText(
      review([change('notes/x.md', 'delete')], {
        kind: 'forget',
        facts: {
          kind: 'forget',
          notes: 1,
          versions: 3,
          copies: [{ branch: 'runs/1', path: 'copy\u202E.md' }],
          more_copies: 2,
          holders: [{ did: DID, name: 'friend\u001B' }],
          records: 7,
          derived: {
            branches: ['handoff/1', 'runs/\u202E2'],
            more_branches: 3,
            commits: 5,
            handed: [{ did: DID, name: null }],
          },
          not_covered: ['names', 'backups'],
          reason: 'because\nRISKS',
        },
      }),
    )
    for (const part of [
      'forgets    1 note, 3 versions of them',
      'reason     "because\\u{a}RISKS"',
      'record     7 entries lose what is said there of them',
      'not gone   names, backups',
      `held by    "friend\\u{1b}" (…${DID.slice(-8)})`,
      'stays      "copy\\u{202e}.md" on "runs/1"',
      'stays      2 more files',
      'words      5 commits by who had read it may hold words made from it, on "handoff/1", "runs/\\u{202e}2", 3 more',
      `handed to  "-" (…${DID.slice(-8)}), with work`,
    ])
      expect(text).toContain(part)
  })

  const mint = (extra: object = {}) =>
    review([], {
      kind: 'mint',
      facts: {
        kind: 'mint',
        operation: 'authority.attenuate',
        to: { name: 'child\u200B', did: null, known: null },
        from: null,
        lease: { type: 'urn:csb:lease:1', locations: ['nas://x/y'], actions: ['list'], budget: { calls: 7 } },
        grant: { level: 'request', scope: ['lease'], audience: [DID], depth: 1, task: null, max_age_ms: 60_000 },
        work: null,
        ttl_ms: 90_000,
        expires_at: null,
        token: true,
        parent: `sha256:${'a'.repeat(64)}`,
        under: [{ from: { name: 'Ada', did: DID }, to: { name: 'nas\u200B', did: DID }, level: 'request' }],
        document: null,
        wish: `sha256:${'b'.repeat(64)}`,
        tainted_by: {
          label: 'private:external',
          more: true,
          reads: [{ home: 'home_x', path: 'a\u2066.md', oid: 'c'.repeat(64), label: 'private:external' }],
        },
        ...extra,
      } as NonNullable<Card['facts']>,
    })

  test('attack 40: tells the lease, who gets it, and what the session has read', () => {
    const text = cardText(mint())
    for (const part of [
      'authority.attenuate for "child\\u{200b}", for 2 minutes',
      '           may      list\n',
      '           budget   calls=7\n',
      'level request, scope "lease"\nhonoured   by this node\npassed on  1 time at most\ntask       any',
      'token      one that acts under it at this node',
      `under      sha256:${'a'.repeat(64)}\n           "Ada" (…${DID.slice(-8)}) granted "nas\\u{200b}" (…${DID.slice(-8)}), request`,
      '"a\\u{2066}.md"  private:external',
      'and more',
    ])
      expect(text).toContain(part)
  })

  test("attack 40: a name that whoever asks gives somebody never stands for the owner's own", () => {
    const did = `${DID.slice(0, -8)}zzzzzzzz`
    const called = cardText(mint({ to: { name: 'Ada', did, known: 'Mallory' } }))
    expect(called).toContain('for "Mallory" (…zzzzzzzz), called "Ada" by who asks')
    const unknown = cardText(mint({ to: { name: 'Ada', did, known: null } }))
    expect(unknown).toContain('for "Ada" (…zzzzzzzz), whom nobody here has a name for')
  })

  test('attack 40: work that goes to another node is shown word for word, behind a margin, with what is withheld', () => {
    const work = {
      agent: 'clerk',
      text: ['do it', 'RISKS', '  none by the rules', '\u001B[2J\u202Esecret'].join('\n'),
      context: 'ctx\n1',
      withheld: [{ id: 'mem_1\u200B', label: 'sealed:owner' }],
      more_withheld: 4,
    }
    const text = cardText(mint({ operation: 'handoff.offer', work }))
    for (const part of [
      'to agent   "clerk"\ncontext    "ctx\\u{a}1"',
      ':\n    | do it\n    | RISKS\n    |   none by the rules\n    | \\u{1b}[2J\\u{202e}secret\n',
      'withheld   mem_1\\u{200b}  sealed:owner\nwithheld   4 more notes',
    ])
      expect(text).toContain(part)
  })

  test('what of a long text is not printed is counted', () => {
    const text = Array.from({ length: 70 }, (_, i) => `line ${i}`).join('\n')
    const work = { agent: 'clerk', text, context: null, withheld: [], more_withheld: 0 }
    expect(cardText(mint({ work }), 200)).toContain('    | line 59\n    ... 10 more lines, which csb gate show prints')
    expect(cardText(mint({ work }))).toContain('    | line 69\n')
  })
})
