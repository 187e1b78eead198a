// A hold runs out. On a server whose holds last four seconds.
import { claimShow } from "../pages/catalogue.js";
import { press } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

const SHORT_HOLDS = process.env.SHORT_HOLD_URL ?? "";

test("a hold runs out, and both see the seat come back", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id, SHORT_HOLDS);
  // The other one is on the other server: what a replica does, all replicas tell.
  const his = await ben.visit(show.id);
  await hers.hold(c7);
  await his.sees(c7, "locked");
  await expect(hers.countdown).toHaveText(/^0:0[0-4]$/);

  await hers.sees(c7, "available");
  await his.sees(c7, "available", 1_000);
  await expect(hers.cartSeats).toHaveCount(0);
  await expect(hers.message).toContainText("C7");
  await his.hold(c7);
  await hers.sees(c7, "locked", 1_000);
});

test("more time is offered while it runs out, and the seat is kept", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id, SHORT_HOLDS);
  const his = await ben.visit(show.id);
  await hers.hold(c7);
  const more = anna.page.getByTestId("extend");
  await press(more);
  await expect(hers.countdown).toHaveText(/^[23]:/);
  // Another two minutes or more: calm again, and there is no more to be had.
  await expect(more).toBeHidden();
  await hers.sees(c7, "mine");
  await his.sees(c7, "locked");
  await anna.page.reload();
  await hers.sees(c7, "mine");
  await expect(hers.countdown).toHaveText(/^[23]:/);
});
