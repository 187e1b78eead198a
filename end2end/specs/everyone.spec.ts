// Every state of every page, for everyone: with any eyes, hands and window. Once per size of screen.
import { randomUUID } from "node:crypto";

import { register } from "../pages/accounts.js";
import { claimShow, largestShow, showsToCome, showWithArea } from "../pages/catalogue.js";
import { closingShow } from "../pages/closing.js";
import { takeTheRest } from "../pages/crowd.js";
import { expectForEveryone } from "../pages/everyone.js";
import { bookingBecomes, lookForThemAgain, pathOf, payWith, stopPaying } from "../pages/paying.js";
import { press, ShowPage } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

// A colour on its way to another has no contrast to speak of.
const CALM = { reducedMotion: "reduce" } as const;
// A look by axe takes seconds in a large room, and most tests take several.
test.setTimeout(300_000);

test("pages one browses by", async ({ request, newVisitor }) => {
  const { page } = await newVisitor(CALM);
  const [show] = await showsToCome(request);
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
    ["an address nobody can read", "/search?date=yesterday"],
    ["the API's problems", "/docs/problems"],
  ] as const;
  for (const [name, path] of paths) {
    await page.goto(path);
    await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
    await expectForEveryone(page, name);
  }
});

test("an account: registering, signing in, one's own page, a forgotten password", async ({ newVisitor }) => {
  const { page } = await newVisitor(CALM);
  const email = `anna-${randomUUID()}@example.org`;
  for (const path of ["/register", "/login", "/reset", "/bookings/find"]) {
    await page.goto(path);
    await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
    await expectForEveryone(page, path);
  }
  await page.goto("/login");
  await page.locator('input[name="email"]').fill(email);
  await page.locator('input[name="password"]').fill("not the password");
  await press(page.getByTestId("sign-in"));
  await expect(page.getByTestId("account-trouble")).toBeVisible();
  await expectForEveryone(page, "a wrong password");
  await register(page, "Anna", email);
  await expectForEveryone(page, "one's own page");
});

// From right to left, and with longer words.
for (const tag of ["ar", "de"] as const) {
  test(`pages and a show in another language: ${tag}`, async ({ request, newVisitor }) => {
    const { page } = await newVisitor({ ...CALM, locale: tag });
    const show = await claimShow(request);
    for (const path of ["/", "/search?q=zzzz-no-such-film", `/shows/${show.id}`]) {
      await page.goto(path);
      await expect(page.locator("html")).toHaveAttribute("lang", tag);
      if (path.startsWith("/shows/")) {
        const show = new ShowPage(page);
        await show.live();
        await show.dressed();
      }
      await expectForEveryone(page, `${path} in ${tag}`);
    }
  });
}

test("a show: free, found, held, checked out wrongly, for a friend", async ({ request, newVisitor }) => {
  const anna = await newVisitor(CALM);
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  await expectForEveryone(anna.page, "seats that are free");
  await press(anna.page.getByRole("button", { name: "List of seats" }));
  await expectForEveryone(anna.page, "the list of seats");
  await press(anna.page.getByRole("button", { name: "List of seats" }));
  await press(anna.page.getByTestId("party-find"));
  await expect(hers.held()).toHaveCount(2);
  await expectForEveryone(anna.page, "seats that are held");
  await hers.openCart();
  await press(anna.page.getByTestId("pay"));
  await expect(anna.page.locator("#buyer-name-error")).not.toBeEmpty();
  await expectForEveryone(anna.page, "a form with mistakes");
  await press(anna.page.getByTestId("for-friend"));
  await press(anna.page.getByText("If your payment arrives too late"));
  await expectForEveryone(anna.page, "tickets for a friend");
});

test("a show: another's seat, a wish to be told, no network", async ({ request, newVisitor }) => {
  const [anna, ben] = [await newVisitor(CALM), await newVisitor(CALM)];
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  await hers.hold(c7);
  const his = await ben.visit(show.id);
  await his.sees(c7, "locked");
  await his.touch(c7);
  await expect(his.message).toContainText("C7");
  await expectForEveryone(ben.page, "a seat that another holds");
  await press(ben.page.getByTestId("watch-seat"));
  await hers.letGo(c7);
  await expect(ben.page.getByTestId("accept-offer")).toBeVisible();
  await expectForEveryone(ben.page, "a seat that is free again");
  ben.mayBeCutOff();
  await ben.context.setOffline(true);
  await expect(ben.page.getByTestId("live")).toHaveAttribute("data-state", "offline");
  await expectForEveryone(ben.page, "no network");
});

