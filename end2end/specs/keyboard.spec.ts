// Without a mouse, without a finger.
import type { Page } from "@playwright/test";

import { claimShow } from "../pages/catalogue.js";
import { bookingBecomes } from "../pages/paying.js";
import { expect, test } from "../pages/visitors.js";

// More than any of our pages has tab stops.
const MOST_TABS = 60;

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

  await tabTo(anna.page, 'input[name="name"]');
  await keys.type("Anna");
  await tabTo(anna.page, 'input[name="email"]');
  await keys.type("anna@example.org");
  await keys.press("Enter");
  await expect(anna.page.locator("#pay")).toBeVisible();

  await tabTo(anna.page, "#pay");
  await keys.press("Enter");
  await bookingBecomes(anna.page, "CONFIRMED");
  await tabTo(anna.page, '[data-testid="ticket-link"]');
  await keys.press("Enter");
  await expect(anna.page.getByTestId("qr").locator("svg")).toBeVisible();
});

/** Presses Tab until the focus is there. */
async function tabTo(page: Page, selector: string): Promise<void> {
  for (let presses = 0; presses < MOST_TABS; presses += 1) {
    const arrived = await page.evaluate((wanted) => document.activeElement?.matches(wanted) ?? false, selector);
    if (arrived) return;
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
