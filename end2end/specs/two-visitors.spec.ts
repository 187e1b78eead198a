// Two visitors, or two tabs of one visitor, on the map of one show.
import { claimShow } from "../pages/catalogue.js";
import { expect, test } from "../pages/visitors.js";

const ONE_SECOND = 1_000;

test("a held seat is locked for the other visitor within a second, and free after its release", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await his.expectSeat(c7, "available");
  await hers.magnify(c7);

  await Promise.all([hers.hold(c7), his.expectSeat(c7, "locked", ONE_SECOND)]);
  await expect(hers.countdown).toHaveText(/^[0-5]:[0-5][0-9]$/);
  await expect(hers.total).not.toBeEmpty();

  await his.pressSeat(c7);
  await expect(his.message).toContainText("C7");
  await his.expectSeat(c7, "locked");
  await expect(his.cartSeats).toHaveCount(0);
  // The page sends no request; the server would also refuse it and name the seat.
  const refused = await ben.page.context().request.post(`/api/v1/shows/${show.id}/holds`, {
    headers: { "idempotency-key": "tried-past-the-page" },
    data: { seats: [c7] },
  });
  expect(refused.status()).toBe(423);
  expect(await refused.json()).toMatchObject({ code: "seats_locked", seats: [{ seat: c7, label: "C7", state: "LOCKED" }] });

  await hers.release(c7);
  await his.expectSeat(c7, "available", ONE_SECOND);
  await expect(hers.cartSeats).toHaveCount(0);
  await his.hold(c7);
  await hers.expectSeat(c7, "locked", ONE_SECOND);
});

test("of two concurrent taps on a seat exactly one succeeds, and the loser keeps other seats", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["C", "7"], ["D", "4"], ["D", "8"]]);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(show.seat("D", "4"));
  await his.hold(show.seat("D", "8"));

  await Promise.all([hers.pressSeat(c7), his.pressSeat(c7)]);

  await expect(async () => {
    const states = [await hers.seat(c7).getAttribute("data-state"), await his.seat(c7).getAttribute("data-state")];
    expect(states.sort()).toEqual(["locked", "mine"]);
  }).toPass();
  const annaWon = (await hers.seat(c7).getAttribute("data-state")) === "mine";
  const [winner, loser] = annaWon ? [hers, his] : [his, hers];
  await expect(winner.heldSeats()).toHaveCount(2);
  await expect(loser.heldSeats()).toHaveCount(1);
  await expect(loser.message).toContainText("C7");
});

test("two tabs of one visitor add seats at the same time, and both stay", async ({ request, anna }) => {
  test.skip(test.info().project.name !== "laptop", "the same on every screen");
  const show = await claimShow(request, [["C", "6"], ["C", "7"], ["C", "8"]]);
  const first = await anna.visit(show.id);
  await first.hold(show.seat("C", "6"));
  const second = await (await anna.newTab()).visit(show.id);
  await expect(second.heldSeats()).toHaveCount(1);
  // The second tab adds a seat before the request of the first one arrives.
  await anna.page.route("**/holds/*", async (route) => {
    await second.hold(show.seat("C", "8"));
    await route.continue();
  }, { times: 1 });
  await first.pressSeat(show.seat("C", "7"));
  for (const tab of [first, second]) await expect(tab.heldSeats()).toHaveCount(3);
});

test("the cart lists all held seats", async ({ request, anna }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"], ["C", "8"]]);
  const page = await anna.visit(show.id);
  for (const number of ["6", "7", "8"]) await page.hold(show.seat("C", number));
  await expect(page.cartSeats).toContainText(["C6", "C7", "C8"]);
  await page.release(show.seat("C", "7"));
  await expect(page.cartSeats).toHaveCount(2);
  await expect(page.heldSeats()).toHaveCount(2);
});

test("the list of seats has the states of the map", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  await expect(hers.page.getByRole("gridcell", { name: /^Row C seat 7, .+, available\b/ })).toHaveAttribute("id", `seat-${c7}`);
  await anna.page.getByRole("button", { name: "List of seats" }).click();
  await anna.page.getByRole("button", { name: /^Row C seat 7, .+, available\b/ }).click();
  await expect(hers.heldSeats()).toHaveCount(1);
  const his = await ben.visit(show.id);
  await his.expectSeat(c7, "locked");
});