test("a show: the time ran out", async ({ request, newVisitor }) => {
  const anna = await newVisitor(CALM);
  const show = await claimShow(request);
  const hers = await anna.visit(show.id, process.env.SHORT_HOLD_URL);
  await hers.hold(show.seat("C", "7"));
  await expectForEveryone(anna.page, "little time left");
  await expect(anna.page.getByTestId("ask-again")).toBeVisible();
  await expectForEveryone(anna.page, "the time is up");
});

test("a show: sold out, and the line that waits", async ({ request, newVisitor }) => {
  const anna = await newVisitor(CALM);
  const show = await claimShow(request, [], { mostSeats: 100 });
  await takeTheRest(show);
  await anna.visit(show.id);
  const box = anna.page.getByTestId("waiting-list");
  await expect(box).toBeVisible();
  await expectForEveryone(anna.page, "nothing is free");
  await press(anna.page.getByTestId("waiting-join"));
  await expect(box.getByRole("alert")).not.toBeEmpty();
  await expectForEveryone(anna.page, "a waiting list without an address");
  await anna.page.locator("#waiting-email").fill("anna@example.org");
  await press(anna.page.getByTestId("waiting-join"));
  await expect(anna.page.getByTestId("waiting-place")).toBeVisible();
  await expectForEveryone(anna.page, "a place in line");
});

test("a show: no longer on sale", async ({ newVisitor }) => {
  const { page } = await newVisitor(CALM);
  await page.goto(`/shows/${closingShow()}`);
  await expect(page.getByRole("heading", { level: 2 })).toHaveText("Online sales for this show have closed");
  await expectForEveryone(page, "the doors are closing");
});

test("a large room, and places without numbers", async ({ request, newVisitor }) => {
  const anna = await newVisitor(CALM);
  await anna.visit(await largestShow(request));
  const sections = anna.page.locator(".section-card");
  await expect(sections.first()).toBeVisible();
  await expectForEveryone(anna.page, "the sections of a large room");
  await press(sections.first());
  await expect(anna.page.locator("#section-heading")).toBeVisible();
  await expect(anna.page.getByRole("gridcell").first()).toBeVisible();
  await expectForEveryone(anna.page, "a section of a large room");
  await anna.visit(await showWithArea(request));
  await expect(anna.page.getByTestId("area").first()).toBeVisible();
  await expectForEveryone(anna.page, "places without numbers");
});

test("a booking: being paid, paid, ticket, friend's ticket, part of it back, all of it back", async ({ request, newVisitor }) => {
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
  await expectForEveryone(anna.page, "the payment page");
  await payWith(anna.page, "pending_paid");
  await expectForEveryone(anna.page, "a payment under way");
  await bookingBecomes(anna.page, "CONFIRMED");
  await expectForEveryone(anna.page, "a booking");
  const booking = pathOf(anna.page);
  await press(anna.page.getByTestId("ticket-link"));
  await expect(anna.page.getByTestId("ticket")).toHaveCount(2);
  await expectForEveryone(anna.page, "tickets");
  const code = await anna.page.getByTestId("ticket").first().locator(".ticket-code").innerText();
  await luis.page.goto(`/tickets/${code}`);
  await expect(luis.page.getByTestId("ticket")).toHaveCount(1);
  await expectForEveryone(luis.page, "a friend's ticket");

  await anna.page.goto(booking);
  await press(anna.page.getByTestId("cancel-open"));
  await press(anna.page.getByTestId("cancel-seat").first());
  await expectForEveryone(anna.page, "giving a seat back");
  await press(anna.page.getByTestId("cancel-confirm"));
  await expect(anna.page.locator(".booking-seats li")).toHaveCount(1);
  await expectForEveryone(anna.page, "a seat given back");
  await press(anna.page.getByTestId("cancel-open"));
  await press(anna.page.getByTestId("cancel-confirm"));
  await bookingBecomes(anna.page, "CANCELLED");
  await expect(anna.page.getByTestId("booking-state")).toHaveAttribute("data-money", "REFUNDED", { timeout: 20_000 });
  await expectForEveryone(anna.page, "all given back");
  await luis.page.goto(`/tickets/${code}`);
  await expectForEveryone(luis.page, "a ticket that is none any more");
});

test("a booking that came to nothing", async ({ request, newVisitor }) => {
  const anna = await newVisitor(CALM);
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  await hers.hold(show.seat("C", "7"));
  await hers.checkOut("Anna", "anna@example.org");
  await payWith(anna.page, "declined");
  await bookingBecomes(anna.page, "CANCELLED");
  await expectForEveryone(anna.page, "a card that was declined");
  await press(anna.page.getByTestId("another-card"));
  await stopPaying(anna.page);
  await bookingBecomes(anna.page, "CANCELLED");
  await expectForEveryone(anna.page, "a payment that did not go through");
  await lookForThemAgain(anna.page);
  await expect(anna.page.getByTestId("accept-offer")).toBeVisible();
  await expectForEveryone(anna.page, "seats that are offered again");
});
