/** Structured log lines on stderr: events, ids, codes. No secrets and no content ever get here. */
import { pino } from 'pino'
import type { Log } from '@csb/service'
import type { Settings } from './config.ts'

export function createLog(level: Settings['log']['level']): Log {
  const logger = pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ fd: 2, sync: true }),
  )
  return (severity, event, fields = {}) => logger[severity](fields, event)
}
