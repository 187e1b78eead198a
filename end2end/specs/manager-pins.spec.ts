// A manager's PIN approves acts of a clerk that could hide cash. A wrong PIN is refused, and nothing is lost.
import type { Page } from "@playwright/test";

import { expectAccessible, expectFitsPhone } from "../pages/accessibility.js";
import { waitForMailedLink } from "../pages/accounts.js";
import { claimShow } from "../pages/catalogue.js";
import { cashInTill, choose, readBooking, sellForCash, signInAsNewClerk, use } from "../pages/counter.js";
import { expectBookingState } from "../pages/paying.js";
import { press, ShowPage } from "../pages/show.js";
import { PIN, signInAsManagerWithPin } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";

const CALM = { reducedMotion: "reduce" } as const;
const WRONG_PIN = "135790";
// Part of the server's refusal of a wrong PIN, and of the page's message about it.
const REFUSAL = "Nothing was done.";
test.setTimeout(120_000);

/**
 * Opens an exchange on a page that takes the booking's show as begun, and the theatre as one without any PIN if
 * `hasManagers` is false. Sales close five minutes before the start, so no story can sell a seat and wait for it, and other
 * stories set PINs. `server/rowlock/tests/it/box_office/exchange.rs` tests the server with such a show.
 */
async function openExchangeOfBegunShow(page: Page, path: string, hasManagers: boolean): Promise<void> {
  // Of several such scripts the last one decides.
  await page.addInitScript((value) => Object.assign(window, { hasManagers: value }), hasManagers);
  await page.goto(path);
  await new ShowPage(page).waitUntilLive();
  await expect(page.getByTestId("exchange-begun")).toBeVisible();
}

/** Changes the properties of the exchange that the server rendered, before its island starts. */
async function changeExchanges(page: Page): Promise<void> {
  await page.addInitScript(() => {
    new MutationObserver((_, observer) => {
      const island = document.querySelector("[data-props*='\"has_begun\":false']");
      if (island === null) return;
      observer.disconnect();
      let props = (island.getAttribute("data-props") ?? "").replace('"has_begun":false', '"has_begun":true');
      if (!(window as unknown as { hasManagers: boolean }).hasManagers) props = props.replace(/"managers":\[[^\]]*\]/, '"managers":[]');
      island.setAttribute("data-props", props);
    }).observe(document, { childList: true, subtree: true });
  });
}

/** Cancels a booking as its buyer does without an account: both links are mailed. */
async function cancelByMail(page: Page, reference: string, email: string): Promise<void> {
  await page.goto("/bookings/find");
  await page.locator("#reference").fill(reference);
  await page.locator('input[name="email"]').fill(email);
  await press(page.getByTestId("find-booking"));
  await expect(page.getByTestId("find-sent")).toBeVisible();
  await page.goto(await waitForMailedLink(`Your booking ${reference}`, email, "bookings/by-mail/"));
  await press(page.getByTestId("cancel-by-mail"));
  await expect(page.getByTestId("cancel-mailed")).toBeVisible();
  await page.goto(await waitForMailedLink(`Cancel booking ${reference}?`, email, "bookings/cancel/"));
  await press(page.getByTestId("cancel-now"));
  await expectBookingState(page, "CANCELLED");
}

