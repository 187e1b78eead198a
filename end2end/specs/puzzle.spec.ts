// Many want seats at once: the browser solves a puzzle by itself, and whoever taps a seat has it.
import { claimShow } from "../pages/catalogue.js";
import { messages } from "../pages/languages.js";
import { Rush, sellInARush } from "../pages/rush.js";
import { expect, test } from "../pages/visitors.js";

test("in a rush the browser proves unseen that somebody is there, and the seat is held by the same request", async ({ request, anna }) => {
  const show = await claimShow(request, [["C", "7"], ["C", "8"], ["D", "4"]]);
  const [c7, c8] = [show.seat("C", "7"), show.seat("C", "8")];
  await sellInARush(request, show);
  const hers = await anna.visit(show.id);
  const rush = await Rush.comes(show, show.seat("D", "4"));

  // What she sends, and when what she proves it with may arrive.
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
  await hers.touch(c7);
  expect(new URL((await worker).url()).pathname).toMatch(/^\/site\/[0-9a-f]{16}\/pkg\/puzzle-worker\.js$/);
  // Told calmly: where a screen reader says it when it is free to, not as an alarm.
  await expect(anna.page.getByTestId("news")).toHaveText(messages("en")["map.proving"]!);
  await expect(hers.message).toBeEmpty();
  arrive();
  await hers.sees(c7, "mine");
  await expect(hers.held()).toHaveCount(1);
  await expect(anna.page.getByTestId("news")).toBeEmpty();
  await expect.poll(() => anna.page.workers().length).toBe(0);
  expect(sent.map((headers) => headers["puzzle-solution"] !== undefined)).toEqual([false, true]);
  expect(sent[1]!["idempotency-key"]).toBe(sent[0]!["idempotency-key"]);

  // One puzzle is enough: neither another seat nor another hold asks for one.
  await hers.hold(c8);
  await hers.letGo(c7);
  await hers.letGo(c8);
  await expect(hers.cartSeats).toHaveCount(0);
  await hers.hold(c7);
  expect(sent.filter((headers) => headers["puzzle-solution"])).toHaveLength(1);
  await rush.ends();
});

test("who thinks better of it meanwhile takes nothing", async ({ request, anna }) => {
  const show = await claimShow(request, [["C", "7"], ["C", "8"], ["D", "4"]]);
  const [c7, c8] = [show.seat("C", "7"), show.seat("C", "8")];
  await sellInARush(request, show);
  const hers = await anna.visit(show.id);
  const rush = await Rush.comes(show, show.seat("D", "4"));
  // The answer that asks for the puzzle comes when she has let go already.
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
  await hers.touch(c7);
  await expect.poll(() => tries).toBe(1);
  await hers.touch(c7);
  await expect(hers.cartSeats).toHaveCount(0);
  arrive();
  // Another seat is hers; the first was not asked for again.
  await hers.hold(c8);
  await hers.sees(c7, "available");
  expect(tries).toBe(3);
  await rush.ends();
});
