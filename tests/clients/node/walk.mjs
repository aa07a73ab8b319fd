// Prints what a client found, step by step, as lines of JSON that tests/clients compares.

export const PATIENCE_MS = 30_000

if (process.argv.length !== 4) {
  console.error(`usage: node ${process.argv[1]} HOST:PORT[,HOST:PORT...] TOPIC`)
  process.exit(1)
}
export const bootstrap = process.argv[2].split(',')
export const topic = process.argv[3]

// Kafka's error code in an error or in one of those that it stands for; undefined if there is none.
function codeIn (error, field) {
  if (!error || typeof error !== 'object') return undefined
  if (typeof error[field] === 'number' && error[field] !== 0) return error[field]
  for (const inner of [error.cause, ...(error.errors ?? [])]) {
    const code = codeIn(inner, field)
    if (code !== undefined) return code
  }
  return undefined
}

// Print what was found: a value, Kafka's error code, or the client's own error.
export function walker (field) {
  return async (step, find) => {
    let found
    let timer
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${PATIENCE_MS} ms`)), PATIENCE_MS)
    })
    try {
      found = await Promise.race([find(), late])
    } catch (error) {
      const code = codeIn(error, field)
      found = code === undefined ? { error: `${error.name}: ${error.message}` } : { code }
    }
    clearTimeout(timer)
    console.log(JSON.stringify({ step, found: found ?? null }, (_, value) => (typeof value === 'bigint' ? Number(value) : value)))
  }
}

// Ask until the answer is as wanted, and no longer than half of PATIENCE_MS; the last answer.
export async function until (ask, isAsWanted) {
  const deadline = Date.now() + PATIENCE_MS / 2
  while (true) {
    const found = await ask()
    if (isAsWanted(found) || Date.now() > deadline) return found
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}
