// Shared by pages that open offline (keep-ticket.js, keep-door.js).

// Timeout for the update check, and again for the activation of a new worker. A dead network raises no error.
const TIMEOUT_MS = 3_000;

/**
 * Registers a service worker for pages below `scope` and returns it once it is active; undefined without browser support.
 * Prefers the newest version: an older worker has other cache rules and may delete what this page needs.
 */
export async function workerFor(script, scope) {
  if (!("serviceWorker" in navigator)) return undefined;
  const registration = await navigator.serviceWorker.register(script, { scope });
  const { active } = registration;
  // First registration: there is no older worker to fall back to.
  if (!active) return activated(registration.installing ?? registration.waiting);
  await withTimeout(registration.update());
  const next = registration.installing ?? registration.waiting;
  return (next && (await withTimeout(activated(next)))) ?? registration.active ?? active;
}

/** Returns the paths of the files this page has loaded, after the fonts it uses are loaded. */
export async function filesInUse() {
  await Promise.all([document.fonts.ready, loaded()]);
  const own = performance.getEntriesByType("resource").map((entry) => new URL(entry.name));
  return [...new Set(own.filter((url) => url.origin === location.origin).map((url) => url.pathname))];
}

/** Asks the worker to cache this page with these files. On success, the element with this id shows its data-words. */
export function keep(worker, assets, id) {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = ({ data }) => {
    const status = document.getElementById(id);
    if (data === "kept" && status) status.textContent = status.dataset.words;
    port1.close();
  };
  worker.postMessage({ keep: location.pathname, assets }, [port2]);
}

/** Resolves like the promise, or to undefined on failure or after TIMEOUT_MS. */
function withTimeout(promise) {
  return Promise.race([promise.catch(() => undefined), new Promise((resolve) => setTimeout(resolve, TIMEOUT_MS))]);
}

/** Waits until the worker is active. Rejects if another worker replaces it. */
function activated(worker) {
  return new Promise((resolve, reject) => {
    const look = () => {
      if (worker.state === "activated") resolve(worker);
      if (worker.state === "redundant") reject(new Error("the worker was replaced"));
    };
    worker.addEventListener("statechange", look);
    look();
  });
}

function loaded() {
  if (document.readyState === "complete") return undefined;
  return new Promise((resolve) => addEventListener("load", resolve, { once: true }));
}
