/** Writes one file of a data folder again and again, a digit at a time, until it is killed. */
import { writeText } from '../src/data-folder.ts'

const [directory = ''] = process.argv.slice(2)
for (let n = 0; ; n++) await writeText(directory, 'config', String(n % 10).repeat(200_000))
