export { createHttp, type Http, type HttpInit } from './create-http.ts'
export type { HttpLog } from './route.ts'
export { connectCloud } from './cloud-client.ts'
