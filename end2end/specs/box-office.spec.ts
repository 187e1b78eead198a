// A shift at the box office, from float to cash-up, while moviegoers buy on the same map: sales, an undo, a refund,
// exchanges. On a tablet by touch, on a laptop by keyboard.
import { PASSWORD } from "../pages/accounts.js";
import { claimShow } from "../pages/catalogue.js";
import { closingShow } from "../pages/closing-show.js";
import { choose, readBooking, use, useTwice } from "../pages/counter.js";
import { expectAccessible, expectFitsPhone } from "../pages/accessibility.js";
import { messages } from "../pages/languages.js";
import { ShowPage } from "../pages/show.js";
import { openBoxOffice, PIN, post, signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";
import type { Page } from "@playwright/test";

test.setTimeout(180_000);

/** Returns the expected cash in the till, in minor units. */
async function expected(page: Page): Promise<number> {
  return Number(await page.getByTestId("till").getAttribute("data-expected"));
}

/** Expects that the focus did not leave the counter with the pressed button. */
async function expectFocusAfterAction(page: Page): Promise<void> {
  await expect(page.locator("#sell-cash")).toBeFocused();
}

/** Submits an exchange whose answers are lost, then retries it. */
async function swapWithLostAnswers(page: Page): Promise<void> {
  const asked = "**/bookings/*/exchange";
  await page.route(asked, async (route) => {
    await route.fetch();
    await route.abort();
  });
  await use(page, page.getByTestId("swap"));
  await expect(page.getByTestId("unanswered")).toBeVisible({ timeout: 20_000 });
  // The exchange was processed: the hold is gone, so only the retry is possible.
  await expect(new ShowPage(page).heldSeats()).toHaveCount(0);
  await expectAccessible(page, "an exchange without an answer");
  await expectFitsPhone(page, "an exchange without an answer");
  await page.unroute(asked);
  await use(page, page.getByTestId("ask-again"));
}

/** Exchanges a booking for these seats of the open show, with a PIN only for a refund. Returns the new booking. */
async function swap(
  page: Page,
  seats: number[],
  change: "more" | "back" | RegExp = /^(more|even|back)$/,
  press: (page: Page) => Promise<void> = (page) => use(page, page.getByTestId("swap")),
): Promise<string> {
  const counter = new ShowPage(page);
  for (const seat of seats) await choose(page, seat);
  await expect(counter.heldSeats()).toHaveCount(seats.length);
  const difference = page.getByTestId("difference");
  await expect(difference).toHaveAttribute("data-change", change);
  const goesBack = (await difference.getAttribute("data-change")) === "back";
  await expect(page.locator("#swap-pin")).toHaveCount(goesBack ? 1 : 0);
  if (goesBack) {
    await use(page, page.getByTestId("swap"));
    await expect(page.getByTestId("counter-trouble")).toBeVisible();
    await expect(page.locator("#swap-pin")).toBeFocused();
    await expectAccessible(page, "an exchange that waits for a PIN");
    await expectFitsPhone(page, "an exchange that waits for a PIN");
    await page.locator("#swap-pin").fill(PIN);
  }
  await press(page);
  await expect(page.getByTestId("changed-hands")).toBeVisible();
  await expect(difference).toHaveCount(0);
  await expectFocusAfterAction(page);
  return (await page.getByTestId("sold").getAttribute("data-booking")) ?? "";
}

/** Exchanges seats within the booking's show, from the booking's page; for a refund the first answers are lost. */
async function exchange(page: Page, theatre: string, booking: string, seats: number[], change: "more" | "back"): Promise<string> {
  await page.goto(`/staff/${theatre}/box-office/bookings/${booking}`);
  await use(page, page.getByTestId("exchange"));
  await new ShowPage(page).waitUntilLive();
  return swap(page, seats, change, change === "back" ? swapWithLostAnswers : undefined);
}

/** Expects that the hold of an exchange for two seats is extended before the customer pays, and releases the seats. */
async function expectTimeToPayDifference(page: Page, theatre: string, booking: string): Promise<void> {
  // A server with holds of four seconds, so both seats are held at once.
  await page.goto(`${process.env.SHORT_HOLD_URL ?? ""}/staff/${theatre}/box-office/bookings/${booking}`);
  await use(page, page.getByTestId("exchange"));
  const counter = new ShowPage(page);
  await counter.waitUntilLive();
  await use(page, page.getByTestId("party-find"));
  await use(page, page.getByTestId("party-hold"));
  await expect(page.getByTestId("difference")).toHaveAttribute("data-change", "more");
  await expect(counter.countdown).toHaveText(/^[23]:/);
  for (const left of [1, 0]) {
    await use(page, page.locator(".cart-seat-remove").first());
    await expect(counter.heldSeats()).toHaveCount(left);
  }
  await expect(counter.countdown).toBeHidden();
}

/** Expects that nothing is sold for too little cash, and that the change is shown for more. */
async function expectChangeForCash(page: Page): Promise<void> {
  const cash = page.locator("#cash-given");
  await expect(cash).toBeFocused();
  await expectAccessible(page, "a payment in cash");
  await expectFitsPhone(page, "a payment in cash");
  await cash.fill("1");
  await expect(page.getByTestId("cash-change")).toContainText("missing");
  await expect(page.getByTestId("confirm-payment")).toHaveAttribute("aria-disabled", "true");
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("payment")).toBeVisible();
  await cash.fill("99999");
  await expect(page.getByTestId("cash-change")).toContainText("Hand over");
  await expect(page.getByTestId("confirm-payment")).toHaveAttribute("aria-disabled", "false");
}

