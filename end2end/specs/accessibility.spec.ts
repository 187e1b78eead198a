// Accessibility of every state of every page, once per screen size.
import { randomUUID } from "node:crypto";

import { register } from "../pages/accounts.js";
import { claimShow, largestShow, upcomingShows, showWithArea } from "../pages/catalogue.js";
import { closingShow } from "../pages/closing-show.js";
import { holdAllExcept } from "../pages/api-visitors.js";
import { expectAccessible } from "../pages/accessibility.js";
import { expectBookingState, openSeatsAgain, bookingPath, payWith, cancelPayment } from "../pages/paying.js";
import { press, ShowPage } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

// A colour in transition has too little contrast.
const CALM = { reducedMotion: "reduce" } as const;
// A run of axe takes seconds in a large room, and most tests have several.
test.setTimeout(300_000);

test("browsing pages", async ({ request, newVisitor }) => {
  const { page } = await newVisitor(CALM);
  const [show] = await upcomingShows(request);
  if (!show) throw new Error("the demo has no shows");
  const paths = [
    ["the front page", "/"],
    ["a city", `/cities/${show.city}`],
    ["a theatre", `/theatres/${show.theatre}?date=${show.local_date}`],
    ["a theatre on a day without shows", `/theatres/${show.theatre}?date=2001-01-01`],
    ["a film", `/films/${show.film}?date=${show.local_date}`],
    ["a search", `/search?q=${encodeURIComponent(show.film_title)}`],
    ["a search that finds nothing", "/search?q=zzzz-no-such-film"],
    ["an address that names nothing", "/no-such-page"],
    ["an address that cannot be parsed", "/search?date=yesterday"],
    ["the API's problems", "/docs/problems"],
  ] as const;
  for (const [name, path] of paths) {
    await page.goto(path);
    await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
    await expectAccessible(page, name);
  }
});

test("account pages: registration, sign-in, account, password reset", async ({ newVisitor }) => {
  const { page } = await newVisitor(CALM);
  const email = `anna-${randomUUID()}@example.org`;
  for (const path of ["/register", "/login", "/reset", "/bookings/find"]) {
    await page.goto(path);
    await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
    await expectAccessible(page, path);
  }
  await page.goto("/login");
  await page.locator('input[name="email"]').fill(email);
  await page.locator('input[name="password"]').fill("not the password");
  await press(page.getByTestId("sign-in"));
  await expect(page.getByTestId("account-trouble")).toBeVisible();
  await expectAccessible(page, "a wrong password");
  await register(page, "Anna", email);
  await expectAccessible(page, "the account page");
});

// Right-to-left, and with longer words.
for (const tag of ["ar", "de"] as const) {
  test(`pages and a show in another language: ${tag}`, async ({ request, newVisitor }) => {
    const { page } = await newVisitor({ ...CALM, locale: tag });
    const show = await claimShow(request);
    for (const path of ["/", "/search?q=zzzz-no-such-film", `/shows/${show.id}`]) {
      await page.goto(path);
      await expect(page.locator("html")).toHaveAttribute("lang", tag);
      if (path.startsWith("/shows/")) {
        const show = new ShowPage(page);
        await show.waitUntilLive();
        await show.waitForStyles();
      }
      await expectAccessible(page, `${path} in ${tag}`);
    }
  });
}

test("a show: free, found and held seats, form errors, tickets for a friend", async ({ request, newVisitor }) => {
  const anna = await newVisitor(CALM);
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  await expectAccessible(anna.page, "seats that are free");
  await press(anna.page.getByRole("button", { name: "List of seats" }));
  await expectAccessible(anna.page, "the list of seats");
  await press(anna.page.getByRole("button", { name: "List of seats" }));
  await press(anna.page.getByTestId("party-find"));
  await press(anna.page.getByTestId("party-hold"));
  await expect(hers.heldSeats()).toHaveCount(2);
  await expectAccessible(anna.page, "seats that are held");
  await hers.openCart();
  await press(anna.page.getByTestId("pay"));
  await expect(anna.page.locator("#buyer-name-error")).not.toBeEmpty();
  await expectAccessible(anna.page, "a form with mistakes");
  await press(anna.page.getByTestId("for-friend"));
  await press(anna.page.getByText("If your payment arrives too late"));
  await expectAccessible(anna.page, "tickets for a friend");
});

test("a show: a seat held by another visitor, a watched seat, offline", async ({ request, newVisitor }) => {
  const [anna, ben] = [await newVisitor(CALM), await newVisitor(CALM)];
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  await hers.hold(c7);
  const his = await ben.visit(show.id);
  await his.expectSeat(c7, "locked");
  await his.pressSeat(c7);
  await expect(his.message).toContainText("C7");
  await expectAccessible(ben.page, "a seat that another holds");
  await press(ben.page.getByTestId("watch-seat"));
  await hers.release(c7);
  await expect(ben.page.getByTestId("accept-offer")).toBeVisible();
  await expectAccessible(ben.page, "a seat that is free again");
  ben.allowNetworkErrors();
  await ben.context.setOffline(true);
  await expect(ben.page.getByTestId("live")).toHaveAttribute("data-state", "offline");
  await expectAccessible(ben.page, "no network");
});

test("a show: an expired hold", async ({ request, newVisitor }) => {
  const anna = await newVisitor(CALM);
  const show = await claimShow(request);
  const hers = await anna.visit(show.id, process.env.SHORT_HOLD_URL);
  await hers.hold(show.seat("C", "7"));
  await expectAccessible(anna.page, "little time left");
  await expect(anna.page.getByTestId("ask-again")).toBeVisible();
  await expectAccessible(anna.page, "the time is up");
});

