// Keeps the page of a show's door, so that it opens again where there is no network: a reload, a phone that dropped it.
// What it knows of the tickets the page keeps itself.
//
// A file of its own because the content security policy allows no inline scripts. Where a browser keeps
// nothing (a private window, no worker), the page is what it was and promises nothing.
import { filesInUse, keep, workerFor } from "./keep.js";

// The part of the module that reads codes, by the name that `wasm_split` gives it in app/src/staff/door/reader.rs.
const READER = "reader";

async function keepDoor() {
  // A page that did not come to life is not worth keeping.
  if (!(await isLive())) return;
  const scope = location.pathname.replace(/[^/]*$/, "");
  const worker = await workerFor("/door-worker.js", scope);
  if (worker) keep(worker, [...(await filesInUse()), ...(await filesToCome())], "door-kept");
}

/** Whether the page's islands are awake, once that is known. */
function isLive() {
  const page = document.documentElement;
  return new Promise((resolve) => {
    const look = () => {
      if (!page.dataset.live) return;
      watch.disconnect();
      resolve(page.dataset.live === "ready");
    };
    const watch = new MutationObserver(look);
    watch.observe(page, { attributes: true, attributeFilter: ["data-live"] });
    look();
  });
}

/** What the page asks for when the camera is first used: there may be no network by then. */
async function filesToCome() {
  const formats = (await globalThis.BarcodeDetector?.getSupportedFormats?.()) ?? [];
  if (formats.includes("qr_code")) return [];
  const folder = new URL("./staff-parts/", import.meta.url);
  try {
    const parts = await (await fetch(new URL("parts.json", folder))).json();
    return (parts[READER] ?? []).map((part) => new URL(`${part}.wasm`, folder).pathname);
  } catch {
    // Opened without a network: what was kept then is kept.
    return [];
  }
}

keepDoor().catch(() => {
  // Not kept: nothing was promised.
});