/** Holds a seat for a caller at another counter, and waits for its line. Returns the path of its release. */
async function holdForCaller(page: Page, callers: string, seat: number, name = "Carla"): Promise<string> {
  const held = JSON.parse(await post(page.request, callers, { seats: [seat], name, minutes: 60 }, 201)) as { hold: string };
  await expect(page.getByTestId("caller").filter({ hasText: name })).toHaveCount(1);
  return `${callers}/${held.hold}/release`;
}

/** Expects the name of the booking that was sold last. */
async function expectNameOfSale(page: Page, theatre: string, name: string): Promise<void> {
  const sold = (await page.getByTestId("sold").getAttribute("data-booking")) ?? "";
  const answer = await page.request.get(`/api/v1/theatres/${theatre}/box-office/bookings/${sold}`);
  expect(((await answer.json()) as { name: string }).name).toBe(name);
}

/** Expects that the line of a caller shows the total, keeps its focus while another comes, and asks before a release. */
async function expectFocusInCallerLines(page: Page, callers: string, [seat, other]: [number, number]): Promise<void> {
  await holdForCaller(page, callers, seat);
  const lines = page.getByTestId("caller");
  const carla = lines.filter({ hasText: "Carla" });
  await expect(carla).toContainText(/\(.*\d.*\)/);
  const cash = carla.getByTestId("caller-cash");
  await cash.focus();
  const release = await holdForCaller(page, callers, other, "Dora");
  await expect(cash).toBeFocused();
  await useTwice(page, carla.getByTestId("caller-let-go"), "box_office.caller_let_go_sure");
  await expect(carla).toHaveCount(0);
  await expect(lines).toHaveCount(1);
  await expectFocusAfterAction(page);
  await post(page.request, release, { reason: "Not collected." }, 204);
  await expect(lines).toHaveCount(0);
}

/** Expects that the list of callers follows other counters, and that a refused sale to a caller is harmless. */
async function expectCallersOfOtherCounters(page: Page, theatre: string, callers: string, seat: number): Promise<void> {
  const [lines, payment] = [page.getByTestId("caller"), page.getByTestId("payment")];
  // Released while the seller asks for the money.
  let release = await holdForCaller(page, callers, seat);
  await use(page, page.getByTestId("caller-cash"));
  await expect(payment).toBeVisible();
  await post(page.request, release, { reason: "Not collected." }, 204);
  await expect(payment).toHaveCount(0);
  await expect(lines).toHaveCount(0);
  await expect(page.getByTestId("counter-trouble")).toContainText("Carla");

  // Sold under the caller's name.
  await holdForCaller(page, callers, seat);
  await use(page, page.getByTestId("caller-card"));
  await use(page, page.getByTestId("confirm-payment"));
  await expect(lines).toHaveCount(0);
  await expect(payment).toHaveCount(0);
  await expectNameOfSale(page, theatre, "Carla");
  await useTwice(page, page.getByTestId("undo"), "box_office.undo_sure");
  await expect(page.getByTestId("sold")).toHaveCount(0);
  await expectFocusAfterAction(page);
  await new ShowPage(page).expectSeat(seat, "available");

  // Refused, because this counter does not know yet that the seat was released.
  release = await holdForCaller(page, callers, seat);
  const known = await (await page.request.get(callers)).text();
  await page.route(`**${callers}`, (route) => route.fulfill({ contentType: "application/json", body: known }));
  await post(page.request, release, { reason: "Not collected." }, 204);
  await use(page, page.getByTestId("caller-cash"));
  await use(page, page.getByTestId("confirm-payment"));
  await expect(payment).toHaveCount(0);
  await expect(page.getByTestId("counter-trouble")).toBeVisible();
  await page.unroute(`**${callers}`);
  await expect(lines).toHaveCount(0);
}

