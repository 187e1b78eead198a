// Paying, and everything people do while paying: rarer cards, impatience, reloads, the back button, tabs.
import type { APIRequestContext, Page } from "@playwright/test";

import { register } from "../pages/accounts.js";
import { Cable } from "../pages/cable.js";
import { claimShow } from "../pages/catalogue.js";
import { mailsTo } from "../pages/mailbox.js";
import { annaHoldsC7, bookingBecomes, type Card, payWith, primaryButtons, readTickets } from "../pages/paying.js";
import { press } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

const RARER: [Card, string][] = [
  ["slow", "a bank that is slow to answer"],
  ["no_answer_paid", "a gateway that never answers, and is paid all the same"],
  ["duplicate_webhooks", "a gateway that says everything three times"],
  ["late_webhook", "a gateway whose message comes long afterwards"],
  ["reordered_webhooks", "a gateway that says paid, and then that an earlier try failed"],
];

for (const [card, words] of RARER) {
  test(`${words}: one booking, one ticket, one mail`, async ({ request, anna, ben }) => {
    const { show, c7, hers, his } = await annaHoldsC7(request, anna, ben);
    const email = `anna-${show.id}@example.org`;
    await hers.checkOut("Anna", email);
    await payWith(anna.page, card);
    await bookingBecomes(anna.page, "CONFIRMED");
    await his.sees(c7, "booked");
    expect(await timesInStory(anna.page, "payment_succeeded")).toBe(1);
    expect(await readTickets(anna.page)).toHaveLength(1);
    await expect(() => expect(mailsTo(email)).toHaveLength(1)).toPass({ timeout: 10_000 });
  });
}

test("a bank that takes another amount gives it back, and the seat is free", async ({ request, anna, ben }) => {
  const { c7, hers, his } = await annaHoldsC7(request, anna, ben);
  await hers.checkOut("Anna", "anna@example.org");
  await payWith(anna.page, "another_amount");
  await bookingBecomes(anna.page, "CANCELLED");
  await expect(anna.page.getByTestId("booking-state")).toHaveAttribute("data-money", "REFUNDED", { timeout: 20_000 });
  await his.sees(c7, "available");
});

test("whoever gives up on the payment page pays nothing, and the seat is free", async ({ request, anna, ben }) => {
  const { c7, hers, his } = await annaHoldsC7(request, anna, ben);
  await hers.checkOut("Anna", "anna@example.org");
  await press(anna.page.locator("#cancel"));
  await anna.page.waitForURL(/\/bookings\/[0-9a-f-]{36}$/);
  await bookingBecomes(anna.page, "CANCELLED");
  await expect(anna.page.getByTestId("booking-state")).toHaveAttribute("data-money", "FAILED");
  await expect(anna.page.getByTestId("booking-state")).toHaveText("You stopped the payment");
  await expect(anna.page.getByTestId("booking-story").locator("li").last()).toContainText("You stopped the payment");
  await his.sees(c7, "available");
});

