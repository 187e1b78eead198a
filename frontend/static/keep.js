// What pages have in common that open again where there is no network (keep-ticket.js, keep-door.js).

// How long it may take to learn of a newer worker, and again until that works: a dead network says nothing.
const PATIENCE_MS = 3_000;

/**
 * The worker of the pages below `scope`, once it works; nobody where the browser has none. The newest: one of before knows
 * other rules, and may throw away what a page of now is kept with.
 */
export async function workerFor(script, scope) {
  if (!("serviceWorker" in navigator)) return undefined;
  const registration = await navigator.serviceWorker.register(script, { scope });
  const { active } = registration;
  // Nobody else is there to wait for.
  if (!active) return activated(registration.installing ?? registration.waiting);
  await inTime(registration.update());
  const next = registration.installing ?? registration.waiting;
  return (next && (await inTime(activated(next)))) ?? registration.active ?? active;
}

/** The files this page was made with, once it is known which fonts it really uses. */
export async function filesInUse() {
  await Promise.all([document.fonts.ready, loaded()]);
  const own = performance.getEntriesByType("resource").map((entry) => new URL(entry.name));
  return [...new Set(own.filter((url) => url.origin === location.origin).map((url) => url.pathname))];
}

/** Has the worker keep this page with these files. Where it did, the element of this id says so. */
export function keep(worker, assets, id) {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = ({ data }) => {
    const words = document.getElementById(id);
    if (data === "kept" && words) words.textContent = words.dataset.words;
    port1.close();
  };
  worker.postMessage({ keep: location.pathname, assets }, [port2]);
}

/** What is promised; nothing where that fails, or does not come in time. */
function inTime(promise) {
  return Promise.race([promise.catch(() => undefined), new Promise((resolve) => setTimeout(resolve, PATIENCE_MS))]);
}

/** The worker, once it works. */
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
