export { createHttp, type Http, type HttpInit } from './create-http.ts'
export { connectCloud } from './cloud-client.ts'
