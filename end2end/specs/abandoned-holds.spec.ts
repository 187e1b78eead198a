// Leaving without paying: the hold ends after a grace period unless the visitor returns.
import { claimShow } from "../pages/catalogue.js";
import { expect, test } from "../pages/visitors.js";
import { ShowPage } from "../pages/show.js";

const GRACE_MS = Number(process.env.LEAVE_GRACE_MS ?? 30_000);

test("closing the tab releases the seat after the grace period", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(c7);
  await his.expectSeat(c7, "locked");
  // In its first seconds a page still requests its hold, which cancels leaving.
  await expect.poll(() => secondsLeft(hers)).toBeLessThan(297);
  const closed = Date.now();
  await anna.closeTab();
  await his.expectSeat(c7, "available", GRACE_MS + 5_000);
  // Not at once: a reload also closes the page for a moment.
  expect(Date.now() - closed).toBeGreaterThan(GRACE_MS - 500);
});

test("a reload within the grace period keeps the seat and its expiry", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(c7);
  const end = await endOfHold(hers, show.id);

  await anna.page.reload();
  await hers.waitUntilLive();
  await hers.expectSeat(c7, "mine");
  await expect(hers.heldSeats()).toHaveCount(1);
  // Neither more time than is left nor the grace period. The page itself restored the hold.
  const most = Math.ceil((end - Date.now()) / 1_000);
  const after = await secondsLeft(hers);
  // The display changes once a second.
  expect(after).toBeLessThanOrEqual(most + 1);
  expect(after).toBeGreaterThan(most - 30);
  expect(await endOfHold(hers, show.id)).toBe(end);
  // Beyond the grace period, by the page's countdown.
  await expect.poll(() => secondsLeft(hers), { timeout: 30_000 }).toBeLessThan(after - GRACE_MS / 1000 - 1);
  await hers.expectSeat(c7, "mine");
  await his.expectSeat(c7, "locked");
});

test("returning in another tab keeps the seat", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(c7);
  await anna.closeTab();
  anna.page = await anna.context.newPage();
  const again = await anna.visit(show.id);
  await again.expectSeat(c7, "mine");
  await expect(again.heldSeats()).toHaveCount(1);
  await his.expectSeat(c7, "locked");
});

/** Returns the expiry of the visitor's hold from the server, milliseconds since 1970. */
async function endOfHold(page: ShowPage, show: string): Promise<number> {
  const answer = await page.page.request.get(`/api/v1/shows/${show}/hold`);
  return ((await answer.json()) as { expires_at_ms: number }).expires_at_ms;
}

async function secondsLeft(page: ShowPage): Promise<number> {
  const [minutes, seconds] = ((await page.countdown.textContent()) ?? "").trim().split(":").map(Number);
  return (minutes ?? 0) * 60 + (seconds ?? 0);
}
