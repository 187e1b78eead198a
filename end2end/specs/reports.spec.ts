// Managers' reports as figures, charts and files; API keys and webhooks.
import { readFile } from "node:fs/promises";

import type { Locator, Page } from "@playwright/test";

import { claimShow } from "../pages/catalogue.js";
import { buyTickets } from "../pages/door.js";
import { expectAccessible } from "../pages/accessibility.js";
import { press } from "../pages/show.js";
import { signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";

test("a sale is in the figures, in labelled charts, and in a file", async ({ request, newVisitor }) => {
  const { page } = await newVisitor({ reducedMotion: "reduce" });
  const show = await claimShow(request, []);
  await signInAsManager(page);
  await page.goto(`/staff/${show.theatre}/reports`);
  const before = await tickets(page);
  await buyTickets(show, 3);
  await page.reload();
  // Other tests sell at the same theatre.
  expect(await tickets(page)).toBeGreaterThanOrEqual(before + 3);
  const charts = page.locator("svg[role=img]");
  expect(await charts.count()).toBeGreaterThanOrEqual(2);
  for (const chart of await charts.all()) await expect(chart).toHaveAccessibleName(/\S/);
  for (const name of ["chart-days", "chart-takings"]) {
    const chart = page.getByTestId(name);
    const frame = page.locator(".chart-frame", { has: chart });
    const scale = frame.getByTestId("chart-scale");
    expect(await scale.locator("text").count()).toBeGreaterThan(1);
    const [drawn, beside, around] = [await width(chart), await width(scale), await width(frame)];
    expect(drawn + beside, `${name} is as wide as its part of the page`).toBeGreaterThanOrEqual(around - 1);
    const left = await chart.evaluate((svg) => {
      const ends = [...svg.querySelectorAll("rect")].map((column) => column.getBoundingClientRect().right);
      return svg.getBoundingClientRect().right - Math.max(...ends);
    });
    expect(left, `the columns of ${name} reach its end`).toBeLessThan(drawn / 10);
  }
  await expectAccessible(page, "reports");

  const coming = page.waitForEvent("download");
  await press(page.getByTestId("csv-shows"));
  const file = await readFile(await (await coming).path(), "utf8");
  expect(file.trim().split(/\r?\n/).length).toBeGreaterThan(1);
});

test("reports cover all screens, and a chosen screen filters them", async ({ request, newVisitor }) => {
  test.skip(test.info().project.name !== "laptop", "the same on every screen");
  const { page } = await newVisitor({ reducedMotion: "reduce" });
  const show = await claimShow(request, []);
  const { screen } = (await (await request.get(`/api/v1/shows/${show.id}`)).json()) as { screen: string };
  await buyTickets(show, 2);
  await signInAsManager(page);
  await page.goto(`/staff/${show.theatre}/reports`);
  const choice = page.locator("#report-screen");
  await expect(choice).toHaveValue("");
  await choice.selectOption({ label: screen });
  await press(page.getByTestId("reports-show"));
  await page.waitForURL((url) => url.searchParams.get("screen") !== null);
  await expect(choice.locator("option:checked")).toHaveText(screen);
  await expect(page.getByTestId("reports-which")).toContainText(screen);
  const shows = await page.getByTestId("reports-shows").locator("tbody tr").all();
  expect(shows.length).toBeGreaterThan(0);
  for (const one of shows) await expect(one).toContainText(screen);
  const narrowed = await tickets(page);
  expect(narrowed).toBeGreaterThanOrEqual(2);
  await expectAccessible(page, "the reports of one screen");
  await choice.selectOption("");
  await press(page.getByTestId("reports-show"));
  await page.waitForURL((url) => url.searchParams.get("screen") === "");
  expect(await tickets(page)).toBeGreaterThanOrEqual(narrowed);
});

test("an API key is shown once, and a sale is delivered to a webhook", async ({ request, newVisitor }) => {
  test.skip(test.info().project.name !== "laptop", "the same on every screen");
  const { page } = await newVisitor({ reducedMotion: "reduce" });
  const show = await claimShow(request, []);
  await signInAsManager(page);
  await page.goto(`/staff/${show.theatre}/systems`);
  await page.locator("#key-name").fill("Bookkeeping");
  await press(page.getByTestId("make-key"));
  const key = (await page.getByTestId("systems-secret").textContent()) ?? "";
  const read = await request.get(`/api/v1/theatres/${show.theatre}/reports/sales`, { headers: { authorization: `Bearer ${key}` } });
  expect(read.status()).toBe(200);
  await expectAccessible(page, "a key that was just made");

  await page.goto(`/staff/${show.theatre}/systems`);
  await expect(page.getByTestId("api-key").first()).toBeVisible();
  expect(await page.content()).not.toContain(key);
  // The address does not exist: the test checks the delivery log.
  const address = `https://hooks.example.org/${show.id}`;
  await page.locator("#webhook-url").fill(address);
  await press(page.getByTestId("make-webhook"));
  await expect(page.getByTestId("systems-secret")).toBeVisible();
  await buyTickets(show, 1);
  const endpoint = page.getByTestId("webhook").filter({ hasText: address });
  await expect
    .poll(async () => {
      await page.goto(`/staff/${show.theatre}/systems`);
      return endpoint.getByTestId("delivery").count();
    })
    .toBeGreaterThan(0);
  await expectAccessible(page, "a delivery log");
});

function width(one: Locator): Promise<number> {
  return one.evaluate((box) => box.getBoundingClientRect().width);
}

async function tickets(page: Page): Promise<number> {
  return Number((await page.getByTestId("total-tickets").locator("dd").textContent())?.replace(/\D/g, ""));
}
