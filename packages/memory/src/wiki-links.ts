/**
 * Links between the notes of a vault: `[[Name]]`, `[[folder/Name#Heading|shown]]`, `![[Name]]`, `[shown](Name.md)`.
 * The text stays as it is; what is found here are the notes that it names. Names that no note bears, as those
 * of images, are passed over.
 */
import { posix } from 'node:path'

// bounded, so that a long line of brackets costs no more than its length
const WIKI = /\[\[([^[\]|#^\n]{1,512})(?:[#^][^[\]|\n]{0,512})?(?:\|[^[\]\n]{0,512})?\]\]/g
const MARKDOWN = /\]\(<?([^()<>\n]{1,512}\.md)(?:#[^()<>\n]{0,512})?>?\)/gi

/** A note of a vault: its id, its path, and the other names it goes by. */
export type Named = { readonly id: string; readonly path: string; readonly aliases: readonly string[] }

/** Gives the ids of the notes that a text in the file `path` links to, in order, perhaps more than once. */
export type LinkFinder = (text: string, path: string) => string[]

/** @param notes all notes of the vault; of equal names the shortest path counts, as in Obsidian */
export function createLinkFinder(notes: readonly Named[]): LinkFinder {
  const byPath = new Map<string, string>()
  const byAlias = new Map<string, string>()
  const shortestFirst = [...notes].sort((a, b) => a.path.length - b.path.length || (a.path < b.path ? -1 : 1))
  const keep = (map: Map<string, string>, name: string, id: string) => {
    if (!map.has(name)) map.set(name, id)
  }
  for (const { path, id } of shortestFirst) byPath.set(fold(path), id)
  const byEnd = new Map(byPath)
  for (const { path, id, aliases } of shortestFirst) {
    const segments = fold(path).split('/')
    for (let at = 1; at < segments.length; at++) keep(byEnd, segments.slice(at).join('/'), id)
    for (const alias of aliases) keep(byAlias, fold(alias), id)
  }
  const find = (target: string, from: string): string | undefined => {
    const name = fold(target)
    const beside = posix.join(posix.dirname(fold(from)), name)
    return byPath.get(beside) ?? byEnd.get(name) ?? byAlias.get(name)
  }
  return (text, path) => {
    const wiki = [...text.matchAll(WIKI)].map(([, target = '']) => target.trim())
    const plain = [...text.matchAll(MARKDOWN)].map(([, target = '']) => decode(target))
    return [...wiki, ...plain].map((target) => find(target, path)).filter((id) => id !== undefined)
  }
}

/** One spelling for names that people take for the same: NFC, lower case, without the ending. */
const fold = (name: string): string => name.normalize('NFC').toLowerCase().replace(/^\/+/, '').replace(/\.md$/, '')

function decode(target: string): string {
  try {
    return decodeURIComponent(target)
  } catch {
    return target
  }
}
