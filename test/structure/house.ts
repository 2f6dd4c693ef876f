/** Reads the checkout once as plain values, so that each rule of the house is a function over a list of files. */
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export type SourceFile = {
  /** from the root, parted by `/` */
  readonly path: string
  readonly text: string
}

export type Manifest = {
  readonly path: string
  readonly name: string
  readonly dependencies: Readonly<Record<string, string>>
}

export type House = {
  readonly files: readonly SourceFile[]
  readonly manifests: readonly Manifest[]
}

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const SKIPPED = new Set(['node_modules', 'dist', '.git', 'coverage', 'vectors'])
const GENERATED = 'packages/core/src/schema/'

/** All hand-written TypeScript and JavaScript, and the manifests of packages and apps. */
export async function readHouse(): Promise<House> {
  const files: SourceFile[] = []
  const manifests: Manifest[] = []
  for (const path of await listFiles()) {
    if (/\.(?:ts|mjs)$/.test(path) && !path.startsWith(GENERATED)) files.push({ path, text: await readText(path) })
    if (/^(?:packages|apps)\/[^/]+\/package\.json$/.test(path)) {
      const { name, dependencies } = JSON.parse(await readText(path)) as Partial<Manifest> & { name: string }
      manifests.push({ path, name, dependencies: dependencies ?? {} })
    }
  }
  return { files, manifests }
}

/** Paths of all files of the checkout but what is installed, built or generated vectors, sorted. */
export async function listFiles(): Promise<readonly string[]> {
  const paths: string[] = []
  const walk = async (folder: string): Promise<void> => {
    for (const entry of await readdir(join(ROOT, folder), { withFileTypes: true })) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`
      if (entry.isDirectory() && !SKIPPED.has(entry.name)) await walk(path)
      if (entry.isFile()) paths.push(path)
    }
  }
  await walk('')
  return paths.sort()
}

/** @param path from the root */
export function readText(path: string): Promise<string> {
  return readFile(join(ROOT, path), 'utf8')
}

/** `packages/store` of `packages/store/src/view.ts`; undefined outside of packages and apps. */
export function roomOf(path: string): string | undefined {
  return /^(?:packages|apps)\/[^/]+/.exec(path)?.[0]
}

/** Sources of packages and apps, without their tests. */
export function sourcesOf(files: readonly SourceFile[]): readonly SourceFile[] {
  return files.filter(({ path }) => /^(?:packages|apps)\/[^/]+\/src\//.test(path))
}
