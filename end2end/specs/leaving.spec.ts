// Leaving without paying: the seats come back for others, and at once for the one who comes back.
import { claimShow } from "../pages/catalogue.js";
import { expect, test } from "../pages/visitors.js";
import { ShowPage } from "../pages/show.js";

const GRACE_MS = Number(process.env.LEAVE_GRACE_MS ?? 30_000);

test("a closed tab gives the seat back after the grace", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(c7);
  await his.sees(c7, "locked");
  // A page that is still asking for its hold, as it does in its first seconds, is coming, not leaving.
  await expect.poll(() => secondsLeft(hers)).toBeLessThan(297);
  const closed = Date.now();
  await anna.closeTab();
  await his.sees(c7, "available", GRACE_MS + 5_000);
  // Not at once: a reload is a closed tab too, for a moment.
  expect(Date.now() - closed).toBeGreaterThan(GRACE_MS - 500);
});

test("a reload within the grace keeps the seat and its original end", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(c7);
  const end = await endOfHold(hers, show.id);

  await anna.page.reload();
  await hers.live();
  await hers.sees(c7, "mine");
  await expect(hers.held()).toHaveCount(1);
  // Never more time than is left, and not the shortened time either. The page alone asked for its hold back.
  const most = Math.ceil((end - Date.now()) / 1_000);
  const after = await secondsLeft(hers);
  // The display moves once a second.
  expect(after).toBeLessThanOrEqual(most + 1);
  expect(after).toBeGreaterThan(most - 30);
  expect(await endOfHold(hers, show.id)).toBe(end);
  // Well past the grace, counted on the page's own countdown.
  await expect.poll(() => secondsLeft(hers), { timeout: 30_000 }).toBeLessThan(after - GRACE_MS / 1000 - 1);
  await hers.sees(c7, "mine");
  await his.sees(c7, "locked");
});

test("coming back in another tab keeps the seat too", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(c7);
  await anna.closeTab();
  anna.page = await anna.context.newPage();
  const again = await anna.visit(show.id);
  await again.sees(c7, "mine");
  await expect(again.held()).toHaveCount(1);
  await his.sees(c7, "locked");
});

/** When the hold of this page's visitor ends, by the server's word, milliseconds since 1970. */
async function endOfHold(page: ShowPage, show: string): Promise<number> {
  const answer = await page.page.request.get(`/api/v1/shows/${show}/hold`);
  return ((await answer.json()) as { expires_at_ms: number }).expires_at_ms;
}

async function secondsLeft(page: ShowPage): Promise<number> {
  const [minutes, seconds] = ((await page.countdown.textContent()) ?? "").trim().split(":").map(Number);
  return (minutes ?? 0) * 60 + (seconds ?? 0);
}
