import { homedir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import fc from 'fast-check'
import { writeJson, writeText } from '../src/data-folder.ts'
import {
  agentEnvironment,
  callerDirectory,
  commandName,
  defaultDirectory,
  passphraseOf,
  readSettings,
  sessionOf,
  type Environment,
  type Flags,
} from '../src/config.ts'
import { createFolder, made } from './folder.ts'

/** A folder with nothing but a configuration. */
async function configured(config: unknown): Promise<string> {
  const directory = await createFolder()
  await made(directory)
  await writeJson(directory, 'config', config)
  return directory
}

const NPM: Environment = { npm_package_name: 'csb', npm_lifecycle_event: 'csb', INIT_CWD: '/somewhere' }

describe('where a value comes from', () => {
  test('flags win over variables, variables over the file, the file over the defaults', async () => {
    const directory = await configured({ http: { port: 1001, host: '::1' }, log: { level: 'info' } })
    const port = async (env: Environment, flags: Flags) => (await readSettings(directory, flags, env)).http.port
    expect(await port({ CSB_HTTP_PORT: '1002' }, { port: 1003 })).toBe(1003)
    expect(await port({ CSB_HTTP_PORT: '1002' }, {})).toBe(1002)
    expect(await port({}, {})).toBe(1001)
    expect(await port({ CSB_HTTP_PORT: '' }, {})).toBe(1001)
    const { http, log } = await readSettings(directory, { host: '127.0.0.2' }, { CSB_LOG_LEVEL: 'error' })
    expect({ http, log }).toMatchObject({ http: { host: '127.0.0.2', port: 1001 }, log: { level: 'error' } })
  })

  test('without anything it listens on loopback for HTTP, beside it for peers, and looks for neighbours', async () => {
    expect(await readSettings(await configured({}), {}, {})).toMatchObject({
      http: { host: '127.0.0.1', port: 7480, insecure: false, publicUrl: null },
      p2p: { listen: ['/ip4/0.0.0.0/tcp/7481', '/ip4/0.0.0.0/tcp/7482/ws'], bootstrap: [], mdns: true },
      log: { level: 'warn' },
    })
  })

  test('one flag moves all ports of a node', async () => {
    const { p2p } = await readSettings(await configured({}), { port: 7490 }, {})
    expect(p2p.listen).toEqual(['/ip4/0.0.0.0/tcp/7491', '/ip4/0.0.0.0/tcp/7492/ws'])
  })

  test('every variable is read', async () => {
    const env = {
      CSB_HTTP_HOST: '0.0.0.0',
      CSB_HTTP_PORT: '80',
      CSB_HTTP_INSECURE: '1',
      CSB_HTTP_PUBLIC_URL: 'https://csb.example',
      CSB_P2P_LISTEN: '/ip4/127.0.0.1/tcp/1, /ip4/127.0.0.1/tcp/2/ws',
      CSB_P2P_BOOTSTRAP: '/dns4/a.example/tcp/1/p2p/12D3KooWB3dZjPpKFe1PyGJ25FQTtjEwZxBWWqBN9gXEWAbKimHf',
      CSB_P2P_MDNS: 'false',
      CSB_LOG_LEVEL: 'debug',
    }
    expect(await readSettings(await configured({}), {}, env)).toMatchObject({
      http: { host: '0.0.0.0', port: 80, insecure: true, publicUrl: 'https://csb.example' },
      p2p: { listen: ['/ip4/127.0.0.1/tcp/1', '/ip4/127.0.0.1/tcp/2/ws'], mdns: false, loopback: true },
      log: { level: 'debug' },
    })
  })
})

describe('a value that is none', () => {
  test.each([
    [{ http: { port: 'many' } }, 'http.port'],
    [{ http: { port: 70_000 } }, 'http.port'],
    [{ http: { port: 65_534 } }, 'http.port'],
    [{ http: { prot: 1 } }, 'http.prot'],
    [{ htttp: {} }, 'htttp'],
    [{ log: { level: 'loud' } }, 'log.level'],
    [{ p2p: { listen: ['7481'] } }, 'p2p.listen'],
    [{ p2p: { bootstrap: ['/ip4/10.0.0.1/tcp/7481'] } }, 'p2p.bootstrap'],
  ])('in the file %j is named by its field', async (config, field) => {
    await expect(readSettings(await configured(config), {}, {})).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      details: { field },
    })
  })

  test.each([
    [{ CSB_HTTP_PORT: 'many' }, 'http.port'],
    [{ CSB_HTTP_PORT: '-1' }, 'http.port'],
    [{ CSB_P2P_MDNS: 'perhaps' }, 'p2p.mdns'],
    [{ CSB_LOG_LEVEL: 'loud' }, 'log.level'],
  ])('in the environment %j is named, and where it stood', async (env, field) => {
    await expect(readSettings(await configured({}), {}, env as Environment)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      details: { field, source: 'environment' },
    })
  })

  test('on the command line is named as well', async () => {
    await expect(readSettings(await configured({}), { listen: ['here'] }, {})).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      details: { field: 'p2p.listen', source: 'command line', value: 'here' },
    })
  })

  test('a file that is no JSON is named; one that is missing means there is no node', async () => {
    const directory = await configured({})
    await writeText(directory, 'config', '{ "http": ')
    await expect(readSettings(directory, {}, {})).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      details: { file: 'config.json' },
    })
    await expect(readSettings(await createFolder(), {}, {})).rejects.toMatchObject({ code: 'NOT_INITIALISED' })
  })

  test('whatever stands in the file, it is settings or CONFIG_INVALID', async () => {
    const directory = await configured({})
    const section = fc.oneof(
      fc.jsonValue(),
      fc.dictionary(fc.constantFrom('host', 'port', 'listen', 'mdns'), fc.jsonValue()),
    )
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.constantFrom('http', 'p2p', 'log', 'x'), section), async (config) => {
        await writeJson(directory, 'config', config)
        const code = await readSettings(directory, {}, {}).then(
          () => 'CONFIG_INVALID',
          (error: unknown) => (error as { code?: unknown }).code,
        )
        expect(code).toBe('CONFIG_INVALID')
      }),
      { numRuns: 50 },
    )
  })
})

