// A ticket that was opened once opens without a network, and nothing else does.
import type { Page } from "@playwright/test";

import { register } from "../pages/accounts.js";
import { Cable } from "../pages/cable.js";
import { claimShow } from "../pages/catalogue.js";
import { bookingBecomes, payWith } from "../pages/paying.js";
import { press } from "../pages/show.js";
import { expect, test, type Visitor } from "../pages/visitors.js";

/** Buys these seats; the path of the tickets. */
async function buy(anna: Visitor, show: { id: string; seat(row: string, number: string): number }, numbers: string[]): Promise<string> {
  const hers = await anna.visit(show.id);
  for (const number of numbers) await hers.hold(show.seat("C", number));
  await hers.checkOut("Anna", "anna@example.org");
  await payWith(anna.page, "paid");
  await bookingBecomes(anna.page, "CONFIRMED");
  return `${new URL(anna.page.url()).pathname}/ticket`;
}

/** In the order in which one reads them, also where the room counts from the right. */
async function expectBothTickets(page: Page): Promise<void> {
  const seats = page.getByTestId("ticket-seat");
  await expect(seats).toHaveCount(2);
  expect(await seats.allTextContents()).toEqual(["C6", "C7"]);
}

test("the tickets open without a network, the seat map does not", async ({ request, anna }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"]]);
  const path = await buy(anna, show, ["6", "7"]);
  const cable = await Cable.lay();
  await anna.page.goto(cable.url + path);
  await expect(anna.page.getByTestId("kept")).toContainText("without a network");

  anna.mayBeCutOff();
  await cable.cut();
  await anna.page.reload();
  await expectBothTickets(anna.page);
  await expect(anna.page.getByTestId("qr").locator("svg").first()).toBeVisible();
  await expect(anna.page.getByTestId("group-qr").locator("svg")).toBeVisible();
  // With its looks: the style sheet and the font came along.
  const [radius, font] = await anna.page.evaluate(() => [
    getComputedStyle(document.querySelector(".ticket") as Element).borderRadius,
    document.fonts.check("1rem Figtree"),
  ]);
  expect(radius).not.toBe("0px");
  expect(font).toBe(true);

  for (const other of [`/shows/${show.id}`, path.replace("/ticket", "")]) {
    const tab = await anna.newTab();
    await expect(tab.page.goto(cable.url + other)).rejects.toThrow(/ERR_CONNECTION_REFUSED/);
  }
  // Another tab finds the tickets as well.
  const again = await anna.newTab();
  await again.page.goto(cable.url + path);
  await expectBothTickets(again.page);
});

test("what is kept is tickets and what they are drawn with, and a ticket given back is forgotten", async ({ request, anna }) => {
  const show = await claimShow(request);
  const path = await buy(anna, show, ["7"]);
  await press(anna.page.getByTestId("ticket-link"));
  await expect(anna.page.getByTestId("kept")).not.toBeEmpty();
  const kept = () =>
    anna.page.evaluate(async () => {
      const names = await caches.keys();
      const requests = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
      return requests.flat().map((request) => new URL(request.url).pathname);
    });
  for (const file of await kept()) {
    expect(file).toMatch(/^\/(bookings\/[0-9a-f-]{36}\/ticket|style\/[\w.-]+|fonts\/[\w.-]+|favicon\.svg|pkg\/keep(-ticket)?\.js)$/);
  }
  expect(await kept()).toContain(path);

  await anna.page.goBack();
  await press(anna.page.getByTestId("cancel-open"));
  await press(anna.page.getByTestId("cancel-confirm"));
  await bookingBecomes(anna.page, "CANCELLED");
  // Asking for the ticket leads to the booking, and the copy goes.
  await anna.page.goto(path);
  await expect(anna.page).toHaveURL(path.replace("/ticket", ""));
  expect(await kept()).not.toContain(path);
});

test("signing out forgets the tickets that were kept", async ({ request, anna }) => {
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
