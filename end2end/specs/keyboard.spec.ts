// Purchases by keyboard only.
import type { Page } from "@playwright/test";

import { claimShow } from "../pages/catalogue.js";
import { expectBookingState } from "../pages/paying.js";
import { expect, test } from "../pages/visitors.js";

// More than the tab stops of any page; the seat list of a small room has most, one per seat.
const MAX_PRESSES = 160;

test("a seat can be bought by keyboard on the map", async ({ request, anna }) => {
  test.skip(!!test.info().project.use.hasTouch, "phones have no keyboard");
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  const keys = anna.page.keyboard;

  await tabTo(anna.page, '[role="gridcell"]');
  await moveTo(anna.page, show.seat("C", "7"));
  await keys.press("Space");
  await expect(hers.heldSeats()).toHaveCount(1);
  await hers.expectSeat(show.seat("C", "7"), "mine");

  await payByKeys(anna.page);
});

test("a seat can be bought by keyboard in the list of seats", async ({ request, anna }) => {
  test.skip(!!test.info().project.use.hasTouch, "phones have no keyboard");
  const show = await claimShow(request, [["A", "2"]], { maxSeats: 100 });
  const hers = await anna.visit(show.id);
  const keys = anna.page.keyboard;
  await tabTo(anna.page, ".view-switch");
  await keys.press("Space");
  const seat = anna.page.getByRole("button", { name: /^Row A seat 2, / });
  await expect(seat).toHaveAccessibleName(/, available\b/);
  // Each seat is a button, several tab stops after the switch.
  await tabTo(anna.page, "button", /^Row A seat 2, /);
  await keys.press("Enter");
  await expect(hers.heldSeats()).toHaveCount(1);
  await expect(seat).toHaveAccessibleName(/, yours\b/);
  await expect(anna.page.getByTestId("spoken")).toHaveText("A2 held for you.");
  await payByKeys(anna.page);
});

test("after a seat is removed from the cart the focus moves to the next one, then to the map", async ({ request, anna }) => {
  test.skip(!!test.info().project.use.hasTouch, "phones have no keyboard");
  const show = await claimShow(request, [["C", "6"], ["C", "7"]]);
  const hers = await anna.visit(show.id);
  await hers.hold(show.seat("C", "6"));
  await hers.hold(show.seat("C", "7"));
  const removeButtons = anna.page.locator(".cart-seat-remove");
  await removeButtons.last().focus();
  await anna.page.keyboard.press("Enter");
  await expect(hers.heldSeats()).toHaveCount(1);
  await expect(removeButtons).toBeFocused();
  await anna.page.keyboard.press("Enter");
  await expect(hers.cartSeats).toHaveCount(0);
  await expect(anna.page.locator('[role="gridcell"][tabindex="0"]')).toBeFocused();
});

/** Pays and opens the ticket, starting in the cart. */
async function payByKeys(page: Page): Promise<void> {
  const keys = page.keyboard;
  await tabTo(page, 'input[name="name"]');
  await keys.type("Anna");
  await tabTo(page, 'input[name="email"]');
  await keys.type("anna@example.org");
  await keys.press("Enter");
  await expect(page.locator("#pay")).toBeVisible();

  await tabTo(page, "#pay");
  await keys.press("Enter");
  await expectBookingState(page, "CONFIRMED");
  await tabTo(page, '[data-testid="ticket-link"]');
  await keys.press("Enter");
  await expect(page.getByTestId("qr").locator("svg")).toBeVisible();
}

/** Presses Tab until an element with this selector and name has the focus. */
async function tabTo(page: Page, selector: string, name = /(?:)/): Promise<void> {
  for (let presses = 0; presses < MAX_PRESSES; presses += 1) {
    const focused = await page.evaluate((wanted) => {
      const active = document.activeElement;
      return active?.matches(wanted) ? (active.getAttribute("aria-label") ?? active.textContent) : null;
    }, selector);
    if (focused !== null && name.test(focused)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`${selector} is not reached by ${MAX_PRESSES} presses of Tab`);
}

/** Presses arrow keys until the seat with this index has the focus. Rows may be curved, so rows are compared by
 * name; seat indexes continue from row to row. */
async function moveTo(page: Page, index: number): Promise<void> {
  const place = (id: string) =>
    page.evaluate((seat) => {
      const element = document.getElementById(seat);
      const row = /row (.+) seat/i.exec(element?.getAttribute("aria-label") ?? "")?.[1];
      return element && row ? { x: element.getBoundingClientRect().x, row } : null;
    }, id);
  for (let presses = 0; presses < MAX_PRESSES; presses += 1) {
    const focused = await page.evaluate(() => document.activeElement?.id ?? "");
    if (focused === `seat-${index}`) return;
    const [here, there] = [await place(focused), await place(`seat-${index}`)];
    if (!here || !there) throw new Error("the focus left the seats");
    const further = Number(focused.replace("seat-", "")) < index;
    const inRow = there.x > here.x ? "ArrowRight" : "ArrowLeft";
    await page.keyboard.press(here.row === there.row ? inRow : further ? "ArrowDown" : "ArrowUp");
  }
  throw new Error(`seat ${index} is not reached by ${MAX_PRESSES} arrows`);
}
