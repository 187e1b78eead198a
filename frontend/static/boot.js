// Starts the browser half: loads the module that the page's islands are in, then wakes them.
//
// A file of its own because the content security policy allows no inline scripts. Islands are woken
// in document order, one after another: an inner one may count on its outer one. A page whose module
// does not load stays what the server rendered, and says so on <html data-live="failed">.
//
// While replicas are renewed, one of another version may be asked for this page's module. It says that it has none, as
// parts of two modules do not fit together, and whoever is asked next may have it (docs/decisions/0054).
const page = document.documentElement;
const islands = [...document.querySelectorAll("leptos-island")];
// How often a file is asked for, and how much longer each pause is than the one before.
const TRIES = 5;
const PAUSE_MS = 150;
// Where it stands that this page was loaded anew because its files were gone.
const ANEW = "rowlock-loaded-anew";
// Islands find files of this page's version by it.
page.dataset.site = new URL("..", import.meta.url).href.slice(0, -1);
/** The module an island is in, by its name. */
const half = (island) => {
  if (island.dataset.component.startsWith("Staff")) return "staff";
  return island.dataset.component.startsWith("SeatMap") ? "show" : "pages";
};

/** Does it again for a while where it fails. */
async function insist(load) {
  for (let failed = 0; ; ) {
    try {
      return await load(failed);
    } catch (error) {
      failed += 1;
      if (failed === TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, failed * PAUSE_MS));
    }
  }
}

/** Wakes some islands by the module of this name. */
async function wake(name, some) {
  if (some.length === 0) return;
  // A browser need not ask again for a script that failed once, so it gets another address.
  const module = await insist((failed) => import(failed ? `./${name}.js?${failed}` : `./${name}.js`));
  await insist(() => module.default({ module_or_path: wasm(name) }));
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

/** Whether the server has no such module any more, and not only no answer: then this page is of a version that is gone. */
async function isGone(name) {
  // Not the address that the page has preloaded: browsers warn when such a file is asked for in another way.
  const answer = await fetch(`${wasm(name)}?gone`, { method: "HEAD", cache: "no-store" }).catch(() => undefined);
  return answer?.status === 404;
}

/**
 * Loads the page anew, of the version that there is now; once, and again only after a page came to life. Whether it does.
 */
async function replaced() {
  try {
    const gone = await Promise.all([...new Set(islands.map(half))].map(isGone));
    if (!gone.includes(true) || sessionStorage.getItem(ANEW)) return false;
    // What a form was answered with may be nothing that one can ask for; then it stays. And no cache gives this page again.
    const answer = await fetch(location.href, { cache: "reload" });
    if (!answer.ok) return false;
    await answer.text();
    sessionStorage.setItem(ANEW, "once");
  } catch {
    // Nobody answers; or nothing can be noted here, so nobody could tell how often it was done.
    return false;
  }
  // A reload asks whether to send again what a form sent. To an address with a place in the page there is no other way.
  if (location.href.includes("#")) location.reload();
  else location.replace(location.href);
  return true;
}

/** A page has come to life: another that does not may be loaded anew. */
function settle() {
  try {
    sessionStorage.removeItem(ANEW);
  } catch {
    // Then nothing is noted there either.
  }
}

try {
  for (const name of ["show", "pages", "staff"]) await wake(name, islands.filter((island) => half(island) === name));
  page.dataset.live = "ready";
  settle();
} catch (error) {
  page.dataset.live = "failed";
  if (!(await replaced())) throw error;
}
