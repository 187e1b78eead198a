// Party first: seats together in one tap, other places, and a kind word when somebody was faster.
import { claimShow } from "../pages/catalogue.js";
import { messages } from "../pages/languages.js";
import { press } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

test("three seats together in one tap, and another place in the next", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  await press(anna.page.getByTestId("party-more"));
  await expect(anna.page.getByTestId("party-count")).toHaveText("3 people");
  await press(anna.page.getByTestId("party-find"));
  await expect(hers.held()).toHaveCount(3);
  const first = await hers.heldNames();
  await press(anna.page.getByTestId("party-other"));
  await expect(async () => {
    await expect(hers.held()).toHaveCount(3);
    expect(await hers.heldNames()).not.toEqual(first);
  }).toPass();
  // The first place is free for others again.
  const his = await ben.visit(show.id);
  for (const name of first) await his.sees(show.seat(name.slice(0, 1), name.slice(1)), "available");
});

test("another place that somebody else is taking costs nobody the place they have", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await press(anna.page.getByTestId("party-find"));
  await expect(hers.held()).toHaveCount(2);
  const first = await hers.heldNames();
  // His is the quicker line: one of the seats is his before her question arrives.
  await anna.page.route("**/holds/*", async (route) => {
    const { add } = route.request().postDataJSON() as { add: number[] };
    await his.hold(add[0]!);
    await route.continue();
  }, { times: 1 });
  await press(anna.page.getByTestId("party-other"));
  await expect(hers.message).toContainText(messages("en")["map.you_keep_yours"]!);
  await expect(hers.held()).toHaveCount(2);
  expect(await hers.heldNames()).toEqual(first);
  await expect(anna.page.getByTestId("accept-offer")).toHaveCount(0);
});

test("one category, and more people than it has seats together", async ({ request, anna }) => {
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  const choice = anna.page.getByTestId("party-category");
  const category = await choice.locator("option").nth(1).getAttribute("value");
  await choice.selectOption(category);
  await press(anna.page.getByTestId("party-find"));
  await expect(hers.held()).toHaveCount(2);
  const kinds = await hers.cart.locator(".cart-seat-category").allTextContents();
  expect(new Set(kinds).size).toBe(1);
});

test("whose seat went to another is offered the next best, one tap away", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  // Her line is slow: she still sees the seat free when it is his already.
  await anna.page.route("**/holds", async (route) => {
    await his.hold(c7);
    await route.continue();
  }, { times: 1 });
  await hers.touch(c7);
  await expect(hers.message).toContainText("C7");
  const offer = anna.page.getByTestId("accept-offer");
  await expect(offer).toContainText("instead");
  await press(offer);
  await expect(hers.held()).toHaveCount(1);
  expect(await hers.heldNames()).not.toContain("C7");
});
