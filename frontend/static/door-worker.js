// Service worker: opens the door page of a show offline, with the files it needs. It handles no other requests: not the
// API, no other pages. The page itself stores the list of tickets.
//
// The cache holds sets: pages with the scripts, module and style of one build, which fit together. A set is stored
// completely or not at all, under a digest of its scripts and module; sets of other builds are deleted then. Pages request
// files by the version of their site (/site/…), so files of two versions never mix. A cached copy of such a file equals
// the file, and an upgraded server may no longer have it.
importScripts("/pkg/kept-pages.js");

// Prefix of cache names. A new number discards all sets of the previous one.
const SET = "rowlock-door-1-";
// Maximum number of cached doors; the one opened longest ago is deleted first.
const MAX_DOORS = 4;
// Maximum number of files in a set.
const MAX_FILES = 32;
// Maximum number of entries in `setOfClient`.
const MAX_CLIENTS = 16;

const DOOR = /^\/staff\/[\w-]+\/door\/[0-9a-f-]{36}$/;
const FILE =
  /^(?:\/site\/[0-9a-f]{16})?\/(?:(?:style|fonts)\/[\w.-]+|pkg\/(?:account|boot|keep|keep-door|staff)\.js|pkg\/staff_bg\.wasm|pkg\/staff-parts\/\w+\.(?:js|wasm))$|^\/favicon\.svg$/;
// The script that every door page loads first, with the version of the page in its address.
const ENTRY = "/pkg/boot.js";

// The set from which each open page (by client ID) was served; its files come from the same set. The map is lost when the
// browser stops the worker; then files come from the network first.
const setOfClient = new Map();

self.addEventListener("install", () => self.skipWaiting());

self.addEventListener("activate", (event) => {
  event.waitUntil(deleteOtherNumbers().then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== self.location.origin) return;
  if (request.mode === "navigate") {
    if (DOOR.test(pathname)) event.respondWith(servePage(event, pathname));
  } else if (FILE.test(pathname)) {
    event.respondWith(serveFile(event, pathname));
  }
});

self.addEventListener("message", (event) => {
  const { keep, assets } = event.data ?? {};
  if (typeof keep !== "string" || !DOOR.test(keep) || !Array.isArray(assets)) return;
  const files = assets.filter((path) => FILE.test(path)).sort();
  // A page that was served from a set is already cached, and files from the network may be of another build.
  const mayKeep = !setOfClient.has(event.source?.id) && files.length <= MAX_FILES;
  const work = (mayKeep ? keepSet(keep, files) : Promise.resolve())
    .catch(() => undefined)
    .then(() => find(keep))
    .then((found) => event.ports[0]?.postMessage(found ? "kept" : "not kept"));
  event.waitUntil(work);
});

async function servePage(event, path) {
  let found;
  const cached = async () => (found = await find(path))?.answer;
  const fresh = fetch(event.request).then((answer) => deleteIfGone(path, answer));
  const answer = await freshOrKept(fresh, cached);
  if (answer === found?.answer && event.resultingClientId) {
    setOfClient.set(event.resultingClientId, found.name);
    if (setOfClient.size > MAX_CLIENTS) setOfClient.delete(setOfClient.keys().next().value);
  }
  return answer;
}

async function serveFile(event, path) {
  const set = setOfClient.get(event.clientId);
  if (set) return (await find(path, set))?.answer ?? fetch(event.request);
  // The page came from the network. A replica of another version lacks its module, but an exact copy may be cached.
  const copy = (await find(path))?.answer;
  if (copy && isExact(path, copy)) return copy;
  // Another copy may be of another build; it is the last resort.
  try {
    const answer = await fetch(event.request);
    return answer.ok ? answer : (copy ?? answer);
  } catch (cause) {
    if (copy) return copy;
    throw cause;
  }
}

/**
 * Returns whether a copy is byte for byte the file of the version in its address. A server of another version answers
 * with its own style and forbids caching, so only answers marked `immutable` are exact.
 */
function isExact(path, copy) {
  return path.startsWith("/site/") && /\bimmutable\b/.test(copy.headers.get("cache-control"));
}

/** Returns the cached answer for a path and the name of its set; undefined if there is none or no storage. */
async function find(path, set) {
  try {
    // Newest set first.
    const names = set ? [set] : (await caches.keys()).filter((name) => name.startsWith(SET)).reverse();
    for (const name of names) {
      const answer = await caches.match(path, { cacheName: name });
      if (answer) return { name, answer };
    }
  } catch {
    // No storage: same as no copy.
  }
  return undefined;
}

/** Deletes the copy of a door that is gone; deletes all sets if the server redirects to the sign-in. Returns the answer. */
async function deleteIfGone(path, answer) {
  try {
    if (answer.type === "opaqueredirect") {
      await forgetCaches(SET);
    } else if (isGone(answer)) {
      const names = (await caches.keys()).filter((name) => name.startsWith(SET));
      await Promise.all(names.map(async (name) => (await caches.open(name)).delete(path)));
    }
  } catch {
    // The answer does not depend on the cache.
  }
  return answer;
}

/** Stores a page with its files in a set, completely or not at all, and deletes the sets of other builds. */
async function keepSet(path, files) {
  // "force-cache": takes the files the page has just loaded, even if the server was upgraded since.
  const answers = await Promise.all(files.map((file) => fetch(file, { cache: "force-cache" })));
  const page = await deleteIfGone(path, await fetch(path, { redirect: "manual" }));
  if (![page, ...answers].every(isGood)) return;
  // If the server was upgraded since, its page does not fit these files.
  if (!(await isMadeWith(page, files))) return;
  const name = SET + (await digestOf(files, answers));
  const isNew = !(await caches.has(name));
  try {
    const cache = await caches.open(name);
    await Promise.all(files.map((file, number) => cache.put(file, answers[number])));
    // Last: a set with a page is complete.
    await cache.put(path, page);
    await forgetOldest(cache, DOOR, MAX_DOORS);
  } catch (cause) {
    // No space: an incomplete set is useless.
    if (isNew) await caches.delete(name);
    throw cause;
  }
  await forgetCaches(SET, name);
}

/** Returns whether a page loads the entry script that is in these files: page and files are of one version. */
async function isMadeWith(page, files) {
  const entry = files.find((file) => file.endsWith(ENTRY));
  return entry !== undefined && (await page.clone().text()).includes(`"${entry}"`);
}

/** Returns a digest of the scripts and modules, which identifies the build. Icons and fonts are not part of it. */
async function digestOf(files, answers) {
  const sums = await Promise.all(answers.map(async (answer) => sha256(await answer.clone().arrayBuffer())));
  const lines = files.map((file, number) => `${file} ${sums[number]}`).filter((line) => line.includes("/pkg/"));
  return (await sha256(new TextEncoder().encode(lines.join("\n")))).slice(0, 32);
}

async function sha256(bytes) {
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...sum].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function deleteOtherNumbers() {
  const others = (await caches.keys()).filter((name) => name.startsWith("rowlock-door-") && !name.startsWith(SET));
  await Promise.all(others.map((name) => caches.delete(name)));
}
