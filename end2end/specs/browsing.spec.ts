// From the front page to a show, with and without JavaScript.
import type { Page } from "@playwright/test";

import { showsToCome } from "../pages/catalogue.js";
import { press } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

test("without JavaScript one finds a city, a theatre, a day and a show", async ({ browser }) => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto("/");
  await press(page.getByRole("main").locator('a[href="/cities/lisbon"]').first());
  await expect(page).toHaveURL(/\/cities\/lisbon/);
  await press(page.getByRole("main").locator('a[href^="/theatres/"]').first());
  await expect(page).toHaveURL(/\/theatres\//);
  // Tomorrow: today may be over already.
  await press(page.getByRole("main").locator('a[href*="date="]').nth(1));
  await press(page.getByRole("main").locator('a[href^="/shows/"]').first());
  await expect(page).toHaveURL(/\/shows\/[0-9a-f-]{36}/);
  await expect(page.getByRole("heading", { level: 1 })).not.toBeEmpty();
  await context.close();
});

test("search finds shows by film, and says so when there are none", async ({ request, anna }) => {
  const [first] = await showsToCome(request);
  if (!first) throw new Error("the demo has no shows");
  const results = anna.page.getByRole("main").locator('a[href^="/shows/"], a[href^="/films/"]');
  await anna.page.goto(`/search?q=${encodeURIComponent(first.film_title)}`);
  await expect(results.first()).toBeVisible();
  await anna.page.goto("/search?q=zzzz-no-such-film");
  await expect(results).toHaveCount(0);
});

test("no page is wider than the screen", async ({ request, anna }) => {
  const [first] = await showsToCome(request);
  if (!first) throw new Error("the demo has no shows");
  const paths = ["/", `/cities/${first.city}`, `/theatres/${first.theatre}`, `/films/${first.film}`, `/shows/${first.id}`, "/search?q=a", "/no-such-page"];
  for (const path of paths) {
    await anna.page.goto(path);
    // A browser complains of what is left before it is there: the connection, and parts that come after the map.
    if (path.startsWith("/shows/")) {
      await expect(anna.page.getByTestId("live")).toHaveAttribute("data-state", "live");
      await expect(anna.page.getByTestId("cart")).toBeAttached();
    }
    expect(await sideways(anna.page), `${path} scrolls sideways`).toBeLessThanOrEqual(0);
    // Titles and names may be one word, longer than a phone is wide.
    await anna.page.evaluate((word) => {
      for (const name of document.querySelectorAll("bdi")) name.textContent = word;
    }, "Donaudampfschifffahrtselektrizitätenhauptbetriebswerk");
    expect(await sideways(anna.page), `${path} with names of one long word scrolls sideways`).toBeLessThanOrEqual(0);
  }
});

function sideways(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

test("hostile words in a search stay words", async ({ anna }) => {
  for (const words of ["<script>document.title='taken'</script>", "'; DROP TABLE shows; --", "ليلى 🎬 \u202e"]) {
    const answer = await anna.page.goto(`/search?q=${encodeURIComponent(words)}`);
    expect(answer?.status()).toBe(200);
    expect(await answer?.text(), "a placeholder that is no HTML").not.toContain("<!>");
    await expect(anna.page).not.toHaveTitle("taken");
    // A mark that turns text around comes back nowhere, neither in the field nor in the title.
    await expect(anna.page.getByRole("searchbox").first()).toHaveValue(words.replace("\u202e", ""));
    expect(await anna.page.content()).not.toContain("\u202e");
  }
});
