/** Files and record over HTTP: branches, trees, texts, and what explains them. */
import type { Route } from './route.ts'

const MAIN = { branch: 'main' }

export const FILES_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/files/refs',
    operation: 'files.refs',
    input: 'FilesRefs',
    summary: 'Branches and their heads',
  },
  {
    method: 'GET',
    path: '/v1/files/log',
    operation: 'files.log',
    input: 'FilesLog',
    summary: 'Commits of a branch, default main',
    defaults: MAIN,
  },
  {
    method: 'GET',
    path: '/v1/files/log/{branch+}',
    operation: 'files.log',
    input: 'FilesLog',
    summary: 'Commits of a branch',
  },
  {
    method: 'GET',
    path: '/v1/files/tree',
    operation: 'files.list',
    input: 'FilesList',
    summary: 'What a folder holds, default of main',
    defaults: MAIN,
  },
  {
    method: 'GET',
    path: '/v1/files/file',
    operation: 'files.read',
    input: 'FilesRead',
    summary: 'One file, default of main',
    defaults: MAIN,
  },
  {
    method: 'PUT',
    path: '/v1/files/file',
    operation: 'files.write',
    input: 'FilesWrite',
    summary: 'Write or delete one file: one commit on a branch',
  },
]

export const RECORD_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/record',
    operation: 'record.tail',
    input: 'RecordTail',
    summary: 'The latest entries of the record',
  },
  {
    method: 'GET',
    path: '/v1/record/verify',
    operation: 'record.verify',
    input: 'RecordVerify',
    summary: 'Check the whole record',
  },
  {
    method: 'GET',
    path: '/v1/record/explain/{commit}',
    operation: 'record.explain',
    input: 'RecordExplain',
    summary: 'Who made a commit, by whose authority, having read what',
  },
  {
    method: 'GET',
    path: '/v1/record/prove/{seq}',
    operation: 'record.prove',
    input: 'RecordProve',
    summary: 'Proof that an entry is in the record',
  },
  {
    method: 'GET',
    path: '/v1/record/checkpoint',
    operation: 'record.checkpoint',
    input: 'RecordCheckpoint',
    summary: 'The newest checkpoint, the settled one, and who cosigned',
  },
  {
    method: 'GET',
    path: '/v1/record/witnessed',
    operation: 'record.witnessed',
    input: 'RecordWitnessed',
    summary: 'Records of others that this node vouches for, and what contradicts',
  },
  {
    method: 'POST',
    path: '/v1/record/resume',
    operation: 'record.resume',
    input: 'RecordResume',
    summary: 'Write again after a backup was restored',
  },
]
