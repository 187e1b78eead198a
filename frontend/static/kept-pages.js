// Shared by the service workers that cache pages (ticket-worker.js, door-worker.js): network first, then the cache.
// A page is deleted from the cache when the server says that it is gone.
//
// The names of functions are stable: in a rolling upgrade a worker may load this file from a replica of another version.

// Timeout for the network before the cached copy is used. Staff and guests wait at a door meanwhile.
const TIMEOUT_MS = 3_000;

/** Returns the answer of the `fresh` request; the copy from `kept` if it fails, answers 5xx or takes too long. */
async function freshOrKept(fresh, kept) {
  const late = pause(TIMEOUT_MS).then(kept).then((answer) => answer ?? fresh);
  try {
    const answer = await Promise.race([fresh, late]);
    return answer.status >= 500 ? ((await kept()) ?? answer) : answer;
  } catch (cause) {
    const answer = await kept();
    if (answer) return answer;
    throw cause;
  }
}

/** Returns whether an answer may be cached: a success from this origin without a redirect. */
function isGood(answer) {
  return answer.ok && answer.type === "basic" && !answer.redirected;
}

/** Returns whether a page is gone or forbidden: a redirect, or 4xx except 429. Other errors are transient. */
function isGone(answer) {
  return answer.type === "opaqueredirect" || (answer.status >= 400 && answer.status < 500 && answer.status !== 429);
}

/** Deletes all caches whose names start with `start`, except one. */
async function forgetCaches(start, except) {
  const names = (await caches.keys()).filter((name) => name.startsWith(start) && name !== except);
  await Promise.all(names.map((name) => caches.delete(name)));
}

/** Deletes the pages that were cached longest ago until at most `max` are left. */
async function forgetOldest(cache, isPage, max) {
  // `keys` returns them in the order of their last `put`.
  const pages = (await cache.keys()).filter((request) => isPage.test(new URL(request.url).pathname));
  for (const request of pages.slice(0, Math.max(0, pages.length - max))) await cache.delete(request);
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