/** Expects that the refund form without a choice of tickets refunds nothing, and keeps the reason. */
async function expectRefundNeedsChoice(page: Page, theatre: string, booking: string): Promise<void> {
  const reason = page.locator("#refund-reason");
  await reason.fill("The seat is broken.");
  await page.locator("#refund-pin").fill(PIN);
  await use(page, page.getByTestId("refund"));
  const all = page.locator("#refund-all");
  await expect(page.locator('label[for="refund-all"]')).toContainText(/All tickets: \D*\d/);
  await expect(all).toHaveAccessibleDescription(messages("en")["box_office.choose_tickets"]!);
  await expect(all).toBeFocused();
  await expect(all).not.toBeChecked();
  await expect(reason).toHaveValue("The seat is broken.");
  await expectAccessible(page, "a refund without a choice of tickets");
  await expectFitsPhone(page, "a refund without a choice of tickets");
  expect((await readBooking(page.request, theatre, booking)).state).toBe("CONFIRMED");
}

/** Expects that the wide Arabic dates do not overlap the search, and that only Western digits are used. */
async function expectNoOverlapInArabic(page: Page, path: string): Promise<void> {
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
  const show = await claimShow(request, [["C", "4"], ["C", "5"], ["C", "6"], ["C", "7"], ["C", "8"]]);
  const facts = await request.get(`/api/v1/shows/${show.id}`);
  const { theatre } = (await facts.json()) as { theatre: string };

  await signInAsManager(seller);
  await openBoxOffice(seller, theatre);
  await expectAccessible(seller, "the box office without a till");
  await expectNoOverlapInArabic(seller, `/staff/${theatre}/box-office`);
  // An invalid float stays in the field, with the error next to it.
  const floatField = seller.locator("#float");
  await floatField.fill("a hundred");
  await use(seller, seller.getByTestId("open-till"));
  await expect(floatField).toHaveAttribute("aria-invalid", "true");
  await expect(floatField).toHaveValue("a hundred");
  await expect(floatField).toHaveAccessibleDescription(/12\.50/);
  await expectAccessible(seller, "a float that is refused");
  await floatField.fill("100.00");
  await use(seller, seller.getByTestId("open-till"));
  await expect(seller.getByTestId("till")).toBeVisible();
  const float = await expected(seller);

  // Seller and moviegoer see each other's holds.
  await seller.goto(`/staff/${theatre}/box-office/shows/${show.id}`);
  const counter = new ShowPage(seller);
  await counter.waitUntilLive();
  const moviegoer = await ben.visit(show.id);
  await moviegoer.hold(show.seat("C", "7"));
  await counter.expectSeat(show.seat("C", "7"), "locked");
  await choose(seller, show.seat("C", "5"));
  await choose(seller, show.seat("C", "6"));
  await expect(counter.heldSeats()).toHaveCount(2);
  await moviegoer.expectSeat(show.seat("C", "6"), "locked");
  await use(seller, seller.getByTestId("sell-cash"));
  await expectChangeForCash(seller);
  await use(seller, seller.getByTestId("confirm-payment"));
  await expect(seller.getByTestId("sold")).toBeVisible();
  // The cashier counts the change after the sale.
  await expect(seller.getByTestId("changed-hands")).toContainText("Hand over");
  await moviegoer.expectSeat(show.seat("C", "6"), "booked");
  await counter.expectSeat(show.seat("C", "7"), "locked");
  // Staff see the holder.
  await use(seller, counter.seat(show.seat("C", "7")));
  await expect(seller.getByTestId("whose")).toBeVisible();
  await expectAccessible(seller, "the counter after a sale");

  const sold = (await seller.getByTestId("sold").getAttribute("data-booking")) ?? "";
  const callers = `/api/v1/theatres/${theatre}/box-office/shows/${show.id}/caller-holds`;
  await expectFocusInCallerLines(seller, callers, [show.seat("C", "8"), show.seat("C", "4")]);
  await expectCallersOfOtherCounters(seller, theatre, callers, show.seat("C", "8"));
  await counter.expectSeat(show.seat("C", "8"), "available");
  // Undo reverses the last sale only. The buyer has no name.
  await choose(seller, show.seat("C", "8"));
  await expect(counter.heldSeats()).toHaveCount(1);
  await use(seller, seller.getByTestId("sell-card"));
  await use(seller, seller.getByTestId("payment-back"));
  await expect(seller.getByTestId("payment")).toHaveCount(0);
  await use(seller, seller.getByTestId("sell-card"));
  await use(seller, seller.getByTestId("confirm-payment"));
  await expect(seller.getByTestId("sold")).not.toHaveAttribute("data-booking", sold);
  await expectNameOfSale(seller, theatre, "");
  await useTwice(seller, seller.getByTestId("undo"), "box_office.undo_sure");
  await expect(seller.getByTestId("sold")).toHaveCount(0);
  await expectFocusAfterAction(seller);
  await expect(seller.getByTestId("undone")).toContainText("at the card terminal");
  await expectAccessible(seller, "the counter after an undo");
  await moviegoer.expectSeat(show.seat("C", "8"), "available");

  // A house seat goes directly to its guest: others see it blocked, then held, but never available.
  const kept = show.seat("C", "8");
  await use(seller, counter.seat(kept));
  await expect(counter.heldSeats()).toHaveCount(1);
  await use(seller, seller.locator(".counter-more summary"));
  await seller.locator("#counter-reason").fill("For the mayor.");
  await use(seller, seller.getByTestId("keep-seats"));
  await moviegoer.expectSeat(kept, "blocked");
  await counter.expectSeat(kept, "blocked");
  await use(seller, counter.seat(kept));
  await expect(seller.getByTestId("take-for-guest")).toBeVisible();
  await expectAccessible(seller, "a seat the house keeps");
  await expectFitsPhone(seller, "a seat the house keeps");
  await use(seller, seller.getByTestId("take-for-guest"));
  await expect(seller.getByTestId("counter-trouble")).toBeVisible();
  await moviegoer.expectSeat(kept, "blocked");
  const reason = seller.locator("#put-back-reason");
  await expect(reason).toBeFocused();
  await expect(reason).toHaveAttribute("aria-invalid", "true");
  await reason.fill("The mayor is here.");
  await use(seller, seller.getByTestId("take-for-guest"));
  await counter.expectSeat(kept, "mine");
  await expect(counter.heldSeats()).toHaveCount(1);
  await expect(seller.getByTestId("whose")).toHaveCount(0);
  await moviegoer.expectSeat(kept, "locked");
  await use(seller, counter.seat(kept));
  await moviegoer.expectSeat(kept, "available");

  // One seat is refunded with a manager's PIN.
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
  await expectAccessible(seller, "a booking at the counter");
  await expectRefundNeedsChoice(seller, theatre, sold);
  const seat = `seat-${show.seat("C", "6")}`;
  await expect(seller.locator(`label[for="${seat}"]`)).toContainText(/C6 · \D*\d/);
  await seller.locator(`#${seat}`).check();
  await seller.locator("#refund-pin").fill(PIN);
  await use(seller, seller.getByTestId("refund"));
  await expect(seller.locator(".counter-choices")).toHaveCount(0);
  await expect(seller.getByTestId("money-back")).toContainText("from your till");
  await expectAccessible(seller, "a booking after a refund");
  // The sum is shown once: after a reload no one hands it over again.
  await seller.reload();
  await expect(seller.getByTestId("went-back")).toBeVisible();
  await expect(seller.getByTestId("money-back")).toHaveCount(0);
  await moviegoer.expectSeat(show.seat("C", "6"), "available");
  await use(seller, seller.getByTestId("print"));
  await expect(seller.getByTestId("paper-ticket")).toHaveCount(1);

  await expectTimeToPayDifference(seller, theatre, sold);
  // The other seat is exchanged for two, then for one: the difference is shown before.
  const two = await exchange(seller, theatre, sold, [show.seat("C", "6"), show.seat("C", "8")], "more");
  await moviegoer.expectSeat(show.seat("C", "5"), "available");
  await moviegoer.expectSeat(show.seat("C", "8"), "booked");
  max.allowNetworkErrors();
  const one = await exchange(seller, theatre, two, [show.seat("C", "5")], "back");
  await moviegoer.expectSeat(show.seat("C", "6"), "available");
  await expectAccessible(seller, "the counter after an exchange");
  await expectFitsPhone(seller, "the counter after an exchange");

  // Finally the booking is exchanged for another show.
  const other = await claimShow(request, [["C", "5"]], { theatre });
  const { local_date: day } = (await (await request.get(`/api/v1/shows/${other.id}`)).json()) as { local_date: string };
  await seller.goto(`/staff/${theatre}/box-office/bookings/${one}`);
  await use(seller, seller.getByTestId("exchange-show"));
  await expect(seller.getByTestId("exchanged")).toBeVisible();
  await expectAccessible(seller, "shows to exchange a booking for");
  await expectFitsPhone(seller, "shows to exchange a booking for");
  await seller.locator("#date").fill(day);
  await use(seller, seller.getByTestId("look"));
  await use(seller, seller.locator(`[data-show="${other.id}"]`));
  await counter.waitUntilLive();
  const last = await swap(seller, [other.seat("C", "5")]);
  await moviegoer.expectSeat(show.seat("C", "5"), "available");
  const found = await seller.request.get(`/api/v1/theatres/${theatre}/box-office/bookings/${last}`);
  const { show: where, total } = (await found.json()) as { show: string; total: { minor: number } };
  expect(where).toBe(other.id);
  // After a reload the old booking shows that it was moved.
  await seller.reload();
  await expect(seller.getByTestId("booking")).toHaveAttribute("data-money", "MOVED");
  await expect(seller.getByTestId("moved-to")).toHaveAttribute("href", new RegExp(`/${last}$`));
  await expectAccessible(seller, "a booking that was exchanged");
  await expectFitsPhone(seller, "a booking that was exchanged");

  // Cash up.
  await openBoxOffice(seller, theatre);
  const left = float + total.minor;
  expect(await expected(seller)).toBe(left);
  await use(seller, seller.getByTestId("cash-up-open"));
  await seller.locator("#counted").fill((left / 100).toFixed(2));
  await use(seller, seller.getByTestId("cash-up"));
  await expect(seller.getByTestId("open-till")).toBeVisible();
  await expectAccessible(seller, "the box office after a shift");

  // Search by name without a reference.
  await seller.locator("#asked").fill("no such name");
  await use(seller, seller.getByTestId("find"));
  await expect(seller.getByTestId("found-none")).toBeVisible();
  await expect(seller.locator("#asked")).toHaveValue("no such name");
  await expectAccessible(seller, "bookings looked for by name");
  await expectFitsPhone(seller, "bookings looked for by name");
});

