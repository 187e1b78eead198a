// Starts the browser half: loads the module that the page's islands are in, then wakes them.
//
// A file of its own because the content security policy allows no inline scripts. Islands are woken
// in document order, one after another: an inner one may count on its outer one. A page whose module
// does not load stays what the server rendered, and says so on <html data-live="failed">.
const page = document.documentElement;
const islands = [...document.querySelectorAll("leptos-island")];
const isSeatMap = (island) => island.dataset.component.startsWith("SeatMap");

/** Wakes some islands by the module of this name. */
async function wake(name, some) {
  if (some.length === 0) return;
  const half = await import(`./${name}.js`);
  await half.default({ module_or_path: new URL(`./${name}_bg.wasm`, import.meta.url) });
  half.hydrate();
  for (const island of some) {
    const start = half[island.dataset.component];
    if (start) {
      await start(island);
    } else {
      console.warn(`No island is called ${island.dataset.component}.`);
    }
  }
}

try {
  await wake("show", islands.filter(isSeatMap));
  await wake("pages", islands.filter((island) => !isSeatMap(island)));
  page.dataset.live = "ready";
} catch (error) {
  page.dataset.live = "failed";
  throw error;
}
