// Asks before signing out on a device with unsent scans of a door. Signing out clears the browser's storage, and only
// door pages send them.

// Beginning of the names of the stored queues, one per show (`app/src/staff/islands/door/offline.rs`). None is empty.
const QUEUE = "rowlock-door-queue-";
const { question } = document.querySelector("script[data-question]").dataset;

function hasUnsentScans() {
  try {
    return Object.keys(localStorage).some((name) => name.startsWith(QUEUE));
  } catch {
    // Without storage there are no scans.
    return false;
  }
}

document.addEventListener("submit", (event) => {
  const isSignOut = new URL(event.target.action).pathname.startsWith("/account/logout");
  if (isSignOut && hasUnsentScans() && !confirm(question)) event.preventDefault();
});
