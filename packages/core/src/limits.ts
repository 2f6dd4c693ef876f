/** Every bound of the system, once, with its unit in its name and its reason beside it. */

const KiB = 1024
const MiB = 1024 * KiB
const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

export const LIMITS = {
  /** MEM-002 2.1: content, in Unicode code points after NFC. */
  memoryContentChars: 2048,
  /** MEM-002 2.1: one tag. */
  memoryTagChars: 32,
  memoryTags: 64,
  /** MEM-002 2.1. */
  embeddingDims: 2048,
  /** MEM-003: entries in one batch call. */
  memoryBatch: 100,
  listDefault: 50,
  listMax: 200,
  /** Largest note file that an import reads; a larger one is listed as skipped. */
  importFileBytes: 4 * MiB,
  importFiles: 200_000,
  /** Front matter of a foreign note, as it came and as it is kept: with links and content it must fit a note. */
  importFrontMatterBytes: 16 * KiB,
  /** A chat export is one file, however long somebody talked. */
  importTranscriptBytes: 256 * MiB,

  /** Authority documents: sizes before parsing, so that a hostile one costs little. */
  grantBytes: 64 * KiB,
  chainBytes: 256 * KiB,
  chainLinks: 5,
  /** Verified chains that are remembered, of at most 256 KiB each and most often of 3. */
  chainsKept: 512,
  jsonDepth: 16,
  nameChars: 128,
  /** A label as it is spelled, in documents and in sync; tags that do not fit make it as strict as all of them. */
  labelChars: 512,
  scopeTokens: 32,
  pathChars: 1024,
  /** Clock skew allowed on times in the past of the signer, never on an expiry. */
  clockSkewMs: 60 * SECOND,
  scopedGrantMs: 90 * DAY,
  singleGrantMs: 7 * DAY,
  /** L1.3: the declared bound within which a revocation takes effect. */
  revocationMaxAgeMs: 60 * SECOND,
  /** Revoked and not yet expired grants that one status key answers for; more is no home. */
  statusGrants: 1_024,
  statusBytes: 96 * KiB,
  /** How long the command waits for peers when it revokes; the rest is told them when they come. */
  revocationTellMs: 5 * SECOND,

  /** A card that nobody decided on by then is drawn anew when it is asked for again. */
  gateCardMs: DAY,
  /** An approval acts within this time of the decision, or never. */
  gateApprovalMs: 15 * MINUTE,
  /** An approval that comes sooner after its card was shown is a quick one: nobody reads a card in that time. */
  gateQuickMs: 2 * SECOND,
  approvalBytes: 8 * KiB,
  /** Open cards of a node: a person reads them, and a flood of them must not hide one. */
  gateCards: 256,
  /** A text that a card shows: a larger file is named by its digest only. */
  gateTextBytes: 256 * KiB,
  /** Of one file; nobody reads more of it before deciding, and the number that is left is told. */
  gateTextLines: 400,
  gateLineChars: 1_000,
  /** Changes of one act: what is larger is proposed in parts, so that a person can read it. */
  gateChanges: 50_000,
  /** Entries before one of the same lease that are looked at for what it rests on: each is decoded while somebody waits. */
  earlierEntries: 256,
  /** What those may list together: one listing of a large home is as many things as it has notes. */
  earlierLooked: 20_000,
  /** What of that is told one by one; a merge tells it of each commit it brought in. */
  earlierReads: 500,
  /** Commits behind one card whose runs are told. */
  gateCommits: 10_000,

  /** DHT: a record above this is refused by the validator (js-libp2p itself would take 4 MiB). */
  agentRecordBytes: 4 * KiB,
  agentRecordTtlMs: 48 * HOUR,
  dhtQuorum: 3,
  dhtTimeoutMs: 5 * SECOND,
  cardBytes: 256 * KiB,

  /** One frame of a protocol with small messages. */
  envelopeBytes: 1 * MiB,
  frameBytes: 1 * MiB,
  envelopeTtlMs: 5 * MINUTE,
  requestTimeoutMs: 30 * SECOND,
  streamIdleMs: 60 * SECOND,
  streamsPerPeer: 32,
  /** Bulk sends: chunks small enough that little requests on the same connection stay quick. */
  bulkChunkBytes: 64 * KiB,
  sendBufferBytes: 256 * KiB,
  /** A reader that holds this much unread stops the sender. */
  receiveBufferBytes: 256 * KiB,
  /** After the last frame the other side has this long to end its half; then the stream is broken off. */
  closeGraceMs: 5 * SECOND,
  /** Envelopes of one peer that are worked on at once; the rest wait in the stream. */
  envelopesInFlight: 64,
  /** Answers of one request waiting for a slow consumer on a shared stream; above it the request is given up. */
  repliesQueued: 64,
  /** A new stream costs about 0.6 ms of CPU: 200 a second are an eighth of a core per peer. */
  streamsPerPeerPerSecond: 200,
  streamsPerPeerBurst: 400,
  /** Silence after which a dialler gives up a shared stream; half of streamIdleMs, so that it is never second. */
  sharedIdleMs: 30 * SECOND,
  redialMinMs: SECOND,
  redialMaxMs: 5 * MINUTE,
  /** Nobody else republishes what a node puts into the DHT. */
  republishMs: 30 * MINUTE,
  /** Stored for others in the DHT, so that a stranger can not fill the disk. */
  dhtRecords: 16_384,
  dhtProviders: 65_536,
  /** Agent records heard by gossip and kept in memory. */
  directoryRecords: 4_096,
  /** One author's announcements that are passed on, per minute. */
  announcesPerMinute: 6,

  agentTimeoutMs: 120 * SECOND,
  agentTimeoutMaxMs: 60 * MINUTE,
  agentOutputBytes: 4 * MiB,
  agentErrorBytes: 16 * KiB,
  /** Of stderr, shown to the owner of a task that failed: the last lines, where the reason stands. */
  agentErrorShownChars: 2_000,
  /** Events of one run, each a transaction of the store; more is no conversation. */
  agentEvents: 10_000,
  /** Texts of one run that are told as they come; after that they are told in pieces of the size below. */
  agentTexts: 1_000,
  agentTextBytes: 4 * KiB,
  /** Agents that run at once; config.json may say otherwise. */
  agentRuns: 8,
  /** Tasks that run or wait for their turn: of all senders, and of one. */
  agentRunsWaiting: 256,
  agentRunsPerSender: 32,

  syncPageRows: 2_000,
  /** One page in bytes: with what JSON adds it still fits a frame. */
  syncPageBytes: 256 * KiB,
  /** Rows of one session in one direction: more notes than a home holds, and little enough to keep in memory. */
  syncRows: 1_000_000,
  /** The same rows in bytes, which are kept until the session is over: a million of the usual ones. */
  syncListBytes: 256 * MiB,
  /** Distinct labels of one home's notes: each is told in every session, before anything else. */
  syncLabels: 65_536,
  /** Of these, how many there may be before nobody else than the owner's nodes brings a new one. */
  syncLabelsOfOthers: 16_384,
  /** A note without what was said of its label, so that none becomes too large by that. */
  syncNoteBytes: 64 * KiB,
  /** The file of a note: the note itself, and the longest that is said of a label in the widest letters. */
  noteFileBytes: 96 * KiB,
  /** What was said of one note's label, as it is spelled: some eighty lines. Where it would be more, one takes their place. */
  labelClockChars: 8_192,
  handoffBytes: 16 * MiB,
  handoffNotes: 1_000,
  /** HLC of a note from a peer may be this far ahead; a later one is refused. */
  futureHlcMs: 5 * MINUTE,

  httpBodyBytes: 8 * MiB,
  /** Git view: all a request says besides a pack. */
  gitRequestBytes: 8 * MiB,
  /** Git view: requests that are worked on at once; each may hold some 100 MB. */
  gitRequests: 8,
  /** Git view: beginnings of names that a client may ask for; one that asks for more is told all. */
  gitRefPrefixes: 256,
  /** Commits that are projected for a reader while it waits; where more are left, ids are not told until they are. */
  projectedAtOnce: 500,
  /** Long histories that are projected or wait for it, one after the other; whoever comes above it asks again. */
  projectionsWaiting: 32,
  /** A blob that is worked on in memory; also the most that comes of a delta. */
  blobBytes: 64 * MiB,
  /** Git view: a blob that is only passed through, never held. */
  objectBytes: 1024 * MiB,
  /** A larger blob is stored in rows, so that it can be read and written piece by piece. */
  pieceBlobBytes: 1 * MiB,
  pieceBytes: 256 * KiB,
  /** Deltas one on another that are kept as they came; git itself stops at 50. */
  deltaChain: 64,
  /** Deltas one on another in a pack that comes in, or that are read; git's own most is below it but for odd settings. */
  packChain: 512,
  /** One push. Its index takes about 90 bytes of memory an object. */
  packBytes: 4096 * MiB,
  packObjects: 500_000,
  /** What may come of all objects of a pack together: a bomb is a small pack that makes much more. */
  packInflatedBytes: 16_384 * MiB,
  /** An object that comes as a delta, and its base: both are held in memory to make it. */
  deltaBytes: 32 * MiB,
  treeBytes: 8 * MiB,
  /** Header and message; signatures are part of it. */
  commitBytes: 1 * MiB,
  /** Objects of a push that are written in one batch. */
  packBatchBytes: 4 * MiB,
  /** Bodies that one walk through history keeps in memory. */
  objectCacheBytes: 8 * MiB,
  /** A message of a commit; what is longer belongs into a file. */
  commitMessageChars: 4096,
  /** A `.gitmodules` or `.gitattributes`: tens of thousands of lines; all of it is looked through. */
  gitFileBytes: 1 * MiB,
  /** Text that a merge compares line by line; what is larger is merged as a whole. */
  mergeTextBytes: 4 * MiB,
  mergeTextLines: 100_000,
  /** Edits between two texts; the comparison costs their square, and its memory too (16 MiB at this). */
  mergeEdits: 2_000,
  /** Pairs of a file that went and one that came which are compared for a rename; above it only equal ones are seen. */
  mergeRenamePairs: 40_000,
  /** Text of differences that one answer holds. */
  diffTextBytes: 1 * MiB,
  /** guard.md 1.7, MEM-005 5.2: what a merge deletes can be restored for this long. */
  recycleMs: 30 * DAY,
  /** Objects that one step of the garbage collection looks at: a few ms in which nobody else writes. */
  collectStepObjects: 1_000,
  /** What one damaged object is listed as needed by, of each kind. */
  checkNeededBy: 200,
  /** An archive: objects whose ids are kept in memory while they are walked or checked, about 120 bytes each. */
  archiveObjects: 1_000_000,
  /** One line of an archive: a ref, a tombstone, an entry of a record. */
  archiveLineBytes: 1 * MiB,
  /** Lines of an archive that are held until its end proved it whole. */
  archiveHeldBytes: 32 * MiB,
  /** What an import stages in one batch. */
  archiveBatchBytes: 1 * MiB,
  /** An export that was broken off can be resumed for this long; until then nothing of it is collected. */
  exportMs: 1 * DAY,
  recordGroup: 256,
  /** A checkpoint with its signatures: 100 lines of witnesses fit. */
  noteChars: 32 * KiB,
  /** Things that a session read and no entry of the record lists yet; above it an entry of their own does. */
  unlistedReads: 4_096,
  /** Leases of which it is remembered what is kept; of one that is not used for long, it is kept once more. */
  unlistedLeases: 1_024,
  /** The record is signed at least this often while it grows; what was cut off since then nobody can notice. */
  checkpointMs: 60 * SECOND,
  /** How long the start waits for those who cosigned before. */
  witnessStartMs: 2 * SECOND,
  /** Free space from which a database is opened again after a full disk: its log of up to 4 MiB is written anew. */
  reopenBytes: 8 * MiB,
} as const