describe('the environment', () => {
  test('says where a node lives, and what opens its owner', () => {
    expect(defaultDirectory({})).toBe(join(homedir(), '.csb'))
    expect(defaultDirectory({ CSB_DATA: '' })).toBe(join(homedir(), '.csb'))
    expect(defaultDirectory({ CSB_DATA: '/data' })).toBe('/data')
    expect(passphraseOf({ CSB_PASSPHRASE: 'open' })).toBe('open')
    expect(passphraseOf({ CSB_PASSPHRASE: '' })).toBeUndefined()
  })

  test('goes to an agent without anything of the node', () => {
    const env = { PATH: '/bin', HOME: '/root', CSB_PASSPHRASE: 'secret', AWS_SECRET: 'x' }
    expect(agentEnvironment(env)).toEqual({ PATH: '/bin', HOME: '/root' })
  })

  test('is that of a run where there is any sign of one, also without its token', () => {
    expect(sessionOf({ CSB_RUN: '', CSB_TOKEN: '', CSB_URL: '', CSB_DATA: '/data' })).toEqual({ isRun: false })
    expect(sessionOf({ CSB_RUN: 'task_1' })).toEqual({ isRun: true })
    expect(sessionOf({ CSB_URL: 'http://a', CSB_TOKEN: '' })).toEqual({ isRun: true, url: 'http://a' })
    expect(sessionOf({ CSB_TOKEN: 'x' })).toEqual({ isRun: true, token: 'x' })
  })

  test('tells where the person stands: npm runs our scripts at the root of the checkout', () => {
    expect(callerDirectory(NPM)).toBe('/somewhere')
    expect(callerDirectory({ ...NPM, npm_lifecycle_event: 'test' })).toBe(process.cwd())
    expect(callerDirectory({ ...NPM, npm_package_name: 'theirs' })).toBe(process.cwd())
    expect(callerDirectory({})).toBe(process.cwd())
    expect([commandName(NPM), commandName({})]).toEqual(['npm run -s csb --', 'csb'])
  })
})
