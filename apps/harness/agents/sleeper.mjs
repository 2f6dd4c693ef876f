#!/usr/bin/env node
// An agent that never comes to an end by itself: it goes on saying so until nobody listens any more.
import { setInterval } from 'node:timers/promises'

process.stdout.on('error', () => process.exit(0))
for await (const _ of setInterval(200)) process.stdout.write(`${JSON.stringify({ status: 'still at it' })}\n`)
