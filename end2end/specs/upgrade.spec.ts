// Versioned files: browsers cache them without revalidation, and during a rolling update a page finds its version.
import type { Page } from "@playwright/test";

import { claimShow } from "../pages/catalogue.js";
import { messages } from "../pages/languages.js";
import { ShowPage } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

/** Bindings and module of a show's page; a retried script has another URL. */
const MODULE_FILES = /\/pkg\/show(\.js(\?\d+)?|_bg\.wasm(\?gone)?)$/;

test.beforeEach(() => test.skip(test.info().project.name !== "laptop", "the same on every screen"));

/** Counts page loads. */
function countPageLoads(page: Page): () => number {
  let count = 0;
  page.on("request", (request) => {
    if (request.isNavigationRequest()) count += 1;
  });
  return () => count;
}

test("a second visit requests no files of the site", async ({ request, anna }) => {
  const show = await claimShow(request);
  await anna.visit(show.id);
  const files = (page: Page) =>
    page.evaluate(() => {
      const entries = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
      const own = entries.filter(({ name }) => /^\/(site|pkg|style|fonts)\//.test(new URL(name).pathname));
      return own.map(({ name, transferSize }) => ({ path: new URL(name).pathname, transferSize }));
    });
  // Lazily loaded files are included; they are cached once they are complete.
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
  // Another tab, without a memory cache.
  const again = await anna.newTab();
  await again.visit(show.id);
  await hasAll(again.page);
  // Only files the first tab had loaded by then: later parts may be new to the second one.
  const had = new Set(first.map(({ path }) => path));
  const second = (await files(again.page)).filter(({ path }) => had.has(path));
  expect(second.length).toBeGreaterThan(5);
  expect(second.filter(({ transferSize }) => transferSize > 0)).toEqual([]);
});

test("a file missing at one replica is requested again, and the page becomes interactive", async ({ request, anna }) => {
  const show = await claimShow(request, [["C", "7"]]);
  const pages = countPageLoads(anna.page);
  // The first replica has another version.
  const missed = new Map<string, number>();
  await anna.page.route(MODULE_FILES, async (route) => {
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

test("a page whose version is gone reloads", async ({ request, anna }) => {
  const show = await claimShow(request);
  const pages = countPageLoads(anna.page);
  await anna.page.route(MODULE_FILES, async (route) => {
    if (pages() < 2) await route.fulfill({ status: 404 });
    else await route.continue();
  });
  await anna.visit(show.id);
  expect(pages()).toBe(2);
});

test("a page without any files reports failure and does not reload endlessly", async ({ request, page }) => {
  const show = await claimShow(request);
  const pages = countPageLoads(page);
  let looked = 0;
  await page.route(MODULE_FILES, async (route) => {
    if (route.request().method() === "HEAD") looked += 1;
    await route.fulfill({ status: 404 });
  });
  await page.goto(`/shows/${show.id}`);
  await expect.poll(() => looked).toBe(2);
  // A manual reload: any automatic one would have happened before.
  await page.reload();
  await expect.poll(() => looked).toBe(3);
  expect(pages()).toBe(3);
  await expect(page.locator("html")).toHaveAttribute("data-live", "failed");
});

test("a page that does not start without a network says so, and reloads with it", async ({ request, context, page }) => {
  const show = await claimShow(request);
  const pages = countPageLoads(page);
  await page.route(MODULE_FILES, (route) => route.abort());
  await page.goto(`/shows/${show.id}`);
  await expect(page.getByText(messages("en")["map.room_unreachable"]!)).toBeVisible();
  await page.unroute(MODULE_FILES);
  await context.setOffline(true);
  await expect.poll(() => page.evaluate(() => navigator.onLine)).toBe(false);
  await context.setOffline(false);
  await new ShowPage(page).waitUntilLive();
  expect(pages()).toBe(2);
});
