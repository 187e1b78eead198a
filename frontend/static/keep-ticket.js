// Keeps the ticket that is open, so that it opens again where there is no network: in a cellar, at a door.
//
// A file of its own because the content security policy allows no inline scripts. Where a browser keeps
// nothing (a private window, no worker), the page is what it was and promises nothing.
import { filesInUse, keep, workerFor } from "./keep.js";

const SCOPES = ["/bookings/", "/tickets/"];

async function keepTicket() {
  const scope = SCOPES.find((start) => location.pathname.startsWith(start));
  const worker = scope && (await workerFor("/ticket-worker.js", scope));
  if (worker) keep(worker, await filesInUse(), "ticket-kept");
}

keepTicket().catch(() => {
  // Not kept: nothing was promised.
});