test("a double click on Pay, on both pages, pays once", async ({ request, anna }) => {
  const show = await claimShow(request);
  const page = await anna.visit(show.id);
  await page.hold(show.seat("C", "7"));
  const email = `anna-${show.id}@example.org`;
  await page.fillDetails("Anna", email);
  await anna.page.getByTestId("pay").dblclick();
  await expect(anna.page.locator("#pay")).toBeVisible();
  await anna.page.locator("#pay").dblclick();
  // The second click may take the first one's navigation over.
  await expect(anna.page).toHaveURL(/\/bookings\//);
  await bookingBecomes(anna.page, "CONFIRMED");
  for (const event of ["created", "payment_submitted", "payment_succeeded", "seats_sold"]) {
    expect(await timesInStory(anna.page, event), event).toBe(1);
  }
  expect(await readTickets(anna.page)).toHaveLength(1);
  await expect(() => expect(mailsTo(email)).toHaveLength(1)).toPass({ timeout: 10_000 });
});

test("a reload at every step changes nothing", async ({ request, anna, ben }) => {
  const { c7, hers, his } = await annaHoldsC7(request, anna, ben);
  await anna.page.reload();
  await hers.sees(c7, "mine");
  await expect(hers.held()).toHaveCount(1);

  // What was typed is still there.
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
  await his.sees(c7, "locked");

  await payWith(anna.page, "pending_paid");
  await bookingBecomes(anna.page, "PAYMENT_PENDING");
  // Nobody who gave a card is asked for one more.
  await expect(anna.page.getByTestId("booking-state")).toHaveText("Your bank is checking the payment");
  await expect(anna.page.getByTestId("pay-link")).toHaveCount(0);
  await anna.page.reload();
  await bookingBecomes(anna.page, "CONFIRMED");
  await anna.page.reload();
  await bookingBecomes(anna.page, "CONFIRMED");
  expect(await timesInStory(anna.page, "payment_succeeded")).toBe(1);
  // The next one at this computer does not read who bought.
  await expect.poll(() => anna.page.evaluate(() => sessionStorage.getItem("typed-details"))).toBeNull();

  const [code] = await readTickets(anna.page);
  await anna.page.reload();
  await expect(anna.page.getByTestId("ticket-seat")).toHaveText("C7");
  expect(code).toMatch(/\|C7\|/);
});

test("whoever is signed in and books for a friend finds the friend again after a reload, and the next one at this computer does not", async ({ request, anna }) => {
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

  // Her session ends without a word, as sessions do; what the tab keeps stays with the tab.
  await anna.context.clearCookies();
  await anna.page.reload();
  await hers.live();
  await hers.hold(show.seat("C", "8"));
  await hers.openCart();
  await expect(anna.page.locator("#buyer-name")).toHaveValue("");
  await expect(forFriend).not.toBeChecked();
});

test("the back button leads out of every step and never to a second payment", async ({ request, anna, ben }) => {
  const { show, c7, hers, his } = await annaHoldsC7(request, anna, ben);
  await hers.checkOut("Anna", "anna@example.org");

  // From the payment page: the seat is still hers, and the way on is the payment that began.
  await anna.page.goBack();
  await hers.live();
  await hers.sees(c7, "mine");
  await expect(anna.page.getByTestId("to-booking")).toBeVisible();
  await expect(primaryButtons(anna.page)).toHaveCount(1);
  await press(anna.page.getByTestId("to-booking"));
  await bookingBecomes(anna.page, "PAYMENT_PENDING");
  await expect(anna.page.getByTestId("booking-state")).toHaveText(/^The seats are still yours until \d\d:\d\d$/);
  await expect(primaryButtons(anna.page)).toHaveCount(1);
  await press(anna.page.getByTestId("pay-link"));
  await expect(anna.page.locator("#pay")).toBeVisible();
  await his.sees(c7, "locked");
  await payWith(anna.page, "paid");
  await bookingBecomes(anna.page, "CONFIRMED");
  const booking = anna.page.url();

  // From the booking: the payment page says that it is paid, and leads back.
  await anna.page.goBack();
  await expect(anna.page.locator("#outcome")).toHaveText("Paid");
  await expect(anna.page.locator("#pay")).toHaveCount(0);
  await press(anna.page.locator("#back"));
  await bookingBecomes(anna.page, "CONFIRMED");
  expect(anna.page.url()).toBe(booking);

  // On the map the seat is sold, and the cart is empty.
  const again = await anna.visit(show.id);
  await again.sees(c7, "booked");
  await expect(again.cartSeats).toHaveCount(0);
});

test("whoever is stopped on the way to the payment page finds the way to the booking", async ({ request, anna }) => {
  const show = await claimShow(request);
  const page = await anna.visit(show.id);
  await page.hold(show.seat("C", "7"));
  await page.fillDetails("Anna", "anna@example.org");
  // An answer without a page: the browser stays where it is, as after its Stop.
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
  await bookingBecomes(anna.page, "PAYMENT_PENDING");
});

test("two tabs pay for one hold at once: one booking, one payment", async ({ request, anna }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const first = await anna.visit(show.id);
  await first.hold(c7);
  const tab = await anna.newTab();
  const second = await tab.visit(show.id);
  await second.sees(c7, "mine");
  await first.fillDetails("Anna", "anna@example.org");
  await second.fillDetails("Anna", "anna@example.org");
  // Whoever is a moment later may find the way to the booking that the other tab has begun where the button was.
  const payOrFollow = (page: Page): Promise<void> => press(page.getByTestId("pay").or(page.getByTestId("to-booking")));
  await Promise.all([payOrFollow(anna.page), payOrFollow(tab.page)]);
  // One of them began the payment; the other is led to the booking, and on from there.
  for (const page of [anna.page, tab.page]) {
    const onward = page.getByTestId("pay-link");
    await expect(page.locator("#pay").or(onward)).toBeVisible();
    if (await onward.isVisible()) await press(onward);
    await expect(page.locator("#pay")).toBeVisible();
  }
  // The gateway has one payment: both look at it.
  expect(tab.page.url()).toBe(anna.page.url());
  await payWith(anna.page, "paid");
  await bookingBecomes(anna.page, "CONFIRMED");
  await tab.page.reload();
  await expect(tab.page.locator("#outcome")).toHaveText("Paid");
  expect(await timesInStory(anna.page, "payment_submitted")).toBe(1);
  expect(await timesInStory(anna.page, "payment_succeeded")).toBe(1);
});

test("a second tab follows when the first begins to pay, and when it has paid", async ({ request, anna }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const first = await anna.visit(show.id);
  await first.hold(c7);
  const tab = await anna.newTab();
  const second = await tab.visit(show.id);
  await second.sees(c7, "mine");
  await first.checkOut("Anna", "anna@example.org");
  await second.openCart();
  await expect(tab.page.getByTestId("to-booking")).toBeVisible();
  await payWith(anna.page, "paid");
  await bookingBecomes(anna.page, "CONFIRMED");
  await second.sees(c7, "booked");
  await expect(second.cartSeats).toHaveCount(0);
});

test("whoever pays while another tab has taken one more seat is told the new total first, and pays that", async ({ request, anna }) => {
  const show = await claimShow(request, [["C", "7"], ["C", "8"]]);
  const cable = await Cable.lay();
  const first = await anna.visit(show.id, cable.url);
  await first.hold(show.seat("C", "7"));
  await first.fillDetails("Anna", "anna@example.org");
  const tab = await anna.newTab();
  const second = await tab.visit(show.id);
  await expect(second.held()).toHaveCount(1);

  // The first tab hears nothing of it: its network is away until it has been asked to pay.
  anna.mayBeCutOff();
  await cable.cut();
  await second.hold(show.seat("C", "8"));
  await press(anna.page.getByTestId("pay"));
  await cable.mend();
  await expect(anna.page.getByTestId("pay-error")).toContainText("The price has changed");
  await expect(first.held()).toHaveCount(2);
  await expect(first.total).toHaveText(await second.total.innerText());
  await press(anna.page.getByTestId("pay"));
  await payWith(anna.page, "paid");
  await bookingBecomes(anna.page, "CONFIRMED");
  expect(await readTickets(anna.page)).toHaveLength(2);
});

/** Lets a server of the version before answer, which does not know `pay`; what is asked of it is noted. */
async function meetsAnOlderServer(page: Page, total: (asWritten: number) => number = (minor) => minor): Promise<string[]> {
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

test("a page that is newer than the server that answers pays all the same", async ({ request, anna }) => {
  const show = await claimShow(request);
  const page = await anna.visit(show.id);
  await page.hold(show.seat("C", "7"));
  await page.fillDetails("Anna", "anna@example.org");
  const asked = await meetsAnOlderServer(anna.page);
  anna.mayBeCutOff();
  await press(anna.page.getByTestId("pay"));
  await payWith(anna.page, "paid");
  await bookingBecomes(anna.page, "CONFIRMED");
  expect(asked).toEqual(["at once", "in two", "paid"]);
});

test("a page that is newer than the server that answers pays no other sum than it shows", async ({ request, anna }) => {
  const show = await claimShow(request);
  const page = await anna.visit(show.id);
  await page.hold(show.seat("C", "7"));
  await page.fillDetails("Anna", "anna@example.org");
  const asked = await meetsAnOlderServer(anna.page, (minor) => minor + 100);
  anna.mayBeCutOff();
  await press(anna.page.getByTestId("pay"));
  await expect(anna.page.getByTestId("pay-error")).toContainText("The price has changed");
  await expect(page.held()).toHaveCount(1);
  expect(asked).toEqual(["at once", "in two"]);
});

/** How often something happened to the booking this page shows. */
async function timesInStory(page: Page, event: string): Promise<number> {
  return (await story(page.request, page.url())).filter((line) => line.event === event).length;
}

async function story(request: APIRequestContext, url: string): Promise<{ event: string }[]> {
  const id = /\/bookings\/([0-9a-f-]{36})/.exec(url)?.[1];
  const answer = await request.get(`/api/v1/bookings/${id}/events`);
  expect(answer.status()).toBe(200);
  return (await answer.json()) as { event: string }[];
}
