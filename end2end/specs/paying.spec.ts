// Payments with the rarer cards, double clicks, reloads, the back button and several tabs.
import type { APIRequestContext, Page } from "@playwright/test";

import { register } from "../pages/accounts.js";
import { NetworkProxy } from "../pages/network-proxy.js";
import { claimShow } from "../pages/catalogue.js";
import { mailsTo } from "../pages/mailbox.js";
import { annaHoldsC7, expectBookingState, expectNotReloaded, type Card, markPage, payWith, primaryButtons, readTickets } from "../pages/paying.js";
import { press } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

const RARE_CARDS: [Card, string][] = [
  ["slow", "a slow bank"],
  ["no_answer_paid", "a gateway without an answer whose payment succeeds"],
  ["duplicate_webhooks", "a gateway that sends each webhook three times"],
  ["late_webhook", "a gateway with a late webhook"],
  ["reordered_webhooks", "a gateway that sends webhooks out of order"],
];

for (const [card, words] of RARE_CARDS) {
  test(`${words}: one booking, one ticket, one mail`, async ({ request, anna, ben }) => {
    const { show, c7, hers, his } = await annaHoldsC7(request, anna, ben);
    const email = `anna-${show.id}@example.org`;
    await hers.checkOut("Anna", email);
    await payWith(anna.page, card);
    await expectBookingState(anna.page, "CONFIRMED");
    await his.expectSeat(c7, "booked");
    expect(await countEvents(anna.page, "payment_succeeded")).toBe(1);
    expect(await readTickets(anna.page)).toHaveLength(1);
    await expect(() => expect(mailsTo(email)).toHaveLength(1)).toPass({ timeout: 10_000 });
  });
}

test("a charge of another amount is refunded and the seat is free", async ({ request, anna, ben }) => {
  const { c7, hers, his } = await annaHoldsC7(request, anna, ben);
  await hers.checkOut("Anna", "anna@example.org");
  await payWith(anna.page, "another_amount");
  await expectBookingState(anna.page, "CANCELLED");
  await expect(anna.page.getByTestId("booking-state")).toHaveAttribute("data-money", "REFUNDED", { timeout: 20_000 });
  await his.expectSeat(c7, "available");
});

test("cancelling on the payment page charges nothing and frees the seat", async ({ request, anna, ben }) => {
  const { c7, hers, his } = await annaHoldsC7(request, anna, ben);
  await hers.checkOut("Anna", "anna@example.org");
  await press(anna.page.locator("#cancel"));
  await anna.page.waitForURL(/\/bookings\/[0-9a-f-]{36}$/);
  await expectBookingState(anna.page, "CANCELLED");
  await expect(anna.page.getByTestId("booking-state")).toHaveAttribute("data-money", "FAILED");
  await expect(anna.page.getByTestId("booking-state")).toHaveText("You cancelled the payment");
  await expect(anna.page.getByTestId("booking-story").locator("li").last()).toContainText("You cancelled the payment");
  await his.expectSeat(c7, "available");
});

