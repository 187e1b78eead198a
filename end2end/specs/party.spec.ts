// Seats together for a party: one tap, other suggestions, conflicts.
import { claimShow } from "../pages/catalogue.js";
import { messages } from "../pages/languages.js";
import { press } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

test("one tap holds three seats together, the next one holds another suggestion", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  await press(anna.page.getByTestId("party-more"));
  await expect(anna.page.getByTestId("party-count")).toHaveText("3 people");
  await press(anna.page.getByTestId("party-find"));
  await expect(hers.heldSeats()).toHaveCount(3);
  const first = await hers.heldSeatNames();
  await press(anna.page.getByTestId("party-other"));
  await expect(async () => {
    await expect(hers.heldSeats()).toHaveCount(3);
    expect(await hers.heldSeatNames()).not.toEqual(first);
  }).toPass();
  // The first seats are free again.
  const his = await ben.visit(show.id);
  for (const name of first) await his.expectSeat(show.seat(name.slice(0, 1), name.slice(1)), "available");
});

test("a conflict on another suggestion keeps the held seats", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await press(anna.page.getByTestId("party-find"));
  await expect(hers.heldSeats()).toHaveCount(2);
  const first = await hers.heldSeatNames();
  // He holds one of the seats before her request arrives.
  await anna.page.route("**/holds/*", async (route) => {
    const { add } = route.request().postDataJSON() as { add: number[] };
    await his.hold(add[0]!);
    await route.continue();
  }, { times: 1 });
  await press(anna.page.getByTestId("party-other"));
  await expect(hers.message).toContainText(messages("en")["map.you_keep_yours"]!);
  await expect(hers.heldSeats()).toHaveCount(2);
  expect(await hers.heldSeatNames()).toEqual(first);
  await expect(anna.page.getByTestId("accept-offer")).toHaveCount(0);
});

test("a chosen category limits the suggestion", async ({ request, anna }) => {
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  const choice = anna.page.getByTestId("party-category");
  const category = await choice.locator("option").nth(1).getAttribute("value");
  await choice.selectOption(category);
  await press(anna.page.getByTestId("party-find"));
  await expect(hers.heldSeats()).toHaveCount(2);
  const kinds = await hers.cart.locator(".cart-seat-category").allTextContents();
  expect(new Set(kinds).size).toBe(1);
});

test("the loser of a race is offered the next best seat", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  // Her request is delayed: she still sees the seat as free when he holds it.
  await anna.page.route("**/holds", async (route) => {
    await his.hold(c7);
    await route.continue();
  }, { times: 1 });
  await hers.pressSeat(c7);
  await expect(hers.message).toContainText("C7");
  const offer = anna.page.getByTestId("accept-offer");
  await expect(offer).toContainText("instead");
  await press(offer);
  await expect(hers.heldSeats()).toHaveCount(1);
  expect(await hers.heldSeatNames()).not.toContain("C7");
});
