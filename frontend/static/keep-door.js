// Caches the door page of a show, so that it opens again without a network, after a reload or a restart of the browser.
// The page itself stores the list of tickets.
//
// This is a separate file because the content security policy forbids inline scripts. If a browser has no service
// worker or no storage (a private window), the page works as usual and does not say that it is available offline.
import { filesInUse, keep, workerFor } from "./keep.js";

// Name of the module part that decodes QR codes, from `wasm_split` in app/src/staff/islands/door/reader.rs.
const READER = "reader";

async function keepDoor() {
  // A page that failed to start is not cached.
  if (!(await isLive())) return;
  const scope = location.pathname.replace(/[^/]*$/, "");
  const worker = await workerFor("/door-worker.js", scope);
  if (worker) keep(worker, [...(await filesInUse()), ...(await readerFiles())], "door-kept");
}

/** Waits until the islands are hydrated or have failed, and returns whether they are hydrated. */
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

/** Returns the files that the page loads when the camera is first used, possibly without a network by then. */
async function readerFiles() {
  const formats = (await globalThis.BarcodeDetector?.getSupportedFormats?.()) ?? [];
  if (formats.includes("qr_code")) return [];
  const folder = new URL("./staff-parts/", import.meta.url);
  try {
    const parts = await (await fetch(new URL("parts.json", folder))).json();
    return (parts[READER] ?? []).map((part) => new URL(`${part}.wasm`, folder).pathname);
  } catch {
    // Opened offline: the cache of the earlier visit has the parts.
    return [];
  }
}

keepDoor().catch(() => {
  // Not cached; the page has not said that it is.
});