test("an exchange after the show has begun needs a manager's PIN, and a wrong PIN loses nothing", async ({ request, newVisitor }) => {
  const show = await claimShow(request);
  const { theatre } = show;
  const other = await claimShow(request, [["C", "5"]], { theatre });
  const c5 = other.seat("C", "5");
  const manager = await signInAsManagerWithPin(request, theatre);
  const { page } = await newVisitor(CALM);
  await signInAsNewClerk(page, request, theatre);
  const old = await sellForCash(page.request, show, show.seat("C", "7"));
  const exchange = `/staff/${theatre}/box-office/shows/${other.id}?exchange=${old.id}`;
  const counter = new ShowPage(page);
  const [swap, trouble] = [page.getByTestId("swap"), page.getByTestId("counter-trouble")];
  const [managers, pin] = [page.locator("#swap-manager"), page.locator("#swap-pin")];

  await changeExchanges(page);
  // Without any manager's PIN the clerk reads who can help.
  await openExchangeOfBegunShow(page, exchange, false);
  await choose(page, c5);
  await expect(counter.heldSeats()).toHaveCount(1);
  await expect(page.getByTestId("no-managers")).toContainText("Refunds and some exchanges need a manager’s PIN");
  await expect(pin).toHaveCount(0);
  await expect(swap).toHaveAttribute("aria-disabled", "true");
  await expectAccessible(page, "an exchange without any manager's PIN");
  await expectFitsPhone(page, "an exchange without any manager's PIN");
  await use(page, page.locator(".cart-seat-remove").first());
  await expect(counter.heldSeats()).toHaveCount(0);

  await openExchangeOfBegunShow(page, exchange, true);
  await choose(page, c5);
  await expect(counter.heldSeats()).toHaveCount(1);
  await expect(page.getByTestId("difference")).toHaveAttribute("data-change", /^(more|even|back)$/);
  await expect(swap).toHaveAttribute("aria-disabled", "false");
  await use(page, swap);
  await expect(trouble).toContainText("a manager has to enter their PIN");
  await expect(pin).toBeFocused();
  await expect(pin).toHaveAttribute("aria-invalid", "true");

  await managers.selectOption(manager);
  await pin.fill(WRONG_PIN);
  await use(page, swap);
  await expect(trouble).toContainText(REFUSAL);
  await expect(pin).toBeFocused();
  await expect(pin).toHaveAccessibleDescription(new RegExp(REFUSAL));
  await expect(pin).toHaveValue("");
  await expect(managers).toHaveValue(manager);
  await expect(counter.heldSeats()).toHaveCount(1);
  expect((await readBooking(page.request, theatre, old.id)).state).toBe("CONFIRMED");
  await expectAccessible(page, "an exchange whose PIN was refused");
  await expectFitsPhone(page, "an exchange whose PIN was refused");

  await pin.fill(PIN);
  await expect(swap).toHaveAttribute("aria-disabled", "false");
  await use(page, swap);
  await expect(page.getByTestId("changed-hands")).toBeVisible();
  await expect(trouble).toBeHidden();
  const sold = await page.getByTestId("sold").getAttribute("data-booking");
  expect((await readBooking(page.request, theatre, old.id)).moved_to).toBe(sold);
});

test("a refund after the buyer cancelled is paid out with a manager's PIN, and a wrong PIN loses nothing", async ({ request, newVisitor, anna }) => {
  const show = await claimShow(request);
  const { theatre } = show;
  const email = `anna-${show.id}@example.org`;
  const manager = await signInAsManagerWithPin(request, theatre);
  const { page } = await newVisitor(CALM);
  await signInAsNewClerk(page, request, theatre);
  const sold = await sellForCash(page.request, show, show.seat("C", "7"), { name: "Anna", email });
  await cancelByMail(anna.page, sold.reference, email);

  const cash = await cashInTill(page.request, theatre);
  const back = (await readBooking(page.request, theatre, sold.id)).to_pay_out?.minor ?? 0;
  expect(back).toBeGreaterThan(0);
  await page.goto(`/staff/${theatre}/box-office/bookings/${sold.id}`);
  const [managers, pin, payOut] = [page.locator("#pay-out-manager"), page.locator("#pay-out-pin"), page.getByTestId("pay-out")];
  await expect(payOut).toContainText("Hand over");
  await expectAccessible(page, "a pay-out that needs a PIN");
  await expectFitsPhone(page, "a pay-out that needs a PIN");

  await managers.selectOption(manager);
  await pin.fill(WRONG_PIN);
  await use(page, payOut);
  await expect(page.getByTestId("trouble")).toContainText(REFUSAL);
  await expect(pin).toHaveAccessibleDescription(new RegExp(REFUSAL));
  await expect(pin).toBeFocused();
  await expect(pin).toHaveValue("");
  await expect(managers).toHaveValue(manager);
  expect(await cashInTill(page.request, theatre)).toBe(cash);
  await expectAccessible(page, "a pay-out whose PIN was refused");
  await expectFitsPhone(page, "a pay-out whose PIN was refused");

  await pin.fill(PIN);
  await use(page, payOut);
  await expect(payOut).toHaveCount(0);
  await expect(page.getByTestId("booking")).toHaveAttribute("data-money", "REFUNDED");
  await expect(page.getByTestId("trouble")).toHaveCount(0);
  expect(await cashInTill(page.request, theatre)).toBe(cash - back);
});
