// Shows tickets that were opened before where there is no network. Ticket pages and what they are drawn with,
// nothing else: never the seat map, never the API, never anything that changes something.
//
// The network comes first: a ticket that was given back is forgotten as soon as the server says so.

// Another number forgets everything kept under the one before.
const CACHE = "rowlock-tickets-1";
// Tickets kept at most; the one opened longest ago goes first.
const MOST_TICKETS = 40;
// Files kept at most for one ticket.
const MOST_ASSETS = 12;
// A network that has not answered after this many milliseconds is no network: people wait behind you.
const PATIENCE_MS = 3_000;

const TICKET = /^\/(?:bookings\/[0-9a-f-]{36}\/ticket|tickets\/[0-9A-Z]{1,64})$/;
const ASSET = /^\/(?:(?:style|fonts)\/[\w.-]+|pkg\/keep-ticket\.js|favicon\.svg)$/;

self.addEventListener("install", () => self.skipWaiting());

self.addEventListener("activate", (event) => {
  event.waitUntil(forgetOlderVersions().then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  const wanted = request.mode === "navigate" ? TICKET : ASSET;
  if (request.method === "GET" && origin === self.location.origin && wanted.test(pathname)) {
    event.respondWith(freshOrKept(request, pathname));
  }
});

self.addEventListener("message", (event) => {
  const { keep, assets } = event.data ?? {};
  if (typeof keep !== "string" || !TICKET.test(keep) || !Array.isArray(assets)) return;
  const files = assets.filter((path) => ASSET.test(path)).slice(0, MOST_ASSETS);
  const work = Promise.all([keep, ...files].map(isKept)).then((kept) => {
    event.ports[0]?.postMessage(kept.every(Boolean) ? "kept" : "not kept");
  });
  event.waitUntil(work);
});

/** The network's answer; what is kept where the network has none, or none in time. */
async function freshOrKept(request, path) {
  const fresh = fetch(request).then((answer) => noted(path, answer));
  const late = pause(PATIENCE_MS).then(() => kept(path)).then((answer) => answer ?? fresh);
  try {
    const answer = await Promise.race([fresh, late]);
    return answer.status >= 500 ? ((await kept(path)) ?? answer) : answer;
  } catch (cause) {
    const answer = await kept(path);
    if (answer) return answer;
    throw cause;
  }
}

/** Keeps a page or a file, or finds that it is kept already. */
async function isKept(path) {
  try {
    // A ticket that leads elsewhere is none any more.
    await noted(path, await fetch(path, { redirect: "manual" }));
  } catch {
    // No network: what is there counts.
  }
  return (await kept(path)) !== undefined;
}

/** What is kept; nothing where the browser keeps nothing for us. */
function kept(path) {
  return caches.open(CACHE).then((cache) => cache.match(path)).catch(() => undefined);
}

/**
 * Remembers an answer, or forgets what is gone. Trouble of the server's that passes changes nothing, and a
 * browser that has no room left takes no answer away.
 */
async function noted(path, answer) {
  try {
    const cache = await caches.open(CACHE);
    if (answer.ok && answer.type === "basic" && !answer.redirected) {
      await cache.put(path, answer.clone());
      await forgetOldest(cache);
    } else if (answer.type === "opaqueredirect" || (answer.status >= 400 && answer.status < 500 && answer.status !== 429)) {
      await cache.delete(path);
    }
  } catch {
    // The answer is good all the same.
  }
  return answer;
}

async function forgetOldest(cache) {
  const tickets = (await cache.keys()).filter((request) => TICKET.test(new URL(request.url).pathname));
  // In the order they were kept last.
  for (const request of tickets.slice(0, Math.max(0, tickets.length - MOST_TICKETS))) await cache.delete(request);
}

async function forgetOlderVersions() {
  const ours = (await caches.keys()).filter((name) => name.startsWith("rowlock-tickets-") && name !== CACHE);
  await Promise.all(ours.map((name) => caches.delete(name)));
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
