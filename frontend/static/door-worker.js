// Opens the page of a show's door where there is no network. That page and what it runs on, nothing else: never the
// API, never anybody else's page. The list of tickets the page keeps itself.
//
// What is kept is a set: a page and the scripts, the module and the style it was opened with, which fit together. It
// is kept whole, under a name made from its scripts and module, and then sets of other builds go. The page asks for its
// files by the version of the site it is of (/site/…), so a page of one version is not kept with files of another, and a
// copy of such a file is as good as the file: a server that was renewed may not have it any more.
importScripts("/pkg/kept-pages.js");

// Names of sets begin so; another number forgets all sets of the one before.
const SET = "rowlock-door-1-";
// Doors kept at most; the one opened longest ago goes first.
const MOST_DOORS = 4;
// Files kept at most.
const MOST_FILES = 32;
// Pages that are remembered as opened from a set, at most.
const MOST_OPENED = 16;

const DOOR = /^\/staff\/[\w-]+\/door\/[0-9a-f-]{36}$/;
const FILE =
  /^(?:\/site\/[0-9a-f]{16})?\/(?:(?:style|fonts)\/[\w.-]+|pkg\/(?:account|boot|keep|keep-door|staff)\.js|pkg\/staff_bg\.wasm|pkg\/staff-parts\/\w+\.(?:js|wasm))$|^\/favicon\.svg$/;
// The script that every page of a door asks for first, under the address of the page's own version.
const ENTRY = "/pkg/boot.js";

// Pages that were opened from a set, and from which: the rest of what they need comes from there as well. A worker
// that the browser has put to sleep meanwhile forgets this, and asks the network first.
const opened = new Map();

self.addEventListener("install", () => self.skipWaiting());

self.addEventListener("activate", (event) => {
  event.waitUntil(forgetOtherNumbers().then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== self.location.origin) return;
  if (request.mode === "navigate") {
    if (DOOR.test(pathname)) event.respondWith(page(event, pathname));
  } else if (FILE.test(pathname)) {
    event.respondWith(file(event, pathname));
  }
});

self.addEventListener("message", (event) => {
  const { keep, assets } = event.data ?? {};
  if (typeof keep !== "string" || !DOOR.test(keep) || !Array.isArray(assets)) return;
  const files = assets.filter((path) => FILE.test(path)).sort();
  // What a page from a set runs on is in the set; what the network has now need not fit to it.
  const mayKeep = !opened.has(event.source?.id) && files.length <= MOST_FILES;
  const work = (mayKeep ? keepSet(keep, files) : Promise.resolve())
    .catch(() => undefined)
    .then(() => find(keep))
    .then((found) => event.ports[0]?.postMessage(found ? "kept" : "not kept"));
  event.waitUntil(work);
});

async function page(event, path) {
  let found;
  const kept = async () => (found = await find(path))?.answer;
  const fresh = fetch(event.request).then((answer) => noted(path, answer));
  const answer = await freshOrKept(fresh, kept);
  if (answer === found?.answer && event.resultingClientId) {
    opened.set(event.resultingClientId, found.name);
    if (opened.size > MOST_OPENED) opened.delete(opened.keys().next().value);
  }
  return answer;
}

async function file(event, path) {
  const set = opened.get(event.clientId);
  if (set) return (await find(path, set))?.answer ?? fetch(event.request);
  // The page is the network's. A replica of another version has none of this one's module; a copy of this very file does.
  const kept = (await find(path))?.answer;
  if (kept && isExact(path, kept)) return kept;
  // Any other copy may be of another build, and is only better than nothing.
  try {
    const answer = await fetch(event.request);
    return answer.ok ? answer : (kept ?? answer);
  } catch (cause) {
    if (kept) return kept;
    throw cause;
  }
}

/**
 * Whether a copy is what this address means, to the last byte: it names a version, and the server that gave the copy had
 * that version. One that has another gives a style of its own, and says that nobody may keep it.
 */
function isExact(path, copy) {
  return path.startsWith("/site/") && /\bimmutable\b/.test(copy.headers.get("cache-control"));
}

/** What is kept under a path, and in which set; nothing where the browser keeps nothing for us. */
async function find(path, set) {
  try {
    // The newest first.
    const names = set ? [set] : (await caches.keys()).filter((name) => name.startsWith(SET)).reverse();
    for (const name of names) {
      const answer = await caches.match(path, { cacheName: name });
      if (answer) return { name, answer };
    }
  } catch {
    // As good as nothing.
  }
  return undefined;
}

/** Forgets a door that is gone; and everything where the server wants to know first who we are. */
async function noted(path, answer) {
  try {
    if (answer.type === "opaqueredirect") {
      await forgetCaches(SET);
    } else if (isGone(answer)) {
      const names = (await caches.keys()).filter((name) => name.startsWith(SET));
      await Promise.all(names.map(async (name) => (await caches.open(name)).delete(path)));
    }
  } catch {
    // The answer is good all the same.
  }
  return answer;
}

/** Keeps a page with its files, all of them or none, in place of whatever was kept of another build. */
async function keepSet(path, files) {
  // The page has them a moment ago: what it runs on is taken, not what a server has that was renewed since.
  const answers = await Promise.all(files.map((file) => fetch(file, { cache: "force-cache" })));
  const page = await noted(path, await fetch(path, { redirect: "manual" }));
  if (![page, ...answers].every(isGood)) return;
  // Renewed since, the server gives a page that none of these files is for.
  if (!(await isMadeWith(page, files))) return;
  const name = SET + (await digestOf(files, answers));
  const isNew = !(await caches.has(name));
  try {
    const cache = await caches.open(name);
    await Promise.all(files.map((file, number) => cache.put(file, answers[number])));
    // Last: a set that has a page has everything.
    await cache.put(path, page);
    await forgetOldest(cache, DOOR, MOST_DOORS);
  } catch (cause) {
    // No room: half a set is none.
    if (isNew) await caches.delete(name);
    throw cause;
  }
  await forgetCaches(SET, name);
}

/** Whether a page asks for files of the version that these are of. */
async function isMadeWith(page, files) {
  const entry = files.find((file) => file.endsWith(ENTRY));
  return entry !== undefined && (await page.clone().text()).includes(`"${entry}"`);
}

/** A name for the build that these files are of. Which icon or font a page happens to use is no matter of builds. */
async function digestOf(files, answers) {
  const sums = await Promise.all(answers.map(async (answer) => sha256(await answer.clone().arrayBuffer())));
  const lines = files.map((file, number) => `${file} ${sums[number]}`).filter((line) => line.includes("/pkg/"));
  return (await sha256(new TextEncoder().encode(lines.join("\n")))).slice(0, 32);
}

async function sha256(bytes) {
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...sum].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function forgetOtherNumbers() {
  const others = (await caches.keys()).filter((name) => name.startsWith("rowlock-door-") && !name.startsWith(SET));
  await Promise.all(others.map((name) => caches.delete(name)));
}
