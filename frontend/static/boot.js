// Starts the browser half: loads the module, then wakes every island of the page.
//
// A file of its own because the content security policy allows no inline scripts. Islands are woken
// in document order, one after another: an inner one may count on its outer one. A page whose module
// does not load stays what the server rendered, and says so on <html data-live="failed">.
import start, * as rowlock from "./rowlock.js";

const page = document.documentElement;

try {
  await start({ module_or_path: new URL("./rowlock_bg.wasm", import.meta.url) });
  rowlock.hydrate();
  for (const island of document.querySelectorAll("leptos-island")) {
    const wake = rowlock[island.dataset.component];
    if (wake) {
      await wake(island);
    } else {
      console.warn(`No island is called ${island.dataset.component}.`);
    }
  }
  page.dataset.live = "ready";
} catch (error) {
  page.dataset.live = "failed";
  throw error;
}
