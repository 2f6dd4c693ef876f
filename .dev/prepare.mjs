/**
 * Runs before `npm start`, `npm test` and the like, on whatever Node the machine has (16 or newer).
 *
 * Installs what package-lock.json names where node_modules is missing or differs from it, then checks that the
 * `node` which npm scripts will use is new enough. It asks two small files only, so a ready checkout waits some
 * milliseconds. It never changes package-lock.json.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const bin = join(root, 'node_modules', '.bin')
const isWindows = process.platform === 'win32'
const NEEDED = [22, 18]
/** A word this often, so that nobody takes a long install for one that hangs. */
const TELL_MS = 3000

if (!isInstalled()) await install()
checkNode()

/** npm writes the inner lock last, so an install that was broken off does not count. */
function isInstalled() {
  const inner = packagesOf(join(root, 'node_modules', '.package-lock.json'))
  const outer = packagesOf(join(root, 'package-lock.json'))
  if (inner === undefined || outer === undefined) return false
  const isWanted = ([path, entry]) => path !== '' && entry.optional !== true && entry.extraneous !== true
  return (
    Object.entries(outer).every((pair) => !isWanted(pair) || isSame(inner[pair[0]], pair[1])) &&
    Object.entries(inner).every(([path, entry]) => isSame(outer[path], entry))
  )
}

function isSame(one, other) {
  if (one === undefined || other === undefined) return false
  const isOtherBytes = one.integrity !== undefined && other.integrity !== undefined && one.integrity !== other.integrity
  return one.version === other.version && one.link === other.link && !isOtherBytes
}

function packagesOf(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).packages
  } catch {
    return undefined
  }
}

/** Uses the machine's own npm and Node: the pinned Node lies in the folder that `npm ci` takes away. */
async function install() {
  process.stderr.write('csb: installing what package-lock.json names; the first time it takes a minute or two ...\n')
  const path = pathList().filter((folder) => !resolve(folder).endsWith(join('node_modules', '.bin')))
  const args = ['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error']
  const began = Date.now()
  const told = setInterval(() => {
    process.stderr.write(`csb: installing, ${Math.round((Date.now() - began) / 1000)} s\n`)
  }, TELL_MS)
  const failure = await new Promise((done) => {
    const child = spawn('npm', args, {
      cwd: root,
      env: { ...process.env, PATH: path.join(delimiter) },
      stdio: ['ignore', 2, 2],
      shell: isWindows,
    })
    child.once('error', (error) => done(` (${error.message})`))
    child.once('close', (code) => done(code === 0 ? undefined : ''))
  })
  clearInterval(told)
  if (failure === undefined) return
  stop(`the install failed${failure}. Run npm ci to see why.`, 1)
}

function checkNode() {
  const version = versionOfNode()
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])) return
  stop(
    `csb needs Node ${NEEDED.join('.')} or newer, and npm scripts would use ${version || 'none'} here.\n` +
      'On Linux (x64, arm64) and Windows (x64) the right one comes with the install: run npm ci without\n' +
      '--omit=optional. Anywhere else install Node 24 from https://nodejs.org or with your version manager.',
    2,
  )
}

/** The version of the `node` that comes first in the PATH of npm scripts, or '' where there is none. */
function versionOfNode() {
  const shipped = join(bin, isWindows ? 'node.cmd' : 'node')
  const own = process.execPath
  const isShipped = existsSync(shipped)
  if (isShipped ? !isWindows && realpathSync(shipped) === realpathSync(own) : pathHasNpm()) return process.versions.node
  const env = { ...process.env, PATH: [bin, ...pathList()].join(delimiter) }
  const asked = spawnSync('node', ['--version'], { env, encoding: 'utf8', shell: isWindows })
  return (asked.stdout ?? '').trim().replace(/^v/, '')
}

/** npm itself started this file, so its `node` is the one that runs it. */
function pathHasNpm() {
  return process.env.npm_lifecycle_event !== undefined
}

function pathList() {
  return (process.env.PATH ?? process.env.Path ?? '').split(delimiter)
}

function stop(message, code) {
  process.stderr.write(`csb: ${message}\n`)
  process.exit(code)
}
