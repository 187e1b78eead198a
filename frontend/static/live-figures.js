// Keeps the figures of a page current without loading the page again, so that a button under the pointer stays where it
// is and keeps the focus. Every element marked `data-figures` takes over the content of the same element in a new copy of
// the page. Without this script the page's link loads it again.
const PERIOD_MS = 2_000;
// Timeout of a copy.
const DEADLINE_MS = 10_000;
const parts = [...document.querySelectorAll("[data-figures]")];
const link = document.querySelector("[data-figures-link]");

/** Returns a new copy of the page; undefined without an answer. */
async function fetchCopy() {
  try {
    const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(DEADLINE_MS) });
    return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : undefined;
  } catch {
    return undefined;
  }
}

/** Takes over the parts of a copy. Returns whether it has all of them. */
function show(copy) {
  const fresh = parts.map((part) => copy.querySelector(`[data-figures="${part.dataset.figures}"]`));
  if (fresh.includes(null)) return false;
  for (const [number, part] of parts.entries()) {
    if (!part.isEqualNode(fresh[number])) part.replaceChildren(...fresh[number].childNodes);
  }
  return true;
}

async function update() {
  // A hidden tab costs nothing.
  if (!document.hidden) {
    const copy = await fetchCopy();
    link.hidden = copy !== undefined;
    if (copy && !show(copy)) {
      // The page is another one by now. `replace` sends no form again; a fragment would only scroll.
      location.replace(location.pathname + location.search);
      return;
    }
  }
  setTimeout(update, PERIOD_MS);
}

if (link && parts.length > 0) {
  link.hidden = true;
  setTimeout(update, PERIOD_MS);
}
