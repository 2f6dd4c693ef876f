/**
 * The gate and labels over HTTP. A decision is a document that the owner signed elsewhere: who only has a token, or
 * only a page open in the owner's browser, can show cards and decide nothing.
 */
import { isObject, type Route } from './route.ts'

/** The signed document is the body, as it is. */
const approvalOf = (body: unknown): unknown => (isObject(body) && 'gate' in body ? { approval: body } : body)

export const GATE_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/gate',
    operation: 'gate.list',
    input: 'GateList',
    summary: 'Cards that wait for the owner',
  },
  {
    method: 'GET',
    path: '/v1/gate/{card}',
    operation: 'gate.show',
    input: 'GateShow',
    summary:
      'One card with a page of its changes and the texts behind them, as their authors wrote them: escape before showing',
  },
  {
    method: 'POST',
    path: '/v1/gate/{card}/approve',
    operation: 'gate.approve',
    input: 'GateDecide',
    summary: 'Act as the owner approved',
    reads: approvalOf,
  },
  {
    method: 'POST',
    path: '/v1/gate/{card}/reject',
    operation: 'gate.reject',
    input: 'GateDecide',
    summary: 'End a card as the owner rejected it, or gave it back to be changed',
    reads: approvalOf,
  },
]

export const LABEL_ROUTES: readonly Route[] = [
  {
    method: 'PUT',
    path: '/v1/files/label',
    operation: 'files.label',
    input: 'FilesLabel',
    summary: 'Label a file or a folder; to lower a label takes an approval',
  },
  {
    method: 'PUT',
    path: '/v1/memory/{id}/label',
    operation: 'memory.label',
    input: 'MemoryLabel',
    summary: 'Label a note; to lower a label takes an approval',
  },
]
