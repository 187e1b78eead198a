// Seats together for a party: proposals, holding one, conflicts.
import { claimShow } from "../pages/catalogue.js";
import { messages } from "../pages/languages.js";
import { MapView } from "../pages/map.js";
import { press } from "../pages/show.js";
import { changeTerms } from "../pages/terms.js";
import { expect, test } from "../pages/visitors.js";

test("one tap proposes three seats together, the next holds them or shows others", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  const proposed = anna.page.locator('.seat[data-state="proposed"]');
  const names = async () => (await proposed.evaluateAll((seats) => seats.map((seat) => seat.id))).sort();
  await press(anna.page.getByTestId("party-more"));
  await expect(anna.page.getByTestId("party-count")).toHaveText("3 people");
  await press(anna.page.getByTestId("party-find"));
  await expect(proposed).toHaveCount(3);
  await expect(anna.page.getByTestId("party-proposal")).toContainText("together");
  const first = await names();
  for (const id of first) await expect(ben.page.locator(`#${id}`), "a proposal holds nothing").toHaveAttribute("data-state", "available");
  await press(anna.page.getByTestId("party-other"));
  await expect.poll(names).not.toEqual(first);
  await expect(proposed).toHaveCount(3);
  await press(anna.page.getByTestId("party-previous"));
  await expect.poll(names).toEqual(first);
  await press(anna.page.getByTestId("party-hold"));
  await expect(hers.heldSeats()).toHaveCount(3);
  await expect(proposed).toHaveCount(0);
  await expect(anna.page.locator(".seat:focus"), "the focus moves to a seat").toHaveAttribute("data-state", "mine");
  for (const id of first) await his.expectSeat(Number(id.slice("seat-".length)), "locked");
});

test("a proposal can be held on the map, closed, and swiped", async ({ request, anna }) => {
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  const proposed = anna.page.locator('.seat[data-state="proposed"]');
  const names = async () => (await proposed.evaluateAll((seats) => seats.map((seat) => seat.id))).sort();
  await press(anna.page.getByTestId("party-find"));
  await expect(proposed).toHaveCount(2);
  await press(anna.page.getByTestId("party-close"));
  await expect(proposed).toHaveCount(0);
  await expect(anna.page.getByTestId("party-find"), "the focus returns").toBeFocused();
  await press(anna.page.getByTestId("party-find"));
  await expect(proposed).toHaveCount(2);
  if (test.info().project.use.hasTouch) {
    const first = await names();
    const box = (await anna.page.getByTestId("party-proposal").boundingBox())!;
    const from = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    await new MapView(anna.page).swipe(from, { x: -80, y: 0 });
    await expect.poll(names).not.toEqual(first);
  }
  await hers.pressSeat(Number((await names())[0]!.slice("seat-".length)));
  await expect(hers.heldSeats()).toHaveCount(2);
});

test("a late proposal leaves the focus at another control", async ({ request, anna }) => {
  const show = await claimShow(request);
  await anna.visit(show.id);
  let answer = (): void => undefined;
  const isAnswered = new Promise<void>((resolve) => (answer = resolve));
  await anna.page.route("**/best?*", async (route) => {
    await isAnswered;
    await route.continue();
  }, { times: 1 });
  await press(anna.page.getByTestId("party-find"));
  const list = anna.page.getByRole("button", { name: "List of seats" });
  await list.focus();
  answer();
  await expect(anna.page.getByTestId("party-hold")).toBeVisible();
  // The focus would move with the next frame.
  await anna.page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  await expect(list).toBeFocused();
});

test("a conflict on another proposal keeps the held seats", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(show.seat("C", "7"));
  // On a phone the cart takes the place of the finder.
  test.skip(await anna.page.getByTestId("party-find").isHidden(), "the finder is hidden beside a cart");
  await press(anna.page.getByTestId("party-find"));
  // He holds one of the seats before her request arrives.
  await anna.page.route("**/holds/*", async (route) => {
    const { add } = route.request().postDataJSON() as { add: number[] };
    await his.hold(add[0]!);
    await route.continue();
  }, { times: 1 });
  await press(anna.page.getByTestId("party-hold"));
  await expect(hers.message).toContainText(messages("en")["map.you_keep_yours"]!);
  await expect(hers.heldSeats()).toHaveCount(1);
  expect(await hers.heldSeatNames()).toEqual(["C7"]);
  await expect(anna.page.getByTestId("accept-offer")).toHaveCount(0);
});

test("a chosen category limits the proposal", async ({ request, anna }) => {
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  const choice = anna.page.getByTestId("party-category");
  const category = await choice.locator("option").nth(1).getAttribute("value");
  await choice.selectOption(category);
  await press(anna.page.getByTestId("party-find"));
  await press(anna.page.getByTestId("party-hold"));
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

test("a show with two seats per person offers no more, on the map and in the finder", async ({ request, anna }) => {
  const show = await claimShow(request);
  await changeTerms(request, show.id, { per_person: 2 });
  const hers = await anna.visit(show.id);
  await expect(anna.page.getByTestId("cart-empty")).toContainText("up to 2");
  await expect(anna.page.getByTestId("party-count")).toHaveText("2 people");
  await expect(anna.page.getByTestId("party-more")).toHaveAttribute("aria-disabled", "true");
  await hers.hold(show.seat("C", "7"));
  await hers.hold(show.seat("C", "8"));
  await hers.pressSeat(show.seat("C", "9"));
  await expect(hers.message).toContainText("You have the most that one person can hold: 2.");
  // Screen readers announce a repeated message only if its text changes.
  const isChanged = anna.page.evaluate(async () => {
    const message = document.querySelector('[data-testid="message"]')!;
    await new Promise((resolve) => new MutationObserver(resolve).observe(message, { characterData: true, childList: true, subtree: true }));
  });
  await hers.pressSeat(show.seat("C", "9"));
  await isChanged;
  await expect(hers.message).toContainText("You have the most that one person can hold: 2.");
  await expect(hers.heldSeats()).toHaveCount(2);
});
