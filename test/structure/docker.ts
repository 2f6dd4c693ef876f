/** What can be known about the images and the compose file without an engine. One sentence per break. */
import { parse } from 'yaml'

/** What the rest of the house says: variables and ports that exist, files that are there. */
export type Facts = {
  readonly variables: readonly string[]
  readonly httpPort: number
  readonly files: readonly string[]
}

type Service = {
  readonly user?: string
  readonly read_only?: boolean
  readonly cap_drop?: readonly string[]
  readonly security_opt?: readonly string[]
  readonly stop_grace_period?: string
  readonly environment?: Readonly<Record<string, string>>
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
}

type Compose = {
  readonly services: Readonly<Record<string, Service>>
  readonly volumes?: Readonly<Record<string, unknown>>
}

/** Docker and compose themselves read these. */
const FOREIGN = ['CSB_VERSION']

/** Each service is locked down, keeps its data in a volume that is declared, and publishes HTTP on loopback only. */
export function checkCompose(text: string, { variables, httpPort }: Facts): string[] {
  const compose = parse(text, { merge: true }) as Compose
  const names = new Set(text.match(/\bCSB_[A-Z0-9_]+\b/g))
  const unknown = [...names]
    .filter((name) => !variables.includes(name) && !FOREIGN.includes(name))
    .map((name) => `compose names ${name}, which nobody reads`)
  return [
    ...unknown,
    ...Object.entries(compose.services).flatMap(([name, service]) => checkService(name, service, compose, httpPort)),
  ]
}

function checkService(name: string, service: Service, compose: Compose, httpPort: number): string[] {
  const broken: string[] = []
  if (service.read_only !== true) broken.push(`${name} may write its root`)
  if (service.user === undefined || /^(?:0|root)\b/.test(service.user)) broken.push(`${name} runs as root`)
  if (service.cap_drop?.includes('ALL') !== true) broken.push(`${name} keeps capabilities`)
  if (service.security_opt?.some((option) => option.startsWith('no-new-privileges')) !== true) {
    broken.push(`${name} may gain privileges`)
  }
  if (service.stop_grace_period === undefined) broken.push(`${name} has no time to close its database`)
  const data = service.volumes?.map((volume) => volume.split(':')).find(([, target]) => target === '/data')
  if (data?.[0] === undefined || !(data[0] in (compose.volumes ?? {}))) broken.push(`${name} has no volume for /data`)
  const published = service.ports?.map((port) => port.split(':')) ?? []
  const http = published.filter((parts) => Number(parts.at(-1)) === httpPort)
  if (http.length === 0) broken.push(`${name} publishes no port ${httpPort}`)
  if (http.some((parts) => parts.length !== 3 || parts[0] !== '127.0.0.1'))
    broken.push(`${name} publishes HTTP beyond loopback`)
  return broken
}

/** The image runs as uid 1000, declares its volume, ports and health, and copies only what is there. */
export function checkDockerfile(text: string, { variables, httpPort, files }: Facts): string[] {
  const lines = text.replaceAll(/\\\n/g, ' ').split('\n')
  const of = (word: string) =>
    lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1))
  const isThere = (path: string) =>
    files.some((file) => file === path || file.startsWith(`${path.replace(/\/$/, '')}/`))
  const broken: string[] = []
  if (of('USER').at(-1) !== '1000:1000') broken.push('the image does not run as 1000:1000')
  if (of('VOLUME').at(-1) !== '/data') broken.push('the image has no volume /data')
  if (!of('EXPOSE').join(' ').split(' ').includes(String(httpPort)))
    broken.push(`the image does not expose ${httpPort}`)
  if (of('FROM').length < 2) broken.push('the image ships what built it')
  for (const source of of('COPY').flatMap(sourcesOfCopy)) {
    if (!isThere(source)) broken.push(`the image copies ${source}, which is not there`)
  }
  for (const script of of('HEALTHCHECK').flatMap((line) => line.match(/[\w/.-]+\.mjs/g) ?? [])) {
    if (!isThere(script)) broken.push(`the image asks ${script} for its health, which is not there`)
  }
  if (of('HEALTHCHECK').length === 0) broken.push('the image does not say how it feels')
  for (const name of new Set(text.match(/\bCSB_[A-Z0-9_]+\b/g))) {
    if (!variables.includes(name)) broken.push(`the image names ${name}, which nobody reads`)
  }
  return broken
}

/** What a COPY takes from the checkout: nothing where it takes from another stage. */
function sourcesOfCopy(line: string): string[] {
  const words = line.split(/\s+/)
  if (words.some((word) => word.startsWith('--from='))) return []
  return words.filter((word) => !word.startsWith('--')).slice(0, -1)
}
