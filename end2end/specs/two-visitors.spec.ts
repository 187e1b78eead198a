// Two people look at one show at the same time.
import { claimShow } from "../pages/catalogue.js";
import { expect, test } from "../pages/visitors.js";

const ONE_SECOND = 1_000;

test("a held seat is locked for the other within a second, and free again when let go", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await his.sees(c7, "available");

  await Promise.all([hers.hold(c7), his.sees(c7, "locked", ONE_SECOND)]);
  await expect(hers.countdown).toHaveText(/^[0-5]:[0-5][0-9]$/);
  await expect(hers.total).not.toBeEmpty();

  await his.touch(c7);
  await expect(his.message).toContainText("C7");
  await his.sees(c7, "locked");
  await expect(his.cartSeats).toHaveCount(0);
  // His page does not even ask; the server would refuse it as well, and name the seat.
  const refused = await ben.page.context().request.post(`/api/v1/shows/${show.id}/holds`, {
    headers: { "idempotency-key": "tried-past-the-page" },
    data: { seats: [c7] },
  });
  expect(refused.status()).toBe(423);
  expect(await refused.json()).toMatchObject({ code: "seats_locked", seats: [{ seat: c7, label: "C7", state: "LOCKED" }] });

  await hers.letGo(c7);
  await his.sees(c7, "available", ONE_SECOND);
  await expect(hers.cartSeats).toHaveCount(0);
  await his.hold(c7);
  await hers.sees(c7, "locked", ONE_SECOND);
});

test("two people tap the same seat at once: exactly one gets it, the other is told its name and keeps the rest", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["C", "7"], ["D", "4"], ["D", "8"]]);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(show.seat("D", "4"));
  await his.hold(show.seat("D", "8"));

  await Promise.all([hers.touch(c7), his.touch(c7)]);

  await expect(async () => {
    const states = [await hers.seat(c7).getAttribute("data-state"), await his.seat(c7).getAttribute("data-state")];
    expect(states.sort()).toEqual(["locked", "mine"]);
  }).toPass();
  const annaWon = (await hers.seat(c7).getAttribute("data-state")) === "mine";
  const [winner, loser] = annaWon ? [hers, his] : [his, hers];
  await expect(winner.held()).toHaveCount(2);
  await expect(loser.held()).toHaveCount(1);
  await expect(loser.message).toContainText("C7");
});

test("all the seats of one visitor are counted and priced in the cart", async ({ request, anna }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"], ["C", "8"]]);
  const page = await anna.visit(show.id);
  for (const number of ["6", "7", "8"]) await page.hold(show.seat("C", number));
  await expect(page.cartSeats).toContainText(["C6", "C7", "C8"]);
  await page.letGo(show.seat("C", "7"));
  await expect(page.cartSeats).toHaveCount(2);
  await expect(page.held()).toHaveCount(2);
});

test("the list of seats is the same map in words", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  await expect(hers.page.getByRole("gridcell", { name: /^Row C seat 7, .+, available\b/ })).toHaveAttribute("id", `seat-${c7}`);
  await anna.page.getByRole("button", { name: "List of seats" }).click();
  await anna.page.getByRole("button", { name: /^Row C seat 7, .+, available\b/ }).click();
  await expect(hers.held()).toHaveCount(1);
  const his = await ben.visit(show.id);
  await his.sees(c7, "locked");
});
