// Caches the open ticket page, so that it opens again without a network.
//
// This is a separate file because the content security policy forbids inline scripts. If a browser has no service
// worker or no storage (a private window), the page works as usual and does not say that it is available offline.
import { filesInUse, keep, workerFor } from "./keep.js";

const SCOPES = ["/bookings/", "/tickets/"];

async function keepTicket() {
  const scope = SCOPES.find((start) => location.pathname.startsWith(start));
  const worker = scope && (await workerFor("/ticket-worker.js", scope));
  if (worker) keep(worker, await filesInUse(), "ticket-kept");
}

keepTicket().catch(() => {
  // Not cached; the page has not said that it is.
});
