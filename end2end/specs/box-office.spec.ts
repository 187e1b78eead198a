// A shift at the box office, from float to cash-up, while moviegoers buy on the same map. On a tablet by touch, on a
// laptop by keyboard alone.
import { PASSWORD } from "../pages/accounts.js";
import { claimShow } from "../pages/catalogue.js";
import { expectForEveryone } from "../pages/everyone.js";
import { ShowPage } from "../pages/show.js";
import { openBoxOffice, signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";
import type { Locator, Page } from "@playwright/test";

const PIN = "274951";
test.setTimeout(120_000);

/** Uses a control: by touch, or by the keyboard alone. */
async function use(page: Page, control: Locator): Promise<void> {
  if (test.info().project.use.hasTouch) {
    await control.tap();
  } else {
    await control.focus();
    await page.keyboard.press("Enter");
  }
}

/** What the till says should be in it, minor units. */
async function expected(page: Page): Promise<number> {
  return Number(await page.getByTestId("till").getAttribute("data-expected"));
}

test("a shift from float to cash-up while a moviegoer buys on the same map", async ({ request, newVisitor }) => {
  const seller = (await newVisitor({ reducedMotion: "reduce" })).page;
  const ben = await newVisitor();
  const show = await claimShow(request, [["C", "5"], ["C", "6"], ["C", "7"], ["C", "8"]]);
  const facts = await request.get(`/api/v1/shows/${show.id}`);
  const { theatre } = (await facts.json()) as { theatre: string };

  await signInAsManager(seller);
  await openBoxOffice(seller, theatre);
  await expectForEveryone(seller, "the box office without a till");
  await seller.locator("#float").fill("100.00");
  await use(seller, seller.getByTestId("open-till"));
  await expect(seller.getByTestId("till")).toBeVisible();
  const float = await expected(seller);

  // Two people at one map: what one takes the other sees.
  await seller.goto(`/staff/${theatre}/box-office/shows/${show.id}`);
  const counter = new ShowPage(seller);
  await counter.live();
  const moviegoer = await ben.visit(show.id);
  await moviegoer.hold(show.seat("C", "7"));
  await counter.sees(show.seat("C", "7"), "locked");
  await use(seller, counter.seat(show.seat("C", "5")));
  await use(seller, counter.seat(show.seat("C", "6")));
  await expect(counter.held()).toHaveCount(2);
  await moviegoer.sees(show.seat("C", "6"), "locked");
  await use(seller, seller.getByTestId("sell-cash"));
  await expect(seller.getByTestId("sold")).toBeVisible();
  await moviegoer.sees(show.seat("C", "6"), "booked");
  await counter.sees(show.seat("C", "7"), "locked");
  // Whose it is, staff are told.
  await use(seller, counter.seat(show.seat("C", "7")));
  await expect(seller.getByTestId("whose")).toBeVisible();
  await expectForEveryone(seller, "the counter after a sale");

  const sold = (await seller.getByTestId("sold").getAttribute("data-booking")) ?? "";
  // A wrong click is undone, another sale stays.
  await use(seller, counter.seat(show.seat("C", "8")));
  await expect(counter.held()).toHaveCount(1);
  await use(seller, seller.getByTestId("sell-card"));
  await expect(seller.getByTestId("sold")).not.toHaveAttribute("data-booking", sold);
  await use(seller, seller.getByTestId("undo"));
  await expect(seller.getByTestId("sold")).toHaveCount(0);
  await moviegoer.sees(show.seat("C", "8"), "available");

  // One of the two comes back: a manager stands for it.
  await openBoxOffice(seller, theatre);
  const taken = (await expected(seller)) - float;
  expect(taken).toBeGreaterThan(0);
  const withPin = seller.locator("details", { has: seller.locator("#pin") });
  await withPin.locator("summary").click();
  await seller.locator("#pin").fill(PIN);
  await seller.locator("#pin-password").fill(PASSWORD);
  await use(seller, seller.getByTestId("set-pin"));
  await expect(seller.getByTestId("till")).toBeVisible();
  await seller.goto(`/staff/${theatre}/box-office/bookings/${sold}`);
  await expectForEveryone(seller, "a booking at the counter");
  await seller.locator(`#seat-${show.seat("C", "6")}`).check();
  await seller.locator("#refund-reason").fill("The seat is broken.");
  await seller.locator("#refund-pin").fill(PIN);
  await use(seller, seller.getByTestId("refund"));
  await expect(seller.locator(".counter-choices")).toHaveCount(0);
  await moviegoer.sees(show.seat("C", "6"), "available");
  await use(seller, seller.getByTestId("print"));
  await expect(seller.getByTestId("paper-ticket")).toHaveCount(1);

  // The end of the shift.
  await openBoxOffice(seller, theatre);
  expect(await expected(seller)).toBe(float + taken / 2);
  await use(seller, seller.getByTestId("cash-up-open"));
  await seller.locator("#counted").fill(((float + taken / 2) / 100).toFixed(2));
  await use(seller, seller.getByTestId("cash-up"));
  await expect(seller.getByTestId("open-till")).toBeVisible();
  await expectForEveryone(seller, "the box office after a shift");
});