test("a show: sold out, with a waiting list", async ({ request, newVisitor }) => {
  const anna = await newVisitor(CALM);
  const show = await claimShow(request, [], { maxSeats: 100 });
  await holdAllExcept(show);
  await anna.visit(show.id);
  const box = anna.page.getByTestId("waiting-list");
  await expect(box).toBeVisible();
  await expectAccessible(anna.page, "nothing is free");
  await press(anna.page.getByTestId("waiting-join"));
  await expect(box.getByRole("alert")).not.toBeEmpty();
  await expectAccessible(anna.page, "a waiting list without an address");
  await anna.page.locator("#waiting-email").fill("anna@example.org");
  await press(anna.page.getByTestId("waiting-join"));
  await expect(anna.page.getByTestId("waiting-place")).toBeVisible();
  await expectAccessible(anna.page, "a place in line");
});

test("a show: sales closed", async ({ newVisitor }) => {
  const { page } = await newVisitor(CALM);
  await page.goto(`/shows/${closingShow()}`);
  await expect(page.getByRole("heading", { level: 2 })).toHaveText("Online sales for this show have closed");
  await expectAccessible(page, "sales are closed");
});

test("a large room, and unnumbered places", async ({ request, newVisitor }) => {
  const anna = await newVisitor(CALM);
  await anna.visit(await largestShow(request));
  const sections = anna.page.locator(".section-card");
  await expect(sections.first()).toBeVisible();
  await expectAccessible(anna.page, "the sections of a large room");
  await press(sections.first());
  await expect(anna.page.locator("#section-heading")).toBeVisible();
  await expect(anna.page.getByRole("gridcell").first()).toBeVisible();
  await expectAccessible(anna.page, "a section of a large room");
  await anna.visit(await showWithArea(request));
  await expect(anna.page.getByTestId("area").first()).toBeVisible();
  await expectAccessible(anna.page, "places without numbers");
});

test("a booking: pending, paid, tickets, a friend's ticket, partial and full cancellation", async ({ request, newVisitor }) => {
  const [anna, luis] = [await newVisitor(CALM), await newVisitor(CALM)];
  const show = await claimShow(request, [["C", "6"], ["C", "7"]]);
  const hers = await anna.visit(show.id);
  await hers.hold(show.seat("C", "6"));
  await hers.hold(show.seat("C", "7"));
  await hers.openCart();
  await press(anna.page.getByTestId("for-friend"));
  await anna.page.locator("#friend-name").fill("Luís");
  await anna.page.locator("#friend-email").fill("luis@example.org");
  await hers.checkOut("Anna", "anna@example.org");
  await expectAccessible(anna.page, "the payment page");
  await payWith(anna.page, "pending_paid");
  await expectAccessible(anna.page, "a payment under way");
  await expectBookingState(anna.page, "CONFIRMED");
  await expectAccessible(anna.page, "a booking");
  await press(anna.page.getByTestId("sold-once-check"));
  // The page reads the list again after three seconds, if it was made before the sale.
  await expect(anna.page.getByTestId("sold-once-digest")).toBeVisible({ timeout: 20_000 });
  await expectAccessible(anna.page, "a booking whose seats were checked");
  const booking = bookingPath(anna.page);
  await press(anna.page.getByTestId("ticket-link"));
  await expect(anna.page.getByTestId("ticket")).toHaveCount(2);
  await expectAccessible(anna.page, "tickets");
  const code = await anna.page.getByTestId("ticket").first().locator(".ticket-code").innerText();
  await luis.page.goto(`/tickets/${code}`);
  await expect(luis.page.getByTestId("ticket")).toHaveCount(1);
  await expectAccessible(luis.page, "a friend's ticket");

  await anna.page.goto(booking);
  await press(anna.page.getByTestId("cancel-open"));
  await press(anna.page.getByTestId("cancel-seat").first());
  await expectAccessible(anna.page, "giving a seat back");
  await press(anna.page.getByTestId("cancel-confirm"));
  await expect(anna.page.locator(".booking-seats li")).toHaveCount(1);
  await expectAccessible(anna.page, "a seat given back");
  await press(anna.page.getByTestId("cancel-open"));
  await press(anna.page.getByTestId("cancel-confirm"));
  await expectBookingState(anna.page, "CANCELLED");
  await expect(anna.page.getByTestId("booking-state")).toHaveAttribute("data-money", "REFUNDED", { timeout: 20_000 });
  await expectAccessible(anna.page, "all given back");
  await luis.page.goto(`/tickets/${code}`);
  await expectAccessible(luis.page, "a cancelled ticket");
});

test("an unsuccessful booking", async ({ request, newVisitor }) => {
  const anna = await newVisitor(CALM);
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  await hers.hold(show.seat("C", "7"));
  await hers.checkOut("Anna", "anna@example.org");
  await payWith(anna.page, "declined");
  await expectBookingState(anna.page, "CANCELLED");
  await expectAccessible(anna.page, "a card that was declined");
  await press(anna.page.getByTestId("another-card"));
  await cancelPayment(anna.page);
  await expectBookingState(anna.page, "CANCELLED");
  await expectAccessible(anna.page, "a payment that did not go through");
  await openSeatsAgain(anna.page);
  await expect(anna.page.getByTestId("accept-offer")).toBeVisible();
  await expectAccessible(anna.page, "seats that are offered again");
});
