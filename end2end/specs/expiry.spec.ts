// Expiry of holds, on a server with holds of four seconds.
import { claimShow } from "../pages/catalogue.js";
import { press } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

const SHORT_HOLDS = process.env.SHORT_HOLD_URL ?? "";

test("an expired hold frees the seat for both visitors", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id, SHORT_HOLDS);
  // Ben uses the other server: all replicas publish the expiry.
  const his = await ben.visit(show.id);
  await hers.hold(c7);
  await his.expectSeat(c7, "locked");
  await expect(hers.countdown).toHaveText(/^0:0[0-4]$/);

  await hers.expectSeat(c7, "available");
  await his.expectSeat(c7, "available", 1_000);
  await expect(hers.cartSeats).toHaveCount(0);
  await expect(hers.message).toContainText("C7");
  await his.hold(c7);
  await hers.expectSeat(c7, "locked", 1_000);
});

test("a hold that ends while its buyer types leads to the message and keeps the text", async ({ request, anna }) => {
  const show = await claimShow(request);
  const hers = await anna.visit(show.id, SHORT_HOLDS);
  await hers.hold(show.seat("C", "7"));
  await hers.openCart();
  const name = anna.page.locator('input[name="name"]');
  await name.fill("Anna");
  await expect(hers.message).toContainText("C7");
  await expect(name).toHaveCount(0);
  await expect(anna.page.locator(".notice")).toBeFocused();

  // The same seats again: the form has what was typed.
  await press(anna.page.getByTestId("ask-again"));
  await expect(hers.heldSeats()).toHaveCount(1);
  await expect(name).toHaveValue("Anna");
});

test("a hold near its expiry can be extended", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id, SHORT_HOLDS);
  const his = await ben.visit(show.id);
  await hers.hold(c7);
  const more = anna.page.getByTestId("extend");
  await press(more);
  await expect(hers.countdown).toHaveText(/^[23]:/);
  // After the extension the countdown is not urgent, and no further extension is offered.
  await expect(more).toBeHidden();
  await expect(hers.countdown, "the focus stays at the time").toBeFocused();
  await hers.expectSeat(c7, "mine");
  await his.expectSeat(c7, "locked");
  await anna.page.reload();
  await hers.expectSeat(c7, "mine");
  await expect(hers.countdown).toHaveText(/^[23]:/);
});
