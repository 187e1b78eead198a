// Says who is signed in, in the header: pages themselves are the same for everybody and kept by caches.
//
// Guests are not asked about: the cookie that says it is worth asking holds no name and opens nothing.
const name = document.querySelector("[data-account-name]");

if (name && document.cookie.split("; ").includes("rowlock_signed_in=1")) {
  try {
    const answer = await fetch("/api/v1/users/me", { cache: "no-store", headers: { accept: "application/json" } });
    if (answer.ok) {
      const account = await answer.json();
      name.textContent = account.name;
      name.closest("a")?.setAttribute("data-signed-in", "true");
    } else if (answer.status === 401) {
      // The session is over; the next page need not ask.
      document.cookie = "rowlock_signed_in=; path=/; max-age=0; samesite=lax";
    }
  } catch {
    // Offline: the word that stands there is right as well.
  }
}
