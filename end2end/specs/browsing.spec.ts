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

test("search has one card a film and days as tabs, without JavaScript", async ({ browser, request }) => {
  const [first] = await upcomingShows(request);
  if (!first) throw new Error("the demo has no shows");
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(`/search?city=${first.city}`);
  const films = page.getByRole("main").getByRole("article");
  const days = page.getByRole("navigation", { name: "Day", exact: true }).getByRole("link");
  await expect(days).toHaveCount(7);
  // Tomorrow: today's shows may be over.
  await press(days.nth(1));
  await expect(days.nth(1)).toHaveAttribute("aria-current", "true");
  await expect(page).toHaveURL(new RegExp(`city=${first.city}&date=`));
  await expect(films.first()).toBeVisible();
  const titles = await films.getByRole("heading", { level: 2 }).allTextContents();
  expect(titles).toHaveLength(await films.count());
  expect(new Set(titles).size, "one card a film").toBe(titles.length);
  await press(films.first().locator('a[href^="/shows/"]').first());
  await expect(page).toHaveURL(/\/shows\/[0-9a-f-]{36}/);
  await context.close();
});

test("the only search field of a page is sent together with the filters", async ({ browser, request }) => {
  const [first] = await upcomingShows(request);
  if (!first) throw new Error("the demo has no shows");
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  for (const path of ["/", `/cities/${first.city}`, `/search?city=${first.city}`]) {
    await page.goto(path);
    await expect(page.getByRole("searchbox"), path).toHaveCount(1);
  }
  await page.getByRole("searchbox").fill(first.film_title);
  await page.getByRole("searchbox").press("Enter");
  await expect(page.getByRole("searchbox")).toHaveValue(first.film_title);
  await expect(page.locator('select[name="city"]')).toHaveValue(first.city);
  await context.close();
});

test("the films of tonight are above the filters on the front page", async ({ anna }) => {
  await anna.page.goto("/");
  const tonight = await anna.page.getByRole("heading", { name: "Tonight", exact: true }).boundingBox();
  const filters = await anna.page.getByRole("form", { name: "Search shows" }).boundingBox();
  if (!tonight || !filters) throw new Error("a part of the page is missing");
  expect(tonight.y).toBeLessThan(filters.y);
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
    await expect(anna.page.getByRole("searchbox")).toHaveValue(words.replace("\u202e", ""));
    expect(await anna.page.content()).not.toContain("\u202e");
  }
});