test("a hold is extended before the customer is asked for money", async ({ request, newVisitor }) => {
  // A server with holds of four seconds.
  const server = process.env.SHORT_HOLD_URL ?? "";
  const { page } = await newVisitor({ reducedMotion: "reduce" });
  const show = await claimShow(request);
  const { theatre } = (await (await request.get(`/api/v1/shows/${show.id}`)).json()) as { theatre: string };
  await signInAsManager(page, server);
  await page.goto(`${server}/staff/${theatre}/box-office/shows/${show.id}`);
  const counter = new ShowPage(page);
  await counter.waitUntilLive();
  await choose(page, show.seat("C", "7"));
  await expect(counter.heldSeats()).toHaveCount(1);
  await use(page, page.getByTestId("sell-cash"));
  await expect(counter.countdown).toHaveText(/^[23]:/);
  await expect(page.getByTestId("payment")).toBeVisible();
});

test("a show after the end of sales still has a map for staff", async ({ request, newVisitor }) => {
  const staff = await newVisitor({ reducedMotion: "reduce" });
  const { page } = staff;
  const show = closingShow();
  const { theatre } = (await (await request.get(`/api/v1/shows/${show}`)).json()) as { theatre: string };
  await signInAsManager(page);
  await page.goto(`/staff/${theatre}/box-office/shows/${show}`);
  await expect(page.getByTestId("not-on-sale")).toBeVisible();
  const counter = new ShowPage(page);
  await counter.waitUntilLive();
  await expectAccessible(page, "the map of a show after the end of sales");
  await expectFitsPhone(page, "the map of a show after the end of sales");
  // A tap shows the holder and holds nothing.
  await counter.magnify(0);
  await use(page, counter.seat(0));
  await expect(page.getByTestId("whose")).toBeVisible();
  await expect(page.getByTestId("message")).toBeHidden();
  await counter.expectSeat(0, "available");
  for (const gone of ["cart-seat", "sell-cash", "party-find"]) await expect(page.getByTestId(gone)).toHaveCount(0);
  await expectAccessible(page, "the holder of a seat after the end of sales");
  // A failed request is reported.
  staff.allowNetworkErrors();
  const question = `**/box-office/shows/${show}/seats/*`;
  await page.route(question, (route) => route.abort());
  await use(page, counter.seat(1));
  await expect(page.getByTestId("whose-trouble")).toBeVisible();
  await expect(page.getByTestId("whose")).toHaveCount(0);
  await expectAccessible(page, "a seat whose holder cannot be loaded");
  await page.unroute(question);
  await use(page, counter.seat(0));
  await expect(page.getByTestId("whose")).toBeVisible();
  await expect(page.getByTestId("whose-trouble")).toBeHidden();
});
