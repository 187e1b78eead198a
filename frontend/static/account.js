// Shows the name of the signed-in account in the header. Pages are the same for all visitors, so that caches keep them.
//
// The request is skipped for guests: a cookie without any secret or name marks browsers that have a session. Guests who
// sign in on the page of a show return to it.
const name = document.querySelector("[data-account-name]");

function returnHere() {
  const link = name?.closest("a");
  if (link && location.pathname.startsWith("/shows/")) link.href = `/login?next=${location.pathname}`;
}

if (name && document.cookie.split("; ").includes("rowlock_signed_in=1")) {
  try {
    const answer = await fetch("/api/v1/users/me", { cache: "no-store", headers: { accept: "application/json" } });
    if (answer.ok) {
      const account = await answer.json();
      name.textContent = account.name;
      name.closest("a")?.setAttribute("data-signed-in", "true");
    } else if (answer.status === 401) {
      // The session has expired; later pages skip the request.
      document.cookie = "rowlock_signed_in=; path=/; max-age=0; samesite=lax";
      returnHere();
    }
  } catch {
    // Offline: the default label is correct too.
  }
} else {
  returnHere();
}
