// Proof-of-work puzzles in a flash sale: the browser solves them in the background.
import { claimShow } from "../pages/catalogue.js";
import { messages } from "../pages/languages.js";
import { HoldAttempts } from "../pages/hold-attempts.js";
import { changeTerms } from "../pages/terms.js";
import { expect, test } from "../pages/visitors.js";

test("in a flash sale the browser solves a puzzle and retries the same hold request", async ({ request, anna }) => {
  const show = await claimShow(request, [["C", "7"], ["C", "8"], ["D", "4"]]);
  const [c7, c8] = [show.seat("C", "7"), show.seat("C", "8")];
  await changeTerms(request, show.id, { flash_sale: true });
  const hers = await anna.visit(show.id);
  const attempts = await HoldAttempts.start(show, show.seat("D", "4"));

  // Records the requests, and delays the one with the solution.
  const sent: Record<string, string>[] = [];
  let arrive = () => {};
  const mayArrive = new Promise<void>((resolve) => (arrive = resolve));
  await anna.page.route(`**/shows/${show.id}/holds`, async (route) => {
    const headers = route.request().headers();
    sent.push(headers);
    if (headers["puzzle-solution"]) await mayArrive;
    await route.continue();
  });
  const worker = anna.page.waitForEvent("worker");
  await hers.pressSeat(c7);
  expect(new URL((await worker).url()).pathname).toMatch(/^\/site\/[0-9a-f]{16}\/pkg\/puzzle-worker\.js$/);
  // In the polite live region, not as an alert.
  await expect(anna.page.getByTestId("news")).toHaveText(messages("en")["map.proving"]!);
  await expect(hers.message).toBeEmpty();
  arrive();
  await hers.expectSeat(c7, "mine");
  await expect(hers.heldSeats()).toHaveCount(1);
  await expect(anna.page.getByTestId("news")).toBeEmpty();
  await expect.poll(() => anna.page.workers().length).toBe(0);
  expect(sent.map((headers) => headers["puzzle-solution"] !== undefined)).toEqual([false, true]);
  expect(sent[1]!["idempotency-key"]).toBe(sent[0]!["idempotency-key"]);

  // One puzzle is enough: neither another seat nor another hold requires one.
  await hers.hold(c8);
  await hers.release(c7);
  await hers.release(c8);
  await expect(hers.cartSeats).toHaveCount(0);
  await hers.hold(c7);
  expect(sent.filter((headers) => headers["puzzle-solution"])).toHaveLength(1);
  await attempts.stop();
});

test("a seat deselected during the puzzle is not held", async ({ request, anna }) => {
  const show = await claimShow(request, [["C", "7"], ["C", "8"], ["D", "4"]]);
  const [c7, c8] = [show.seat("C", "7"), show.seat("C", "8")];
  await changeTerms(request, show.id, { flash_sale: true });
  const hers = await anna.visit(show.id);
  const attempts = await HoldAttempts.start(show, show.seat("D", "4"));
  // The answer that requires the puzzle arrives after the seat was deselected.
  let arrive = () => {};
  const mayArrive = new Promise<void>((resolve) => (arrive = resolve));
  let tries = 0;
  await anna.page.route(`**/shows/${show.id}/holds`, async (route) => {
    tries += 1;
    const answer = await route.fetch();
    if (tries === 1) expect(answer.status()).toBe(428);
    await mayArrive;
    await route.fulfill({ response: answer });
  });
  await hers.pressSeat(c7);
  await expect.poll(() => tries).toBe(1);
  await hers.pressSeat(c7);
  await expect(hers.cartSeats).toHaveCount(0);
  arrive();
  // Another seat is held; the first one is not requested again.
  await hers.hold(c8);
  await hers.expectSeat(c7, "available");
  expect(tries).toBe(3);
  await attempts.stop();
});
