// A shift at the box office, from float to cash-up, while moviegoers buy on the same map: sales, one undone, one
// refunded, one exchanged. On a tablet by touch, on a laptop by keyboard alone.
import { PASSWORD } from "../pages/accounts.js";
import { claimShow } from "../pages/catalogue.js";
import { closingShow } from "../pages/closing.js";
import { expectForEveryone, expectOnPhone } from "../pages/everyone.js";
import { ShowPage } from "../pages/show.js";
import { openBoxOffice, signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";
import type { Locator, Page } from "@playwright/test";

const PIN = "274951";
test.setTimeout(180_000);

/** Uses a control: by touch, or by the keyboard alone. */
async function use(page: Page, control: Locator): Promise<void> {
  if (test.info().project.use.hasTouch) {
    // Whose a seat is can be asked although it cannot be had.
    await control.tap({ force: (await control.getAttribute("aria-disabled")) === "true" });
  } else {
    await control.focus();
    await page.keyboard.press("Enter");
  }
}

/** What the till says should be in it, minor units. */
async function expected(page: Page): Promise<number> {
  return Number(await page.getByTestId("till").getAttribute("data-expected"));
}

/** Presses the button of an exchange whose answer gets lost on the way, whenever it is asked for, then asks again. */
async function swapUnheard(page: Page): Promise<void> {
  const asked = "**/bookings/*/exchange";
  await page.route(asked, async (route) => {
    await route.fetch();
    await route.abort();
  });
  await use(page, page.getByTestId("swap"));
  await expect(page.getByTestId("unanswered")).toBeVisible({ timeout: 20_000 });
  // It was done: what was held is gone, and there is nothing left to press the first button for.
  await expect(new ShowPage(page).held()).toHaveCount(0);
  await expectForEveryone(page, "an exchange nobody answered");
  await expectOnPhone(page, "an exchange nobody answered");
  await page.unroute(asked);
  await use(page, page.getByTestId("ask-again"));
}

/** Gives these seats of the show on screen for the booking that is exchanged; with a PIN where money goes back, and only
 * there. The new booking. */
async function swap(
  page: Page,
  seats: number[],
  change: "more" | "back" | RegExp = /^(more|even|back)$/,
  press: (page: Page) => Promise<void> = (page) => use(page, page.getByTestId("swap")),
): Promise<string> {
  const counter = new ShowPage(page);
  for (const seat of seats) await use(page, counter.seat(seat));
  await expect(counter.held()).toHaveCount(seats.length);
  const difference = page.getByTestId("difference");
  await expect(difference).toHaveAttribute("data-change", change);
  const goesBack = (await difference.getAttribute("data-change")) === "back";
  await expect(page.locator("#swap-pin")).toHaveCount(goesBack ? 1 : 0);
  if (goesBack) {
    await use(page, page.getByTestId("swap"));
    await expect(page.getByTestId("counter-trouble")).toBeVisible();
    await expectForEveryone(page, "an exchange that waits for a PIN");
    await expectOnPhone(page, "an exchange that waits for a PIN");
    await page.locator("#swap-pin").fill(PIN);
  }
  await press(page);
  await expect(page.getByTestId("changed-hands")).toBeVisible();
  await expect(difference).toHaveCount(0);
  return (await page.getByTestId("sold").getAttribute("data-booking")) ?? "";
}

/** The same from a booking's page, in its own show; what is to go back is heard of at the second asking. */
async function exchange(page: Page, theatre: string, booking: string, seats: number[], change: "more" | "back"): Promise<string> {
  await page.goto(`/staff/${theatre}/box-office/bookings/${booking}`);
  await use(page, page.getByTestId("exchange"));
  await new ShowPage(page).live();
  return swap(page, seats, change, change === "back" ? swapUnheard : undefined);
}

/** Arabic dates are wide: their strip must end before the search beside it. Seats, fields and counts have one kind of digits. */
async function expectApartInArabic(page: Page, path: string): Promise<void> {
  const usual = page.viewportSize();
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto(`${path}?lang=ar`);
  const isOver = await page.evaluate(() => {
    const box = (selector: string) => document.querySelector(selector)?.getBoundingClientRect() ?? new DOMRect();
    const [strip, search] = [box(".counter-day-shows .strip"), box(".counter-day > .counter-find")];
    return strip.left < search.right && search.left < strip.right && strip.top < search.bottom && search.top < strip.bottom;
  });
  expect(isOver, "the days lie over the search").toBe(false);
  expect(await page.locator("main").innerText()).not.toMatch(/[٠-٩]/);
  await page.goto(`${path}?lang=en`);
  if (usual) await page.setViewportSize(usual);
}

test("a shift from float to cash-up while a moviegoer buys on the same map", async ({ request, newVisitor }) => {
  const max = await newVisitor({ reducedMotion: "reduce" });
  const seller = max.page;
  const ben = await newVisitor();
  const show = await claimShow(request, [["C", "5"], ["C", "6"], ["C", "7"], ["C", "8"]]);
  const facts = await request.get(`/api/v1/shows/${show.id}`);
  const { theatre } = (await facts.json()) as { theatre: string };

  await signInAsManager(seller);
  await openBoxOffice(seller, theatre);
  await expectForEveryone(seller, "the box office without a till");
  await expectApartInArabic(seller, `/staff/${theatre}/box-office`);
  // A float nobody can count stays as it was typed, and what is wrong with it stands beside it.
  const floatField = seller.locator("#float");
  await floatField.fill("a hundred");
  await use(seller, seller.getByTestId("open-till"));
  await expect(floatField).toHaveAttribute("aria-invalid", "true");
  await expect(floatField).toHaveValue("a hundred");
  await expect(floatField).toHaveAccessibleDescription(/12\.50/);
  await expectForEveryone(seller, "a float that is refused");
  await floatField.fill("100.00");
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

  // A seat the house keeps goes straight to its guest: whoever looks on sees it kept, then held, and may never take it.
  const kept = show.seat("C", "8");
  await use(seller, counter.seat(kept));
  await expect(counter.held()).toHaveCount(1);
  await use(seller, seller.locator(".counter-more summary"));
  await seller.locator("#counter-reason").fill("For the mayor.");
  await use(seller, seller.getByTestId("keep-seats"));
  await moviegoer.sees(kept, "blocked");
  await counter.sees(kept, "blocked");
  await use(seller, counter.seat(kept));
  await expect(seller.getByTestId("take-for-guest")).toBeVisible();
  await expectForEveryone(seller, "a seat the house keeps");
  await expectOnPhone(seller, "a seat the house keeps");
  await use(seller, seller.getByTestId("take-for-guest"));
  await expect(seller.getByTestId("counter-trouble")).toBeVisible();
  await moviegoer.sees(kept, "blocked");
  await seller.locator("#put-back-reason").fill("The mayor is here.");
  await use(seller, seller.getByTestId("take-for-guest"));
  await counter.sees(kept, "mine");
  await expect(counter.held()).toHaveCount(1);
  await expect(seller.getByTestId("whose")).toHaveCount(0);
  await moviegoer.sees(kept, "locked");
  await use(seller, counter.seat(kept));
  await moviegoer.sees(kept, "available");

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

  // The other one would have two seats, then one after all: what changes hands is told before it does.
  const two = await exchange(seller, theatre, sold, [show.seat("C", "6"), show.seat("C", "8")], "more");
  await moviegoer.sees(show.seat("C", "5"), "available");
  await moviegoer.sees(show.seat("C", "8"), "booked");
  max.mayBeCutOff();
  const one = await exchange(seller, theatre, two, [show.seat("C", "5")], "back");
  await moviegoer.sees(show.seat("C", "6"), "available");
  await expectForEveryone(seller, "the counter after an exchange");
  await expectOnPhone(seller, "the counter after an exchange");

  // In the end they come to another show.
  const other = await claimShow(request, [["C", "5"]], { theatre });
  const { local_date: day } = (await (await request.get(`/api/v1/shows/${other.id}`)).json()) as { local_date: string };
  await seller.goto(`/staff/${theatre}/box-office/bookings/${one}`);
  await use(seller, seller.getByTestId("exchange-show"));
  await expect(seller.getByTestId("exchanged")).toBeVisible();
  await expectForEveryone(seller, "shows to exchange a booking for");
  await expectOnPhone(seller, "shows to exchange a booking for");
  await seller.locator("#date").fill(day);
  await use(seller, seller.getByTestId("look"));
  await use(seller, seller.locator(`[data-show="${other.id}"]`));
  await counter.live();
  const last = await swap(seller, [other.seat("C", "5")]);
  await moviegoer.sees(show.seat("C", "5"), "available");
  const found = await seller.request.get(`/api/v1/theatres/${theatre}/box-office/bookings/${last}`);
  const { show: where, total } = (await found.json()) as { show: string; total: { minor: number } };
  expect(where).toBe(other.id);
  // Loaded again, the counter does not sell on: the booking says what became of it.
  await seller.reload();
  await expect(seller.getByTestId("booking")).toHaveAttribute("data-money", "MOVED");
  await expect(seller.getByTestId("moved-to")).toHaveAttribute("href", new RegExp(`/${last}$`));
  await expectForEveryone(seller, "a booking that was exchanged");
  await expectOnPhone(seller, "a booking that was exchanged");

  // The end of the shift.
  await openBoxOffice(seller, theatre);
  const left = float + total.minor;
  expect(await expected(seller)).toBe(left);
  await use(seller, seller.getByTestId("cash-up-open"));
  await seller.locator("#counted").fill((left / 100).toFixed(2));
  await use(seller, seller.getByTestId("cash-up"));
  await expect(seller.getByTestId("open-till")).toBeVisible();
  await expectForEveryone(seller, "the box office after a shift");

  // Who lost the reference is looked for by name.
  await seller.locator("#asked").fill("nobody of this name");
  await use(seller, seller.getByTestId("find"));
  await expect(seller.getByTestId("found-none")).toBeVisible();
  await expect(seller.locator("#asked")).toHaveValue("nobody of this name");
  await expectForEveryone(seller, "bookings looked for by name");
  await expectOnPhone(seller, "bookings looked for by name");
});

test("a show that is sold no more has its map, for whoever comes late", async ({ request, newVisitor }) => {
  const late = await newVisitor({ reducedMotion: "reduce" });
  const { page } = late;
  const show = closingShow();
  const { theatre } = (await (await request.get(`/api/v1/shows/${show}`)).json()) as { theatre: string };
  await signInAsManager(page);
  await page.goto(`/staff/${theatre}/box-office/shows/${show}`);
  await expect(page.getByTestId("not-on-sale")).toBeVisible();
  const counter = new ShowPage(page);
  await counter.live();
  await expectForEveryone(page, "the map of a show that is sold no more");
  await expectOnPhone(page, "the map of a show that is sold no more");
  // A tap tells whose the seat is, and takes nothing.
  await use(page, counter.seat(0));
  await expect(page.getByTestId("whose")).toBeVisible();
  await expect(page.getByTestId("message")).toBeHidden();
  await counter.sees(0, "available");
  for (const gone of ["cart-seat", "sell-cash", "party-find"]) await expect(page.getByTestId(gone)).toHaveCount(0);
  await expectForEveryone(page, "whose a seat is in a show that is sold no more");
  // Where it cannot be asked, that is said.
  late.mayBeCutOff();
  const question = `**/box-office/shows/${show}/seats/*`;
  await page.route(question, (route) => route.abort());
  await use(page, counter.seat(1));
  await expect(page.getByTestId("whose-trouble")).toBeVisible();
  await expect(page.getByTestId("whose")).toHaveCount(0);
  await expectForEveryone(page, "a seat nobody can ask about");
  await page.unroute(question);
  await use(page, counter.seat(0));
  await expect(page.getByTestId("whose")).toBeVisible();
  await expect(page.getByTestId("whose-trouble")).toBeHidden();
});
