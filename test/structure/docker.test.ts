import { describe, expect, test } from 'vitest'
import { checkCompose, checkDockerfile, type Facts } from './docker.ts'
import { listFiles, readText } from './house.ts'

type Schema = { properties: Record<string, { properties: Record<string, unknown> }> }

const config = await readText('packages/node/src/config.ts')
const schema = JSON.parse(await readText('schemas/config-v1.schema.json')) as Schema
const ofSchema = Object.entries(schema.properties).flatMap(([section, { properties }]) =>
  Object.keys(properties).map((name) => `CSB_${section}_${name}`.toUpperCase()),
)
const PLAIN = [
  'CSB_DATA',
  'CSB_PASSPHRASE',
  'CSB_NEW_PASSPHRASE',
  'CSB_RECOVERY_PASSPHRASE',
  'CSB_RUN',
  'CSB_TOKEN',
  'CSB_URL',
]
const spoken = new Set(config.match(/\bCSB_[A-Z0-9_]+\b/g))

const facts: Facts = {
  variables: [...PLAIN, ...ofSchema].filter((name) => spoken.has(name)),
  httpPort: Number(/DEFAULT_PORT\s*=\s*(\d+)/.exec(config)?.[1]),
  files: await listFiles(),
}

describe('the variables of the configuration', () => {
  test('are named after the schema', () => {
    expect([...spoken].filter((name) => !facts.variables.includes(name))).toEqual([])
  })
})

describe('the compose file', () => {
  test('holds three nodes and a gateway, locked down', async () => {
    const text = await readText('docker/compose.yaml')
    expect(checkCompose(text, facts)).toEqual([])
    expect(text.match(/^ {2}\w+:\n {4}<<: \*node/gm)).toHaveLength(4)
  })

  test('an open service is found', () => {
    const open = "services:\n  a:\n    image: x\n    environment: { CSB_PORTT: '1' }\n    ports: ['7480:7480']\n"
    expect(checkCompose(open, { ...facts, httpPort: 7480 })).toHaveLength(8)
  })
})

describe('the image', () => {
  test('is as it should be', async () =>
    expect(checkDockerfile(await readText('docker/Dockerfile'), facts)).toEqual([]))

  test('the health check asks the default port', async () => {
    expect(await readText('docker/healthcheck.mjs')).toContain(`'${facts.httpPort}'`)
  })

  test('a careless image is found', () => {
    const careless = 'FROM node:24\nCOPY package.json nothing/here ./\nCOPY --from=x a b\nENV CSB_PORTT=1\nUSER root\n'
    expect(checkDockerfile(careless, { ...facts, httpPort: 7480 })).toHaveLength(7)
  })
})
