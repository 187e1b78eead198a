// Navigation from the front page to a show, with and without JavaScript.
import type { Page } from "@playwright/test";

import { upcomingShows } from "../pages/catalogue.js";
import { press } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

test("city, theatre, day and show are reachable without JavaScript", async ({ browser }) => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto("/");
  await press(page.getByRole("main").locator('a[href="/cities/lisbon"]').first());
  await expect(page).toHaveURL(/\/cities\/lisbon/);
  await press(page.getByRole("main").locator('a[href^="/theatres/"]').first());
  await expect(page).toHaveURL(/\/theatres\//);
  // Tomorrow: today's shows may be over.
  await press(page.getByRole("main").locator('a[href*="date="]').nth(1));
  await press(page.getByRole("main").locator('a[href^="/shows/"]').first());
  await expect(page).toHaveURL(/\/shows\/[0-9a-f-]{36}/);
  await expect(page.getByRole("heading", { level: 1 })).not.toBeEmpty();
  await context.close();
});

test("search finds shows by film and has no results for an unknown film", async ({ request, anna }) => {
  const [first] = await upcomingShows(request);
  if (!first) throw new Error("the demo has no shows");
  const results = anna.page.getByRole("main").locator('a[href^="/shows/"], a[href^="/films/"]');
  await anna.page.goto(`/search?q=${encodeURIComponent(first.film_title)}`);
  await expect(results.first()).toBeVisible();
  await anna.page.goto("/search?q=zzzz-no-such-film");
  await expect(results).toHaveCount(0);
});

test("no page is wider than the screen", async ({ request, anna }) => {
  const [first] = await upcomingShows(request);
  if (!first) throw new Error("the demo has no shows");
  const paths = ["/", `/cities/${first.city}`, `/theatres/${first.theatre}`, `/films/${first.film}`, `/shows/${first.id}`, "/search?q=a", "/no-such-page"];
  for (const path of paths) {
    await anna.page.goto(path);
    // Wait for connection and lazily loaded parts: the browser logs an error when a page is left earlier.
    if (path.startsWith("/shows/")) {
      await expect(anna.page.getByTestId("live")).toHaveAttribute("data-state", "live");
      await expect(anna.page.getByTestId("cart")).toBeAttached();
    }
    expect(await sideways(anna.page), `${path} scrolls sideways`).toBeLessThanOrEqual(0);
    // Titles and names may be a single word wider than a phone.
    await anna.page.evaluate((word) => {
      for (const name of document.querySelectorAll("bdi")) name.textContent = word;
    }, "Donaudampfschifffahrtselektrizitätenhauptbetriebswerk");
    expect(await sideways(anna.page), `${path} with names of one long word scrolls sideways`).toBeLessThanOrEqual(0);
  }
});

function sideways(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

test("a search term with markup or SQL is treated as text", async ({ anna }) => {
  for (const words of ["<script>document.title='taken'</script>", "'; DROP TABLE shows; --", "ليلى 🎬 \u202e"]) {
    const answer = await anna.page.goto(`/search?q=${encodeURIComponent(words)}`);
    expect(answer?.status()).toBe(200);
    expect(await answer?.text(), "a placeholder that is no HTML").not.toContain("<!>");
    await expect(anna.page).not.toHaveTitle("taken");
    // The direction override character is removed from field and title.
    await expect(anna.page.getByRole("searchbox").first()).toHaveValue(words.replace("\u202e", ""));
    expect(await anna.page.content()).not.toContain("\u202e");
  }
});
