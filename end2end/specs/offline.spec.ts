// Offline tickets: a ticket that was opened once opens offline, other pages do not.
import type { Page } from "@playwright/test";

import { register } from "../pages/accounts.js";
import { NetworkProxy } from "../pages/network-proxy.js";
import { claimShow } from "../pages/catalogue.js";
import { expectBookingState, payWith } from "../pages/paying.js";
import { press } from "../pages/show.js";
import { expect, test, type Visitor } from "../pages/visitors.js";

/** Buys these seats and returns the path of the tickets. */
async function buy(anna: Visitor, show: { id: string; seat(row: string, number: string): number }, numbers: string[]): Promise<string> {
  const hers = await anna.visit(show.id);
  for (const number of numbers) await hers.hold(show.seat("C", number));
  await hers.checkOut("Anna", "anna@example.org");
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
  return `${new URL(anna.page.url()).pathname}/ticket`;
}

/** Expects both tickets in reading order, also in rooms numbered from the right. */
async function expectBothTickets(page: Page): Promise<void> {
  const seats = page.getByTestId("ticket-seat");
  await expect(seats).toHaveCount(2);
  expect(await seats.allTextContents()).toEqual(["C6", "C7"]);
}

test("tickets open offline, the seat map does not", async ({ request, anna }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"]]);
  const path = await buy(anna, show, ["6", "7"]);
  const proxy = await NetworkProxy.start();
  await anna.page.goto(proxy.url + path);
  await expect(anna.page.getByTestId("kept")).toContainText("without a network");

  anna.allowNetworkErrors();
  await proxy.disconnect();
  await anna.page.reload();
  await expectBothTickets(anna.page);
  await expect(anna.page.getByTestId("qr").locator("svg").first()).toBeVisible();
  await expect(anna.page.getByTestId("group-qr").locator("svg")).toBeVisible();
  // Style sheet and font are cached.
  const [radius, font] = await anna.page.evaluate(() => [
    getComputedStyle(document.querySelector(".ticket") as Element).borderRadius,
    document.fonts.check("1rem Figtree"),
  ]);
  expect(radius).not.toBe("0px");
  expect(font).toBe(true);

  for (const other of [`/shows/${show.id}`, path.replace("/ticket", "")]) {
    const tab = await anna.newTab();
    await expect(tab.page.goto(proxy.url + other)).rejects.toThrow(/ERR_CONNECTION_REFUSED/);
  }
  // Another tab opens the tickets as well.
  const again = await anna.newTab();
  await again.page.goto(proxy.url + path);
  await expectBothTickets(again.page);
});

test("only tickets and their files are cached, and a cancelled ticket is deleted", async ({ request, anna }) => {
  const show = await claimShow(request);
  const path = await buy(anna, show, ["7"]);
  await press(anna.page.getByTestId("ticket-link"));
  await expect(anna.page.getByTestId("kept")).not.toBeEmpty();
  const cachedPaths = () =>
    anna.page.evaluate(async () => {
      const names = await caches.keys();
      const requests = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
      return requests.flat().map((request) => new URL(request.url).pathname);
    });
  for (const file of await cachedPaths()) {
    expect(file).toMatch(/^\/(bookings\/[0-9a-f-]{36}\/ticket|style\/[\w.-]+|fonts\/[\w.-]+|favicon\.svg|pkg\/keep(-ticket)?\.js)$/);
  }
  expect(await cachedPaths()).toContain(path);

  await anna.page.goBack();
  await press(anna.page.getByTestId("cancel-open"));
  await press(anna.page.getByTestId("cancel-confirm"));
  await expectBookingState(anna.page, "CANCELLED");
  // Opening the ticket redirects to the booking and deletes the cached copy.
  await anna.page.goto(path);
  await expect(anna.page).toHaveURL(path.replace("/ticket", ""));
  expect(await cachedPaths()).not.toContain(path);
});

test("signing out deletes the cached tickets", async ({ request, anna }) => {
  const show = await claimShow(request);
  await register(anna.page, "Anna", `anna-${show.id}@example.org`);
  await buy(anna, show, ["7"]);
  await press(anna.page.getByTestId("ticket-link"));
  await expect(anna.page.getByTestId("kept")).not.toBeEmpty();
  const names = () => anna.page.evaluate(() => caches.keys());
  expect(await names()).not.toEqual([]);

  await anna.page.goto("/account");
  await press(anna.page.getByTestId("sign-out"));
  await anna.page.waitForURL((url) => url.pathname === "/");
  await expect.poll(names).toEqual([]);
});