test("a double click on Pay on both pages charges once", async ({ request, anna }) => {
  const show = await claimShow(request);
  const page = await anna.visit(show.id);
  await page.hold(show.seat("C", "7"));
  const email = `anna-${show.id}@example.org`;
  await page.fillDetails("Anna", email);
  await anna.page.getByTestId("pay").dblclick();
  await expect(anna.page.locator("#pay")).toBeVisible();
  await anna.page.locator("#pay").dblclick();
  // The second click may replace the first one's navigation.
  await expect(anna.page).toHaveURL(/\/bookings\//);
  await expectBookingState(anna.page, "CONFIRMED");
  for (const event of ["created", "payment_submitted", "payment_succeeded", "seats_sold"]) {
    expect(await countEvents(anna.page, event), event).toBe(1);
  }
  expect(await readTickets(anna.page)).toHaveLength(1);
  await expect(() => expect(mailsTo(email)).toHaveLength(1)).toPass({ timeout: 10_000 });
});

test("a reload at every step changes nothing", async ({ request, anna, ben }) => {
  const { c7, hers, his } = await annaHoldsC7(request, anna, ben);
  await anna.page.reload();
  await hers.expectSeat(c7, "mine");
  await expect(hers.heldSeats()).toHaveCount(1);

  // Typed values are kept.
  await hers.fillDetails("Anna", "anna@example.org");
  const [forFriend, ifLate] = [anna.page.getByTestId("for-friend"), anna.page.getByTestId("if-late")];
  await press(forFriend);
  await anna.page.locator("#friend-name").fill("Ben");
  await press(anna.page.locator(".details-late summary"));
  await ifLate.selectOption("refund");
  await anna.page.reload();
  await hers.openCart();
  await expect(anna.page.locator("#buyer-name")).toHaveValue("Anna");
  await expect(anna.page.locator("#buyer-email")).toHaveValue("anna@example.org");
  await expect(forFriend).toBeChecked();
  await expect(anna.page.locator("#friend-name")).toHaveValue("Ben");
  await expect(ifLate).toHaveValue("refund");
  await press(forFriend);
  await expect(anna.page.locator("#friend-name")).toHaveCount(0);
  await hers.checkOut("Anna", "anna@example.org");
  await anna.page.reload();
  await expect(anna.page.locator("#pay")).toBeVisible();
  await his.expectSeat(c7, "locked");

  await payWith(anna.page, "pending_paid");
  await expectBookingState(anna.page, "PAYMENT_PENDING");
  // With a pending payment no further card is requested.
  await expect(anna.page.getByTestId("booking-state")).toHaveText("Your bank is checking the payment");
  await expect(anna.page.getByTestId("pay-link")).toHaveCount(0);
  await anna.page.reload();
  await expectBookingState(anna.page, "CONFIRMED");
  await anna.page.reload();
  await expectBookingState(anna.page, "CONFIRMED");
  expect(await countEvents(anna.page, "payment_succeeded")).toBe(1);
  // The stored form values are deleted.
  await expect.poll(() => anna.page.evaluate(() => sessionStorage.getItem("typed-details"))).toBeNull();

  const [code] = await readTickets(anna.page);
  await anna.page.reload();
  await expect(anna.page.getByTestId("ticket-seat")).toHaveText("C7");
  expect(code).toMatch(/\|C7\|/);
});

test("a friend's name survives a reload but not the end of the session", async ({ request, anna }) => {
  const show = await claimShow(request, [["C", "7"], ["C", "8"]]);
  await register(anna.page, "Anna", `anna-${show.id}@example.org`);
  const hers = await anna.visit(show.id);
  await hers.hold(show.seat("C", "7"));
  await hers.openCart();
  const [forFriend, friendName] = [anna.page.getByTestId("for-friend"), anna.page.locator("#friend-name")];
  await press(forFriend);
  await friendName.fill("Ben");
  await anna.page.reload();
  await hers.openCart();
  await expect(anna.page.locator("#buyer-name")).toHaveValue("Anna");
  await expect(forFriend).toBeChecked();
  await expect(friendName).toHaveValue("Ben");

  // The session ends without a sign-out; the tab's storage stays.
  await anna.context.clearCookies();
  await anna.page.reload();
  await hers.waitUntilLive();
  await hers.hold(show.seat("C", "8"));
  await hers.openCart();
  await expect(anna.page.locator("#buyer-name")).toHaveValue("");
  await expect(forFriend).not.toBeChecked();
});

test("a signed-in buyer's choice for a late payment is kept for another card", async ({ request, anna }) => {
  const show = await claimShow(request);
  await register(anna.page, "Anna", `anna-${show.id}@example.org`);
  const hers = await anna.visit(show.id);
  await hers.hold(show.seat("C", "7"));
  await hers.openCart();
  await press(anna.page.locator(".details-late summary"));
  await anna.page.getByTestId("if-late").selectOption("refund");
  await press(anna.page.getByTestId("pay"));
  await payWith(anna.page, "declined");
  await expectBookingState(anna.page, "CANCELLED");
  const asked = anna.page.waitForRequest("**/api/v1/bookings");
  await press(anna.page.getByTestId("another-card"));
  expect((await asked).postDataJSON()).toMatchObject({ if_late: "refund" });
  await expect(anna.page.locator("#pay")).toBeVisible();
});

test("Escape, Back and a focus behind it close the sheet of a phone, and the seats stay held", async ({ request, anna }) => {
  test.skip(test.info().project.name !== "phone", "only a phone has the sheet");
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  await hers.hold(show.seat("C", "7"));
  const [name, toForm] = [anna.page.locator("#buyer-name"), anna.page.getByTestId("continue")];
  const seat = anna.page.locator('[role="gridcell"][tabindex="0"]');
  const open = async (): Promise<void> => {
    await expect(toForm).toHaveAttribute("aria-expanded", "false");
    await press(toForm);
    await expect(name).toBeFocused();
  };
  await markPage(anna.page);
  await open();
  await anna.page.keyboard.press("Escape");
  await expect(name).toBeHidden();
  await expect(seat).toBeFocused();
  await expect.poll(() => anna.page.evaluate(() => history.state as unknown), "its entry is left").toBeNull();

  await open();
  await anna.page.goBack();
  await expect(name).toBeHidden();
  await expect(seat).toBeFocused();

  await open();
  await seat.focus();
  await expect(name).toBeHidden();
  await open();
  await anna.page.goBack();
  await expect(name).toBeHidden();
  await expectNotReloaded(anna.page);
  await expect(hers.heldSeats()).toHaveCount(1);

  await open();
  await anna.page.reload();
  await hers.waitUntilLive();
  await hers.expectSeat(show.seat("C", "7"), "mine");
  await hers.checkOut("Anna", "anna@example.org");
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
});

test("the back button leaves every step and never causes a second payment", async ({ request, anna, ben }) => {
  const { show, c7, hers, his } = await annaHoldsC7(request, anna, ben);
  await hers.checkOut("Anna", "anna@example.org");

  // From the payment page: the seat is still held, and a link leads to the pending payment.
  await anna.page.goBack();
  await hers.waitUntilLive();
  await hers.expectSeat(c7, "mine");
  await expect(anna.page.getByTestId("to-booking")).toBeVisible();
  await expect(primaryButtons(anna.page)).toHaveCount(1);
  await press(anna.page.getByTestId("to-booking"));
  await expectBookingState(anna.page, "PAYMENT_PENDING");
  await expect(anna.page.getByTestId("booking-state")).toHaveText("The seats are still yours");
  await expect(anna.page.getByTestId("time-left")).toHaveText(/^\d+:\d\d left to pay$/);
  await expect(primaryButtons(anna.page)).toHaveCount(1);
  await press(anna.page.getByTestId("pay-link"));
  await expect(anna.page.locator("#pay")).toBeVisible();
  await his.expectSeat(c7, "locked");
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
  const booking = anna.page.url();

  // From the booking: the payment page shows that it is paid and links back.
  await anna.page.goBack();
  await expect(anna.page.locator("#outcome")).toHaveText("Paid");
  await expect(anna.page.locator("#pay")).toHaveCount(0);
  await press(anna.page.locator("#back"));
  await expectBookingState(anna.page, "CONFIRMED");
  expect(anna.page.url()).toBe(booking);

  // On the map the seat is sold, and the cart is empty.
  const again = await anna.visit(show.id);
  await again.expectSeat(c7, "booked");
  await expect(again.cartSeats).toHaveCount(0);
});

test("an interrupted navigation to the payment page leaves a link to the booking", async ({ request, anna }) => {
  const show = await claimShow(request);
  const page = await anna.visit(show.id);
  await page.hold(show.seat("C", "7"));
  await page.fillDetails("Anna", "anna@example.org");
  // Status 204 keeps the browser on the page, like its stop button.
  const isPageToBe = (url: URL): boolean => !url.pathname.startsWith("/api/");
  await anna.page.route(isPageToBe, async (route) => {
    if (route.request().isNavigationRequest()) await route.fulfill({ status: 204 });
    else await route.continue();
  });
  await press(anna.page.getByTestId("pay"));
  const onward = anna.page.getByTestId("to-booking");
  await expect(onward).toBeVisible();
  await expect(anna.page.getByTestId("pay")).toHaveCount(0);
  await expect(primaryButtons(anna.page)).toHaveCount(1);
  await anna.page.unroute(isPageToBe);
  await press(onward);
  await expectBookingState(anna.page, "PAYMENT_PENDING");
});

test("two tabs that pay for one hold concurrently create one booking and one payment", async ({ request, anna }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const first = await anna.visit(show.id);
  await first.hold(c7);
  const tab = await anna.newTab();
  const second = await tab.visit(show.id);
  await second.expectSeat(c7, "mine");
  await first.fillDetails("Anna", "anna@example.org");
  await second.fillDetails("Anna", "anna@example.org");
  // In the slower tab the button may already be replaced by the link to the booking.
  const payOrFollow = (page: Page): Promise<void> => press(page.getByTestId("pay").or(page.getByTestId("to-booking")));
  await Promise.all([payOrFollow(anna.page), payOrFollow(tab.page)]);
  // One tab started the payment; the other one continues from the booking.
  for (const page of [anna.page, tab.page]) {
    const onward = page.getByTestId("pay-link");
    await expect(page.locator("#pay").or(onward)).toBeVisible();
    if (await onward.isVisible()) await press(onward);
    await expect(page.locator("#pay")).toBeVisible();
  }
  // Both tabs show the same payment.
  expect(tab.page.url()).toBe(anna.page.url());
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
  await tab.page.reload();
  await expect(tab.page.locator("#outcome")).toHaveText("Paid");
  expect(await countEvents(anna.page, "payment_submitted")).toBe(1);
  expect(await countEvents(anna.page, "payment_succeeded")).toBe(1);
});

test("a second tab follows the payment of the first", async ({ request, anna }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const first = await anna.visit(show.id);
  await first.hold(c7);
  const tab = await anna.newTab();
  const second = await tab.visit(show.id);
  await second.expectSeat(c7, "mine");
  await first.checkOut("Anna", "anna@example.org");
  await second.openCart();
  await expect(tab.page.getByTestId("to-booking")).toBeVisible();
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
  await second.expectSeat(c7, "booked");
  await expect(second.cartSeats).toHaveCount(0);
});

test("a seat added in another tab requires confirmation of the new total before payment", async ({ request, anna }) => {
  const show = await claimShow(request, [["C", "7"], ["C", "8"]]);
  const proxy = await NetworkProxy.start();
  const first = await anna.visit(show.id, proxy.url);
  await first.hold(show.seat("C", "7"));
  await first.fillDetails("Anna", "anna@example.org");
  const tab = await anna.newTab();
  const second = await tab.visit(show.id);
  await expect(second.heldSeats()).toHaveCount(1);

  // The first tab is offline until Pay is pressed, so it misses the change.
  anna.allowNetworkErrors();
  await proxy.disconnect();
  await second.hold(show.seat("C", "8"));
  await press(anna.page.getByTestId("pay"));
  await proxy.reconnect();
  await expect(anna.page.getByTestId("pay-error")).toContainText("The price has changed");
  await expect(first.heldSeats()).toHaveCount(2);
  await expect(first.total).toHaveText(await second.total.innerText());
  await press(anna.page.getByTestId("pay"));
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
  expect(await readTickets(anna.page)).toHaveLength(2);
});

test("an error above the button is scrolled into view in the sheet of a phone", async ({ request, anna }) => {
  test.skip(test.info().project.name !== "phone", "only a phone has the sheet");
  const show = await claimShow(request);
  const page = await anna.visit(show.id);
  await page.hold(show.seat("C", "7"));
  await page.fillDetails("Anna", "anna@example.org");
  // As low as with a keyboard on the screen.
  await anna.page.setViewportSize({ width: 390, height: 320 });
  await anna.page.route("**/api/v1/bookings", (route) =>
    route.fulfill({
      status: 429,
      contentType: "application/problem+json",
      json: { type: "/docs/problems#too_many_declines", title: "Declined", status: 429, detail: "", code: "too_many_declines" },
    }),
  );
  await press(anna.page.getByTestId("pay"));
  await expect(anna.page.getByTestId("pay-error")).toContainText("Several payments were declined");
  await expect(anna.page.getByTestId("pay-error")).toBeInViewport();
});

/** Simulates a server of the previous version, which rejects `pay`. Returns the log of requests. */
async function simulateOlderServer(page: Page, total: (asWritten: number) => number = (minor) => minor): Promise<string[]> {
  const asked: string[] = [];
  await page.route("**/api/v1/bookings", async (route) => {
    const atOnce = "pay" in (route.request().postDataJSON() as object);
    asked.push(atOnce ? "at once" : "in two");
    if (atOnce) {
      return route.fulfill({
        status: 400,
        contentType: "application/problem+json",
        json: { type: "/docs/problems#malformed", title: "The request could not be read", status: 400, detail: "unknown field `pay`", code: "malformed" },
      });
    }
    const response = await route.fetch();
    const booking = (await response.json()) as { total: { minor: number } };
    booking.total.minor = total(booking.total.minor);
    return route.fulfill({ response, json: booking });
  });
  await page.route("**/api/v1/bookings/*/confirm", (route) => {
    asked.push("paid");
    return route.continue();
  });
  return asked;
}

test("a page newer than the server falls back to two requests", async ({ request, anna }) => {
  const show = await claimShow(request);
  const page = await anna.visit(show.id);
  await page.hold(show.seat("C", "7"));
  await page.fillDetails("Anna", "anna@example.org");
  const asked = await simulateOlderServer(anna.page);
  anna.allowNetworkErrors();
  await press(anna.page.getByTestId("pay"));
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
  expect(asked).toEqual(["at once", "in two", "paid"]);
});

test("a page newer than the server does not pay a sum other than shown", async ({ request, anna }) => {
  const show = await claimShow(request);
  const page = await anna.visit(show.id);
  await page.hold(show.seat("C", "7"));
  await page.fillDetails("Anna", "anna@example.org");
  const asked = await simulateOlderServer(anna.page, (minor) => minor + 100);
  anna.allowNetworkErrors();
  await press(anna.page.getByTestId("pay"));
  await expect(anna.page.getByTestId("pay-error")).toContainText("The price has changed");
  await expect(page.heldSeats()).toHaveCount(1);
  expect(asked).toEqual(["at once", "in two"]);
});

/** Returns how often an event is in the history of the open booking. */
async function countEvents(page: Page, event: string): Promise<number> {
  return (await story(page.request, page.url())).filter((line) => line.event === event).length;
}

async function story(request: APIRequestContext, url: string): Promise<{ event: string }[]> {
  const id = /\/bookings\/([0-9a-f-]{36})/.exec(url)?.[1];
  const answer = await request.get(`/api/v1/bookings/${id}/events`);
  expect(answer.status()).toBe(200);
  return (await answer.json()) as { event: string }[];
}
