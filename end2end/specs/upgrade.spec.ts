// Files of the site are kept by the browser for good, and while replicas are exchanged a page finds those of its version.
import type { Page } from "@playwright/test";

import { claimShow } from "../pages/catalogue.js";
import { expect, test } from "../pages/visitors.js";

/** What binds the module of a show's page, and the module; asked for again, a script has another address. */
const OF_THE_MODULE = /\/pkg\/show(\.js(\?\d+)?|_bg\.wasm(\?gone)?)$/;

test.beforeEach(() => test.skip(test.info().project.name !== "laptop", "the same on every screen"));

/** Counts the pages that somebody loads. */
function pagesOf(page: Page): () => number {
  let count = 0;
  page.on("request", (request) => {
    if (request.isNavigationRequest()) count += 1;
  });
  return () => count;
}

test("who comes again asks for no file of the site", async ({ request, anna }) => {
  const show = await claimShow(request);
  await anna.visit(show.id);
  const files = (page: Page) =>
    page.evaluate(() => {
      const entries = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
      const own = entries.filter(({ name }) => /^\/(site|pkg|style|fonts)\//.test(new URL(name).pathname));
      return own.map(({ name, transferSize }) => ({ path: new URL(name).pathname, transferSize }));
    });
  // What comes after the map is a file as well, and the browser has it once it has come whole.
  const hasAll = (page: Page) =>
    page.waitForFunction(async () => {
      await document.fonts.ready;
      const names = performance.getEntriesByType("resource").map(({ name }) => name);
      return ["/style/map-later.css", "/fonts/figtree-"].every((part) => names.some((name) => name.includes(part)));
    });
  await hasAll(anna.page);
  const first = await files(anna.page);
  expect(first.length).toBeGreaterThan(5);
  for (const { path } of first) expect(path).toMatch(/^\/site\/[0-9a-f]{16}\/(pkg|style|fonts)\//);
  // In another tab, which has nothing in memory.
  const again = await anna.newTab();
  await again.visit(show.id);
  await hasAll(again.page);
  // Only what the first tab had by the time it was asked: parts that are loaded later may have come to the second alone.
  const had = new Set(first.map(({ path }) => path));
  const second = (await files(again.page)).filter(({ path }) => had.has(path));
  expect(second.length).toBeGreaterThan(5);
  expect(second.filter(({ transferSize }) => transferSize > 0)).toEqual([]);
});

test("a file that one replica does not have is asked for again, and the page comes to life", async ({ request, anna }) => {
  const show = await claimShow(request, [["C", "7"]]);
  const pages = pagesOf(anna.page);
  // Whoever is asked first has another version.
  const missed = new Map<string, number>();
  await anna.page.route(OF_THE_MODULE, async (route) => {
    const { pathname } = new URL(route.request().url());
    const before = missed.get(pathname) ?? 0;
    missed.set(pathname, before + 1);
    if (before < 2) await route.fulfill({ status: 404 });
    else await route.continue();
  });
  const hers = await anna.visit(show.id);
  await hers.hold(show.seat("C", "7"));
  expect(missed.size).toBe(2);
  expect(pages()).toBe(1);
});

test("a page whose version is gone is loaded anew", async ({ request, anna }) => {
  const show = await claimShow(request);
  const pages = pagesOf(anna.page);
  await anna.page.route(OF_THE_MODULE, async (route) => {
    if (pages() < 2) await route.fulfill({ status: 404 });
    else await route.continue();
  });
  await anna.visit(show.id);
  expect(pages()).toBe(2);
});

test("a page that finds its files nowhere says so, and is not loaded without end", async ({ request, page }) => {
  const show = await claimShow(request);
  const pages = pagesOf(page);
  let looked = 0;
  await page.route(OF_THE_MODULE, async (route) => {
    if (route.request().method() === "HEAD") looked += 1;
    await route.fulfill({ status: 404 });
  });
  await page.goto(`/shows/${show.id}`);
  await expect.poll(() => looked).toBe(2);
  // By hand: whatever it would have done by itself has come before this.
  await page.reload();
  await expect.poll(() => looked).toBe(3);
  expect(pages()).toBe(3);
  await expect(page.locator("html")).toHaveAttribute("data-live", "failed");
});
