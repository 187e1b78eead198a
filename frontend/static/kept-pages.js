// What our workers have in common that keep pages (ticket-worker.js, door-worker.js): the network comes first, and
// what the server says is gone is forgotten.

// A network that has not answered after this many milliseconds is no network: people wait behind you.
const PATIENCE_MS = 3_000;

/** The network's answer, which is on its way; what `kept` finds where the network has none, or none in time. */
async function freshOrKept(fresh, kept) {
  const late = pause(PATIENCE_MS).then(kept).then((answer) => answer ?? fresh);
  try {
    const answer = await Promise.race([fresh, late]);
    return answer.status >= 500 ? ((await kept()) ?? answer) : answer;
  } catch (cause) {
    const answer = await kept();
    if (answer) return answer;
    throw cause;
  }
}

/** Whether an answer is what was asked for. */
function isGood(answer) {
  return answer.ok && answer.type === "basic" && !answer.redirected;
}

/** Whether the server says that it is not there, or not for us. Trouble that passes is neither good nor gone. */
function isGone(answer) {
  return answer.type === "opaqueredirect" || (answer.status >= 400 && answer.status < 500 && answer.status !== 429);
}

/** Forgets what is kept under names that begin so, but for one. */
async function forgetCaches(start, except) {
  const names = (await caches.keys()).filter((name) => name.startsWith(start) && name !== except);
  await Promise.all(names.map((name) => caches.delete(name)));
}

/** Forgets the pages that were kept longest ago, so that so many are left. */
async function forgetOldest(cache, isPage, most) {
  // In the order they were kept last.
  const pages = (await cache.keys()).filter((request) => isPage.test(new URL(request.url).pathname));
  for (const request of pages.slice(0, Math.max(0, pages.length - most))) await cache.delete(request);
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
