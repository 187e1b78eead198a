// Starts the client: loads the WebAssembly module of each island of the page and hydrates the islands.
//
// This is a separate file because the content security policy forbids inline scripts. Islands are hydrated one after
// another in document order: an inner island may use context of its outer one. If a module does not load, the page
// stays as the server rendered it and sets <html data-live="failed">; the page of a show then says so, and reloads once the
// network is back.
//
// During a rolling upgrade a request for a module may reach a replica of another version. That replica answers 404,
// because parts of two builds do not fit together; a retry may reach a replica that has it (docs/decisions/0054).
const page = document.documentElement;
const islands = [...document.querySelectorAll("leptos-island")];
// Attempts per file. The pause before attempt n + 1 is n times PAUSE_MS.
const MAX_ATTEMPTS = 5;
const PAUSE_MS = 150;
// Key in sessionStorage that is set after the page reloaded itself because its files were gone.
const RELOADED = "rowlock-loaded-anew";
// Base address of the files of this page's version; islands read it.
page.dataset.site = new URL("..", import.meta.url).href.slice(0, -1);
/** Returns the name of the module that contains an island. */
const moduleOf = (island) => {
  if (island.dataset.component.startsWith("Staff")) return "staff";
  return island.dataset.component.startsWith("SeatMap") ? "show" : "pages";
};

/** Calls `load` until it succeeds, at most MAX_ATTEMPTS times, and passes the number of failures so far. */
async function retry(load) {
  for (let failures = 0; ; ) {
    try {
      return await load(failures);
    } catch (error) {
      failures += 1;
      if (failures === MAX_ATTEMPTS) throw error;
      await new Promise((resolve) => setTimeout(resolve, failures * PAUSE_MS));
    }
  }
}

/** Loads the module of this name and hydrates the given islands with it. */
async function hydrate(name, some) {
  if (some.length === 0) return;
  // Browsers may cache the failure of a module script, so each retry uses another address.
  const module = await retry((failures) => import(failures ? `./${name}.js?${failures}` : `./${name}.js`));
  await retry(() => module.default({ module_or_path: wasm(name) }));
  module.hydrate();
  for (const island of some) {
    const start = module[island.dataset.component];
    if (start) {
      await start(island);
    } else {
      console.warn(`No island is called ${island.dataset.component}.`);
    }
  }
}

function wasm(name) {
  return new URL(`./${name}_bg.wasm`, import.meta.url);
}

/** Returns whether the server answers 404 for a module: the version of this page is gone. False for a network error. */
async function isGone(name) {
  // The query avoids the preloaded address: browsers warn if a preloaded file is requested in another mode.
  const answer = await fetch(`${wasm(name)}?gone`, { method: "HEAD", cache: "no-store" }).catch(() => undefined);
  return answer?.status === 404;
}

/**
 * Reloads the page to get the current version if a module of this one is gone. Returns whether it did.
 * It reloads once, and again only after some page has started successfully.
 */
async function reloadIfGone() {
  try {
    const gone = await Promise.all([...new Set(islands.map(moduleOf))].map(isGone));
    if (!gone.includes(true) || sessionStorage.getItem(RELOADED)) return false;
    // The answer to a POST may have no address; then the page stays. "reload" also refreshes the HTTP cache.
    const answer = await fetch(location.href, { cache: "reload" });
    if (!answer.ok) return false;
    await answer.text();
    sessionStorage.setItem(RELOADED, "once");
  } catch {
    // Either there is no network, or sessionStorage is not available and a reload loop could not be detected.
    return false;
  }
  // `reload` prompts before it sends a form again, so `replace` is preferred. With a fragment, `replace` only scrolls.
  if (location.href.includes("#")) location.reload();
  else location.replace(location.href);
  return true;
}

/** Clears the mark after a successful start, so that a later page may reload itself. */
function clearReloaded() {
  try {
    sessionStorage.removeItem(RELOADED);
  } catch {
    // Without sessionStorage the mark was never set.
  }
}

try {
  for (const name of ["show", "pages", "staff"]) await hydrate(name, islands.filter((island) => moduleOf(island) === name));
  page.dataset.live = "ready";
  clearReloaded();
} catch (error) {
  if (document.querySelector(".not-started")) addEventListener("online", () => location.reload(), { once: true });
  page.dataset.live = "failed";
  if (!(await reloadIfGone())) throw error;
}
