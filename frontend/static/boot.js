// Starts the browser half: loads the module that the page's islands are in, then wakes them.
//
// A file of its own because the content security policy allows no inline scripts. Islands are woken
// in document order, one after another: an inner one may count on its outer one. A page whose module
// does not load stays what the server rendered, and says so on <html data-live="failed">.
const page = document.documentElement;
const islands = [...document.querySelectorAll("leptos-island")];
/** The module an island is in, by its name. */
const half = (island) => {
  if (island.dataset.component.startsWith("Staff")) return "staff";
  return island.dataset.component.startsWith("SeatMap") ? "show" : "pages";
};

/** Wakes some islands by the module of this name. */
async function wake(name, some) {
  if (some.length === 0) return;
  const module = await import(`./${name}.js`);
  await module.default({ module_or_path: new URL(`./${name}_bg.wasm`, import.meta.url) });
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

try {
  for (const name of ["show", "pages", "staff"]) await wake(name, islands.filter((island) => half(island) === name));
  page.dataset.live = "ready";
} catch (error) {
  page.dataset.live = "failed";
  throw error;
}
