// The payment page of the simulator, the booking page behind it, and the ticket.
import { type APIRequestContext, expect, type Locator, type Page } from "@playwright/test";
import jsqr from "jsqr";
import { PNG } from "pngjs";

import { claimShow, type Show } from "./catalogue.js";
import { press, ShowPage } from "./show.js";
import type { Visitor } from "./visitors.js";

// The package exports its function as `default` of a CommonJS module.
const decode = jsqr as unknown as typeof jsqr.default;

/** Cards of the simulator, by what the bank does. */
export type Card =
  | "paid"
  | "declined"
  | "pending_paid"
  | "pending_failed"
  | "slow"
  | "no_answer_paid"
  | "duplicate_webhooks"
  | "late_webhook"
  | "reordered_webhooks"
  | "another_amount";

/** A show in which Anna holds C7 and Ben looks on. */
export async function annaHoldsC7(
  request: APIRequestContext,
  anna: Visitor,
  ben: Visitor,
): Promise<{ show: Show; c7: number; hers: ShowPage; his: ShowPage }> {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(c7);
  return { show, c7, hers, his };
}

/** Pays with a card and comes back to the booking. */
export async function payWith(page: Page, card: Card): Promise<void> {
  const choice = page.locator(`input[name="card"][value="${card}"]`);
  // The rarer cards unfold.
  const folded = page.locator("details:not([open])", { has: choice });
  if (await folded.count()) await press(folded.locator("summary"));
  // As a person does, on the words beside it: that waits until the page has stopped moving.
  await press(page.locator("label", { has: choice }));
  await expect(choice).toBeChecked();
  await press(page.locator("#pay"));
  // The page of the booking knows by it that a card was given.
  await page.waitForURL(/\/bookings\/[0-9a-f-]{36}\?submitted=1$/);
}

/** Leaves the gateway's page without paying, for the page of the booking. */
export async function stopPaying(page: Page): Promise<void> {
  await press(page.locator("#cancel"));
  await page.waitForURL(/\/bookings\/[0-9a-f-]{36}$/);
}

/** The address of the booking on show, without what the gateway added. */
export function pathOf(page: Page): string {
  return new URL(page.url()).pathname;
}

/** Waits, without a reload, until the booking is in this state. */
export async function bookingBecomes(page: Page, state: string): Promise<void> {
  const shown = page.getByTestId("booking-state");
  // The reconciler and a delayed card have their seconds.
  await expect(shown).toHaveAttribute("data-state", state, { timeout: 20_000 });
}

/** From a booking that came to nothing to the page of its show, by the link that leads to the seats one had. */
export async function lookForThemAgain(page: Page): Promise<ShowPage> {
  await press(page.getByTestId("again-link"));
  await page.waitForURL(/\/shows\/[0-9a-f-]{36}\?again=/);
  const show = new ShowPage(page);
  await show.live();
  await expect(show.cart).toBeAttached();
  await show.dressed();
  return show;
}

/** The buttons that ask to be pressed: one at a time, or nobody knows which. */
export function primaryButtons(page: Page): Locator {
  return page.locator("#main .button:not(.button-quiet):visible");
}

/** Remembers something in the page that a reload would lose. */
export async function markPage(page: Page): Promise<void> {
  await page.evaluate(() => document.body.setAttribute("data-not-reloaded", "true"));
}

export async function expectNotReloaded(page: Page): Promise<void> {
  await expect(page.locator("body")).toHaveAttribute("data-not-reloaded", "true");
}

/** From the confirmed booking to the ticket; what its QR codes say, read from a picture of the page. */
export async function readTickets(page: Page): Promise<string[]> {
  await press(page.getByTestId("ticket-link"));
  await page.waitForURL(/\/bookings\/[0-9a-f-]{36}\/ticket$/);
  const codes = page.getByTestId("qr").locator("svg");
  await expect(codes.first()).toBeVisible();
  const texts: string[] = [];
  for (const code of await codes.all()) {
    const picture = PNG.sync.read(await code.screenshot());
    const read = decode(new Uint8ClampedArray(picture.data), picture.width, picture.height);
    expect(read, "a phone can read the QR code").not.toBeNull();
    texts.push(read?.data ?? "");
  }
  return texts;
}
