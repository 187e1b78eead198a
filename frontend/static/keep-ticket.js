// Keeps the ticket that is open, so that it opens again where there is no network: in a cellar, at a door.
//
// A file of its own because the content security policy allows no inline scripts. Where a browser keeps
// nothing (a private window, no worker), the page is what it was and promises nothing.
const SCOPES = ["/bookings/", "/tickets/"];

async function keep() {
  const scope = SCOPES.find((start) => location.pathname.startsWith(start));
  if (!scope || !("serviceWorker" in navigator)) return;
  const registration = await navigator.serviceWorker.register("/ticket-worker.js", { scope });
  const worker = registration.active ?? (await activated(registration.installing ?? registration.waiting));
  // Only now is it known which fonts the page really uses.
  await Promise.all([document.fonts.ready, loaded()]);
  const own = performance.getEntriesByType("resource").map((entry) => new URL(entry.name));
  const assets = own.filter((url) => url.origin === location.origin).map((url) => url.pathname);
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = ({ data }) => {
    const words = document.getElementById("ticket-kept");
    if (data === "kept" && words) words.textContent = words.dataset.words;
    port1.close();
  };
  worker.postMessage({ keep: location.pathname, assets }, [port2]);
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

keep().catch(() => {
  // Not kept: nothing was promised.
});
