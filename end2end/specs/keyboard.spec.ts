// Without a mouse, without a finger.
import type { Page } from "@playwright/test";

import { claimShow } from "../pages/catalogue.js";
import { bookingBecomes } from "../pages/paying.js";
import { expect, test } from "../pages/visitors.js";

// More than any of our pages has tab stops; the list of a small room's seats has most, one for each.
const MOST_TABS = 160;

test("the keyboard alone can buy", async ({ request, anna }) => {
  test.skip(!!test.info().project.use.hasTouch, "phones have no keyboard");
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  const keys = anna.page.keyboard;

  await tabTo(anna.page, '[role="gridcell"]');
  await moveTo(anna.page, show.seat("C", "7"));
  await keys.press("Space");
  await expect(hers.held()).toHaveCount(1);
  await hers.sees(show.seat("C", "7"), "mine");

  await payByKeys(anna.page);
});

test("the list of seats and the keyboard alone can buy", async ({ request, anna }) => {
  test.skip(!!test.info().project.use.hasTouch, "phones have no keyboard");
  const show = await claimShow(request, [["A", "2"]], { mostSeats: 100 });
  const hers = await anna.visit(show.id);
  const keys = anna.page.keyboard;
  await tabTo(anna.page, ".view-switch");
  await keys.press("Space");
  const seat = anna.page.getByRole("button", { name: /^Row A seat 2, / });
  await expect(seat).toHaveAccessibleName(/, available\b/);
  // Each seat is a button of its own: from the switch it is some steps.
  await tabTo(anna.page, "button", /^Row A seat 2, /);
  await keys.press("Enter");
  await expect(hers.held()).toHaveCount(1);
  await expect(seat).toHaveAccessibleName(/, yours\b/);
  await expect(anna.page.getByTestId("spoken")).toHaveText("A2 held for you.");
  await payByKeys(anna.page);
});

test("whoever lets seats of the cart go stands at the next one, and at the seats after the last", async ({ request, anna }) => {
  test.skip(!!test.info().project.use.hasTouch, "phones have no keyboard");
  const show = await claimShow(request, [["C", "6"], ["C", "7"]]);
  const hers = await anna.visit(show.id);
  await hers.hold(show.seat("C", "6"));
  await hers.hold(show.seat("C", "7"));
  const letGo = anna.page.locator(".cart-seat-remove");
  await letGo.last().focus();
  await anna.page.keyboard.press("Enter");
  await expect(hers.held()).toHaveCount(1);
  await expect(letGo).toBeFocused();
  await anna.page.keyboard.press("Enter");
  await expect(hers.cartSeats).toHaveCount(0);
  await expect(anna.page.locator('[role="gridcell"][tabindex="0"]')).toBeFocused();
});

/** From the cart to the ticket. */
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
  await bookingBecomes(page, "CONFIRMED");
  await tabTo(page, '[data-testid="ticket-link"]');
  await keys.press("Enter");
  await expect(page.getByTestId("qr").locator("svg")).toBeVisible();
}

/** Presses Tab until the focus is there, on something of that name if one is given. */
async function tabTo(page: Page, selector: string, name = /(?:)/): Promise<void> {
  for (let presses = 0; presses < MOST_TABS; presses += 1) {
    const focused = await page.evaluate((wanted) => {
      const active = document.activeElement;
      return active?.matches(wanted) ? (active.getAttribute("aria-label") ?? active.textContent) : null;
    }, selector);
    if (focused !== null && name.test(focused)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`${selector} is not reached by ${MOST_TABS} presses of Tab`);
}

/** Presses arrow keys until the seat with this index has the focus. Rows may be curved, so what is one
 * row is what is named so, and seats count on from row to row. */
async function moveTo(page: Page, index: number): Promise<void> {
  const place = (id: string) =>
    page.evaluate((seat) => {
      const element = document.getElementById(seat);
      const row = /row (.+) seat/i.exec(element?.getAttribute("aria-label") ?? "")?.[1];
      return element && row ? { x: element.getBoundingClientRect().x, row } : null;
    }, id);
  for (let presses = 0; presses < MOST_TABS; presses += 1) {
    const focused = await page.evaluate(() => document.activeElement?.id ?? "");
    if (focused === `seat-${index}`) return;
    const [here, there] = [await place(focused), await place(`seat-${index}`)];
    if (!here || !there) throw new Error("the focus left the seats");
    const further = Number(focused.replace("seat-", "")) < index;
    const inRow = there.x > here.x ? "ArrowRight" : "ArrowLeft";
    await page.keyboard.press(here.row === there.row ? inRow : further ? "ArrowDown" : "ArrowUp");
  }
  throw new Error(`seat ${index} is not reached by ${MOST_TABS} arrows`);
}
