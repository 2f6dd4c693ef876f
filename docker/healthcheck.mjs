/** Exits with 0 where the node in this container answers its health request, with 1 otherwise. */
const port = process.env.CSB_HTTP_PORT ?? '7480'

const isHealthy = await fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(4000) }).then(
  (answer) => answer.ok,
  () => false,
)
process.exitCode = isHealthy ? 0 : 1
