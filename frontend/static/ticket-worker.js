// Service worker: shows ticket pages offline that were opened before, with their styles, fonts and scripts. It handles
// no other requests: not the seat map, not the API, nothing that changes state.
//
// Network first: a returned ticket is deleted from the cache as soon as the server says so.
//
// Pages request files by the version of their site (/site/…). The cache has one copy per file, under its plain name
// without the version, shared by all tickets: a style of any version fits a ticket, and old versions do not pile up.
importScripts("/pkg/kept-pages.js");

// A new number in the name discards everything cached under the previous one.
const CACHE = "rowlock-tickets-1";
// Maximum number of cached tickets; the one opened longest ago is deleted first.
const MAX_TICKETS = 40;
// Maximum number of files cached for one ticket.
const MAX_ASSETS = 12;

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
  const name = plainPath(pathname);
  if (request.method === "GET" && origin === self.location.origin && wanted.test(name)) {
    const fresh = fetch(request).then((answer) => updateCache(name, answer));
    event.respondWith(freshOrKept(fresh, () => cached(name)));
  }
});

self.addEventListener("message", (event) => {
  const { keep, assets } = event.data ?? {};
  if (typeof keep !== "string" || !TICKET.test(keep) || !Array.isArray(assets)) return;
  const files = assets.filter((path) => ASSET.test(plainPath(path))).slice(0, MAX_ASSETS);
  const work = Promise.all([keep, ...files].map(cachePath)).then((results) => {
    event.ports[0]?.postMessage(results.every(Boolean) ? "kept" : "not kept");
  });
  event.waitUntil(work);
});

/** Fetches a page or file into the cache. Returns whether the cache has a copy afterwards, new or old. */
async function cachePath(path) {
  try {
    // "manual": a ticket page that redirects is no longer a ticket.
    await updateCache(plainPath(path), await fetch(path, { redirect: "manual" }));
  } catch {
    // No network: an existing copy is enough.
  }
  return (await cached(plainPath(path))) !== undefined;
}

/** Returns the path without the version of the site. */
function plainPath(path) {
  return path.replace(VERSION, "");
}

/** Returns the cached answer; undefined if there is none or the browser has no storage for this site. */
function cached(path) {
  return caches.open(CACHE).then((cache) => cache.match(path)).catch(() => undefined);
}

/**
 * Caches a good answer, deletes the copy of a page that is gone, and returns the answer. A transient error of the
 * server changes nothing. If storage fails or is full, the answer is returned all the same.
 */
async function updateCache(path, answer) {
  try {
    const cache = await caches.open(CACHE);
    if (isGood(answer)) {
      await cache.put(path, answer.clone());
      await forgetOldest(cache, TICKET, MAX_TICKETS);
    } else if (isGone(answer)) {
      await cache.delete(path);
    }
  } catch {
    // The answer does not depend on the cache.
  }
  return answer;
}
