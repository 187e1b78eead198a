// The simulator's payment page, the booking page and the tickets.
import { type APIRequestContext, expect, type Locator, type Page } from "@playwright/test";
import jsqr from "jsqr";
import { PNG } from "pngjs";

import { claimShow, type Show } from "./catalogue.js";
import { press, ShowPage } from "./show.js";
import type { Visitor } from "./visitors.js";

// The package exports its function as `default` of a CommonJS module.
const decode = jsqr as unknown as typeof jsqr.default;

/** Test cards of the simulator. */
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

/** Claims a show in which Anna holds C7 and Ben has the map open. */
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

/** Pays with a card and waits for the booking page. */
export async function payWith(page: Page, card: Card): Promise<void> {
  const radio = page.locator(`input[name="card"][value="${card}"]`);
  // The rarer cards are in a collapsed section.
  const folded = page.locator("details:not([open])", { has: radio });
  if (await folded.count()) await press(folded.locator("summary"));
  // A click on the label waits until the page has stopped moving.
  await press(page.locator("label", { has: radio }));
  await expect(radio).toBeChecked();
  await press(page.locator("#pay"));
  // The parameter marks that a card was given.
  await page.waitForURL(/\/bookings\/[0-9a-f-]{36}\?submitted=1$/);
}

/** Cancels on the payment page and waits for the booking page. */
export async function cancelPayment(page: Page): Promise<void> {
  await press(page.locator("#cancel"));
  await page.waitForURL(/\/bookings\/[0-9a-f-]{36}$/);
}

/** Returns the path of the open booking, without the gateway's parameter. */
export function bookingPath(page: Page): string {
  return new URL(page.url()).pathname;
}

/** Waits, without a reload, until the booking has this state. */
export async function expectBookingState(page: Page, state: string): Promise<void> {
  const shown = page.getByTestId("booking-state");
  // The reconciler and a delayed card take seconds.
  await expect(shown).toHaveAttribute("data-state", state, { timeout: 20_000 });
}

/** Opens the show from an unsuccessful booking, by the link that offers the former seats again. */
export async function openSeatsAgain(page: Page): Promise<ShowPage> {
  await press(page.getByTestId("again-link"));
  await page.waitForURL(/\/shows\/[0-9a-f-]{36}\?again=/);
  const show = new ShowPage(page);
  await show.waitUntilLive();
  await expect(show.cart).toBeAttached();
  await show.waitForStyles();
  return show;
}

/** Returns the visible primary buttons; a page must have at most one. */
export function primaryButtons(page: Page): Locator {
  return page.locator("#main .button:not(.button-quiet):visible");
}

/** Marks the page, so that `expectNotReloaded` detects a reload. */
export async function markPage(page: Page): Promise<void> {
  await page.evaluate(() => document.body.setAttribute("data-not-reloaded", "true"));
}

export async function expectNotReloaded(page: Page): Promise<void> {
  await expect(page.locator("body")).toHaveAttribute("data-not-reloaded", "true");
}

/** Opens the tickets of a confirmed booking and returns the texts of their QR codes, read from a screenshot. */
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
