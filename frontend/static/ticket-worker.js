// Shows tickets that were opened before where there is no network. Ticket pages and what they are drawn with,
// nothing else: never the seat map, never the API, never anything that changes something.
//
// The network comes first: a ticket that was given back is forgotten as soon as the server says so.
//
// Pages ask for files by the version of the site they are of (/site/…). What is kept of a file is the last one there was,
// for all tickets, by its plain name: any version's looks do for any ticket, and none piles up.
importScripts("/pkg/kept-pages.js");

// Another number forgets everything kept under the one before.
const CACHE = "rowlock-tickets-1";
// Tickets kept at most; the one opened longest ago goes first.
const MOST_TICKETS = 40;
// Files kept at most for one ticket.
const MOST_ASSETS = 12;

const TICKET = /^\/(?:bookings\/[0-9a-f-]{36}\/ticket|tickets\/[0-9A-Z]{1,64})$/;
const ASSET = /^\/(?:(?:style|fonts)\/[\w.-]+|pkg\/keep(?:-ticket)?\.js|favicon\.svg)$/;
const VERSION = /^\/site\/[0-9a-f]{16}(?=\/)/;

self.addEventListener("install", () => self.skipWaiting());

self.addEventListener("activate", (event) => {
  event.waitUntil(forgetCaches("rowlock-tickets-", CACHE).then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  const wanted = request.mode === "navigate" ? TICKET : ASSET;
  const name = plain(pathname);
  if (request.method === "GET" && origin === self.location.origin && wanted.test(name)) {
    const fresh = fetch(request).then((answer) => noted(name, answer));
    event.respondWith(freshOrKept(fresh, () => kept(name)));
  }
});

self.addEventListener("message", (event) => {
  const { keep, assets } = event.data ?? {};
  if (typeof keep !== "string" || !TICKET.test(keep) || !Array.isArray(assets)) return;
  const files = assets.filter((path) => ASSET.test(plain(path))).slice(0, MOST_ASSETS);
  const work = Promise.all([keep, ...files].map(isKept)).then((kept) => {
    event.ports[0]?.postMessage(kept.every(Boolean) ? "kept" : "not kept");
  });
  event.waitUntil(work);
});

/** Keeps a page or a file, or finds that it is kept already. */
async function isKept(path) {
  try {
    // A ticket that leads elsewhere is none any more.
    await noted(plain(path), await fetch(path, { redirect: "manual" }));
  } catch {
    // No network: what is there counts.
  }
  return (await kept(plain(path))) !== undefined;
}

/** The name of a file, whichever version of it is asked for. */
function plain(path) {
  return path.replace(VERSION, "");
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
    if (isGood(answer)) {
      await cache.put(path, answer.clone());
      await forgetOldest(cache, TICKET, MOST_TICKETS);
    } else if (isGone(answer)) {
      await cache.delete(path);
    }
  } catch {
    // The answer is good all the same.
  }
  return answer;
}
