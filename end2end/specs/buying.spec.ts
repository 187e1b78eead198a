// Purchases with the common cards of the payment page. The rarer cards are in paying.spec.ts.
import { claimShow } from "../pages/catalogue.js";
import { mailsTo } from "../pages/mailbox.js";
import { annaHoldsC7, expectBookingState, expectNotReloaded, markPage, bookingPath, payWith, readTickets } from "../pages/paying.js";
import { press } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

test("a paid seat is sold for all visitors, and the ticket's QR code is readable", async ({ request, anna, ben }) => {
  const { c7, hers, his } = await annaHoldsC7(request, anna, ben);
  await hers.checkOut("Anna Ölçer 🎬", "anna@example.org");
  await his.expectSeat(c7, "locked");
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
  await his.expectSeat(c7, "booked");

  const codes = await readTickets(anna.page);
  expect(codes).toHaveLength(1);
  expect(codes[0]).toMatch(/^ROWLOCK1\|[0-9A-Z]{26}\|C7\|Anna Ölçer/);
  await expect(anna.page.getByTestId("ticket-seat")).toHaveText("C7");
  const entry = await anna.page.request.get((await anna.page.getByTestId("calendar").getAttribute("href")) ?? "");
  expect(entry.headers()["content-type"]).toContain("text/calendar");
  expect(await entry.text()).toMatch(/BEGIN:VEVENT[\s\S]*DESCRIPTION:C7/);
});

test("the checkout names the terms of sale, if the operator has set them", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"]]);
  const his = await ben.visit(show.id);
  await his.hold(show.seat("C", "6"));
  await his.openCart();
  await expect(ben.page.getByTestId("pay")).toBeVisible();
  await expect(his.cart.getByRole("link")).toHaveCount(0);

  const hers = await anna.visit(show.id, process.env.SHORT_HOLD_URL);
  await hers.hold(show.seat("C", "7"));
  await press(anna.page.getByTestId("extend"));
  await expect(hers.countdown).toHaveText(/^[23]:/);
  await hers.openCart();
  const terms = hers.cart.getByRole("link", { name: "terms", exact: true });
  await expect(terms).toHaveAttribute("href", "https://cinema.example/terms");
  await expect(terms).toHaveAttribute("target", "_blank");
  await expect(terms.locator("..")).toHaveText("By paying you accept the terms.");
});

test("each seat of a booking has a ticket, and one mail has all tickets", async ({ request, anna }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"]]);
  const page = await anna.visit(show.id);
  await page.hold(show.seat("C", "6"));
  await page.hold(show.seat("C", "7"));
  const email = `anna-${show.id}@example.org`;
  await page.checkOut("Anna", email);
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
  const codes = await readTickets(anna.page);
  // In reading order, also in rooms numbered from the right.
  expect(codes.map((code) => code.split("|")[2])).toEqual(["C6", "C7"]);
  expect(new Set(codes.map((code) => code.split("|")[1])).size).toBe(2);
  await expect(() => expect(mailsTo(email)).toHaveLength(1)).toPass({ timeout: 10_000 });
});

test("after a declined card the seats stay held, and another card buys them", async ({ request, anna, ben }) => {
  const { show, c7, hers, his } = await annaHoldsC7(request, anna, ben);
  // A unique address, so that declined cards of other tests do not count.
  await hers.checkOut("Anna", `anna-${show.id}@example.org`);
  await payWith(anna.page, "declined");
  await expectBookingState(anna.page, "CANCELLED");
  const state = anna.page.getByTestId("booking-state");
  await expect(state).toHaveAttribute("data-money", "FAILED");
  await expect(state).toHaveText("Your bank declined the card");
  await expect(anna.page.getByTestId("time-left")).toHaveText(/^\d+:\d\d left to pay$/);
  await his.expectSeat(c7, "locked");
  const declined = anna.page.url();
  await press(anna.page.getByTestId("another-card"));
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
  expect(anna.page.url()).not.toContain(new URL(declined).pathname);
  expect(await readTickets(anna.page)).toHaveLength(1);
  await his.expectSeat(c7, "booked");
});

test("a pending payment that succeeds updates the page without a reload", async ({ request, anna, ben }) => {
  const { c7, hers, his } = await annaHoldsC7(request, anna, ben);
  await hers.checkOut("Anna", "anna@example.org");
  await payWith(anna.page, "pending_paid");
  await expectBookingState(anna.page, "PAYMENT_PENDING");
  await markPage(anna.page);
  await his.expectSeat(c7, "locked");
  await expectBookingState(anna.page, "CONFIRMED");
  await expectNotReloaded(anna.page);
  await his.expectSeat(c7, "booked");
  expect(await readTickets(anna.page)).toHaveLength(1);
});

test("a pending payment that fails keeps the seats for another card", async ({ request, anna, ben }) => {
  const { show, c7, hers, his } = await annaHoldsC7(request, anna, ben);
  // A unique address, so that declined cards of other tests do not count.
  await hers.checkOut("Anna", `anna-${show.id}@example.org`);
  await payWith(anna.page, "pending_failed");
  await markPage(anna.page);
  await expectBookingState(anna.page, "CANCELLED");
  await expectNotReloaded(anna.page);
  await expect(anna.page.getByTestId("booking-state")).toHaveAttribute("data-money", "FAILED");
  await expect(anna.page.getByTestId("another-card")).toBeVisible();
  await his.expectSeat(c7, "locked");
});

test("another visitor cannot open the booking or its tickets", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const page = await anna.visit(show.id);
  await page.hold(show.seat("C", "7"));
  await page.checkOut("Anna", "anna@example.org");
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
  for (const path of ["", "/ticket", "/ticket.ics"]) {
    const answer = await ben.page.goto(bookingPath(anna.page) + path);
    expect(answer?.status()).toBe(404);
  }
});
