// A theatre adds a tax and a fee to its prices: the buyer reads both at checkout, on the booking and on the receipt.
import type { Page } from "@playwright/test";

import { expectAccessible, expectFitsPhone } from "../pages/accessibility.js";
import { expectBookingState, payWith, readTickets } from "../pages/paying.js";
import { createScreen, planShow } from "../pages/schedule.js";
import { press } from "../pages/show.js";
import { signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";

/** A theatre whose prices no other test changes. */
const THEATRE = "marigold-mumbai";
/** 250 rupees and 18 % are 295; with the fee a seat costs 315. */
const [BASE, RATE, FEE] = ["250.00", "18", "20.00"];
const PARTS = [
  ["Before tax and fees", "₹500.00"],
  ["Tax", "₹90.00"],
  ["Fees", "₹40.00"],
];
const TOTAL = "₹630.00";
const SIX_SEATS = {
  sketch: 1,
  name: "Six seats",
  focus: { kind: "screen", at: [0, -60], width: 120 },
  categories: [{ name: "taxed", label: "Taxed seats" }],
  zones: [{ category: "taxed", rows: [{ rows: "A", seats: "1-6" }] }],
};

test("a tax and a fee of the theatre are named from the checkout to the receipt", async ({ newVisitor, anna }) => {
  test.setTimeout(120_000);
  const { page } = await newVisitor({ reducedMotion: "reduce" });
  await signInAsManager(page);
  const screen = await createScreen(page, THEATRE, SIX_SEATS);
  await setTaxAndFee(page);
  const show = await planShow(page, THEATRE, screen);

  const hers = await anna.visit(show);
  await hers.hold(1);
  await hers.hold(2);
  await expect(hers.total).toHaveText(TOTAL);
  await hers.openCart();
  const included = anna.page.getByTestId("cart-includes");
  await expect(included).toBeVisible();
  await expect(included).toHaveText("Includes ₹90.00 in tax and ₹40.00 in fees");
  await expectAccessible(anna.page, "a cart with a tax and a fee");

  await hers.checkOut("Anna", `anna-${show}@example.org`);
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
  await expectPrices(anna.page);
  await expectAccessible(anna.page, "a booking with a tax and a fee");
  await readTickets(anna.page);
  await expect(anna.page.getByTestId("receipt")).toBeVisible();
  await expectPrices(anna.page);
  await expectAccessible(anna.page, "tickets with their receipt");
});

/** Expects the parts of the total, which add up, and the total. */
async function expectPrices(page: Page): Promise<void> {
  const lines = page.getByTestId("price-part");
  await expect(lines).toHaveCount(PARTS.length);
  for (const [at, part] of PARTS.entries()) {
    await expect(lines.nth(at).locator("dt, dd")).toHaveText(part);
  }
  await expect(page.getByTestId("price-total")).toHaveText(TOTAL);
}

/** Sets the prices in the form. A wrong rate keeps what was typed. */
async function setTaxAndFee(page: Page): Promise<void> {
  const rate = page.locator("#tax_rate");
  const fill = async (typed: string) => {
    await page.getByLabel("Taxed seats").fill(BASE);
    await page.locator("#tax_strategy").selectOption("added");
    await rate.fill(typed);
    await page.locator("#fee").fill(FEE);
    await press(page.getByTestId("set-prices"));
  };
  await page.goto(`/staff/${THEATRE}/prices`);
  await fill("18.005");
  await expect(rate).toHaveAttribute("aria-invalid", "true");
  await expect(rate).toHaveValue("18.005");
  await expect(rate).toHaveAccessibleDescription(/at most two decimal places/);
  await expect(page.locator("#fee")).toHaveValue(FEE);
  await expectAccessible(page, "a tax rate that is refused");
  await expectFitsPhone(page, "a tax rate that is refused");

  // The other project may save the theatre's prices meanwhile: this form is then refused.
  await expect(async () => {
    await page.goto(`/staff/${THEATRE}/prices`);
    await fill(RATE);
    await expect(page.getByTestId("organiser-done")).toBeVisible({ timeout: 5_000 });
  }).toPass({ timeout: 30_000 });
  await expect(rate).toHaveValue("18.00");
}
