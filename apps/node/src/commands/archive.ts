/** csb files export, import: a home as one file, out and in again. */
import type { Command } from 'commander'
import { exportToFile, importFromFile } from '@csb/node'
import { acting, fromCaller } from '../context.ts'
import { homeIn, withHome, type InHome } from '../homes.ts'
import { t } from '../texts.ts'

type Export = InHome & { readonly resume?: boolean }

/** @param files the command that these stand under */
export function archiveCommands(files: Command): void {
  withHome(files.command('export <file>'))
    .description(t('files.export.about'))
    .option('--resume', t('option.resume'))
    .action(
      acting<Export, [string]>(async ({ client, out }, [file], { resume = false, ...options }) => {
        const node = await client()
        const done = await exportToFile(node, {
          file: fromCaller(file),
          resume,
          ...(await homeIn(node, options)),
          onProgress: (bytes, of) => out.progress(t('files.export.progress', progressOf(bytes, of))),
        })
        out.answer(done, t('files.exported', { file, bytes: done.bytes }))
      }),
    )
  files
    .command('import <file>')
    .description(t('files.import.about'))
    .action(
      acting<object, [string]>(async ({ client, out }, [file]) => {
        const done = await importFromFile(await client(), fromCaller(file), (bytes, of) =>
          out.progress(t('files.import.progress', progressOf(bytes, of))),
        )
        out.answer(done, t('files.imported', done))
      }),
    )
}

/** A bar of twenty, and megabytes. */
function progressOf(bytes: number, of: number): { bar: string; done: string; total: string } {
  const filled = of === 0 ? 20 : Math.floor((bytes / of) * 20)
  const mebibytes = (count: number) => (count / 1_048_576).toFixed(1)
  return { bar: '#'.repeat(filled).padEnd(20, '.'), done: mebibytes(bytes), total: mebibytes(of) }
}
