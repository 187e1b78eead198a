// Parked refunds (dead letters): managers see and settle them.
import { randomUUID } from "node:crypto";

import { claimShow } from "../pages/catalogue.js";
import { expectAccessible, expectFitsPhone } from "../pages/accessibility.js";
import { expectBookingState, bookingPath, payWith } from "../pages/paying.js";
import { press } from "../pages/show.js";
import { signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";

test("a refund that the gateway refuses is parked until a manager settles it", async ({ request, newVisitor }) => {
  const [anna, max] = [await newVisitor(), await newVisitor({ reducedMotion: "reduce", javaScriptEnabled: false })];
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  await hers.hold(show.seat("C", "7"));
  await hers.checkOut("Anna", "anna@example.org");
  const payment = new URL(anna.page.url());
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");

  // The payment is refunded at the gateway directly, so a later refund is refused.
  const booking = bookingPath(anna.page);
  const { total } = (await (await anna.page.request.get(`/api/v1${booking}`)).json()) as { total: { minor: number } };
  const refunds = `${payment.origin}/v1/payments/${payment.pathname.split("/").at(-1) ?? ""}/refunds`;
  const sent = await request.post(refunds, {
    headers: { authorization: `Bearer ${process.env.PAYMENTS_KEY ?? ""}`, "idempotency-key": randomUUID() },
    data: { amount_minor: total.minor },
  });
  expect(sent.ok(), await sent.text()).toBe(true);
  await press(anna.page.getByTestId("cancel-open"));
  await press(anna.page.getByTestId("cancel-confirm"));
  await expectBookingState(anna.page, "CANCELLED");

  await signInAsManager(max.page);
  const address = `/staff/${show.theatre}/parked`;
  const { reference } = (await (await anna.page.request.get(`/api/v1${booking}`)).json()) as { reference: string };
  const parked = max.page.locator(`[data-testid=parked][data-reference="${reference}"]`);
  await expect
    .poll(async () => {
      await max.page.goto(address);
      return parked.count();
    })
    .toBe(1);
  await expect(parked).toHaveAttribute("data-effect", "refund");
  await expect(parked).toContainText("above_charge");
  await expectFitsPhone(max.page, "parked refunds");
  await max.page.goto("/staff");
  const way = max.page.locator(`a[data-parked][href="${address}"]`);
  await expect(way).toHaveText(/: [1-9]\d*$/);
  await press(way);

  // The entry links to the booking.
  await expect(parked.getByTestId("parked-booking")).toHaveAttribute("href", new RegExp(`/box-office${booking}$`));
  await press(parked.getByTestId("parked-settle"));
  await parked.locator("details[open] input[name=reason]").fill("It was sent back at the gateway.");
  await press(parked.locator("details[open] button[type=submit]"));
  await expect(max.page.getByTestId("parked-done")).toBeVisible();
  await expect(parked).toHaveCount(0);
  await expect(anna.page.getByTestId("booking-state")).toHaveAttribute("data-money", "REFUNDED", { timeout: 20_000 });
  await expect(anna.page.getByTestId("booking-story")).toContainText("Refunded in another way");
});

test("the page of parked refunds is accessible", async ({ request, newVisitor }) => {
  const { page } = await newVisitor({ reducedMotion: "reduce" });
  const show = await claimShow(request);
  await signInAsManager(page);
  await page.goto(`/staff/${show.theatre}/parked`);
  await expect(page.getByTestId("staff-parked")).toHaveAttribute("aria-current", "page");
  await expectAccessible(page, "parked refunds");
  await page.goto("/staff");
  await expectAccessible(page, "a manager's workplaces");
});
