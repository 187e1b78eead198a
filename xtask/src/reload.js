// Appended to account.js by `cargo xtask dev`: reloads the page after a change.
{
  // Content of the file when this page was loaded; undefined before the first answer.
  let loaded;
  const timer = setInterval(async () => {
    try {
      const answer = await fetch("/pkg/reload.txt", { cache: "no-store" });
      if (!answer.ok) return;
      const latest = await answer.text();
      loaded ??= latest;
      if (latest === loaded) return;
      clearInterval(timer);
      location.reload();
    } catch {
      // The server restarts.
    }
  }, 250);
}
