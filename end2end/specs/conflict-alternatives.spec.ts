// Seat conflicts and their alternatives: nearest free seat, watched seats, remaining seats after expiry.
import { claimShow } from "../pages/catalogue.js";
import { holdAllExcept } from "../pages/api-visitors.js";
import { press } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

const SHORT_HOLDS = process.env.SHORT_HOLD_URL ?? "";

test("the loser of a race sees by how much, keeps other seats, and is offered an adjacent one", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["C", "7"], ["D", "3"], ["D", "4"], ["D", "5"]]);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await his.hold(show.seat("D", "4"));
  // His request is delayed: he still sees the seat as free when she holds it.
  await ben.page.route("**/holds/*", async (route) => {
    await hers.hold(c7);
    await route.continue();
  }, { times: 1 });
  await his.pressSeat(c7);
  await expect(his.message).toHaveText(/^C7 was taken (less than 0\.1|\d+\.\d) s before you\. You still have your other seats\.$/);
  expect(await his.heldSeatNames()).toEqual(["D4"]);
  await expect(ben.page.getByTestId("accept-offer")).toHaveText(/^Take D[35] instead, /);
  await press(ben.page.getByTestId("accept-offer"));
  await expect(his.heldSeats()).toHaveCount(2);
  expect(await his.heldSeatNames()).toContain("D4");
  expect((await his.heldSeatNames()).filter((name) => /^D[35]$/.test(name))).toHaveLength(1);
});

test("a message is visible above the open cart", async ({ request, anna }) => {
  test.skip(!test.info().project.use.hasTouch, "the cart is beside the map");
  const show = await claimShow(request, [["C", "7"], ["C", "8"]]);
  const hers = await anna.visit(show.id);
  await hers.hold(show.seat("C", "7"));
  await hers.hold(show.seat("C", "8"));
  await hers.openCart();
  await anna.page.route("**/holds/*", async (route) => {
    const problem = { type: "about:blank", title: "Not now", status: 503, detail: "", code: "lock_store_unavailable" };
    await route.fulfill({ status: 503, contentType: "application/problem+json", body: JSON.stringify(problem) });
  });
  await press(anna.page.locator(".cart-seat-remove").first());
  await expect(hers.message).not.toBeEmpty();
  const isOnTop = (element: Element): boolean => {
    const { x, y, width, height } = element.getBoundingClientRect();
    return element.contains(document.elementFromPoint(x + width / 2, y + height / 2));
  };
  await expect.poll(() => hers.message.evaluate(isOnTop)).toBe(true);
});

test("a tap on a held seat offers the nearest free one, which one tap takes", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"], ["C", "8"]]);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(c7);
  await his.expectSeat(c7, "locked");
  await his.pressSeat(c7);
  await expect(his.message).toHaveText("C7 is held by someone else.");
  const offer = ben.page.getByTestId("accept-offer");
  await expect(offer).toHaveText(/^Take C[68] instead, /);
  // The held seat can still be watched.
  await expect(ben.page.getByTestId("watch-seat")).toBeVisible();
  await press(offer);
  await expect(his.heldSeats()).toHaveCount(1);
  expect((await his.heldSeatNames())[0]).toMatch(/^C[68]$/);
  await expect(his.message).toBeEmpty();
});

test("without free seats no alternative is offered", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["B", "3"]], { maxSeats: 100 });
  const b3 = show.seat("B", "3");
  await holdAllExcept(show, [b3]);
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(b3);
  await his.expectSeat(b3, "locked");
  await his.pressSeat(b3);
  await expect(his.message).toHaveText("B3 is held by someone else.");
  await expect(ben.page.getByTestId("watch-seat")).toBeVisible();
  await expect(ben.page.getByTestId("accept-offer")).toHaveCount(0);
});

test("a watched seat that becomes free is announced in page and title, and one tap takes it", async ({ request, anna, ben, newVisitor }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  const title = await ben.page.title();
  await hers.hold(c7);
  await his.expectSeat(c7, "locked");
  await his.pressSeat(c7);
  await expect(his.message).toContainText("C7 is held by someone else");
  await press(ben.page.getByTestId("watch-seat"));
  const news = ben.page.getByTestId("news");
  await expect(news).toHaveText("We’ll notify you here if C7 is released.");
  // A polite live region.
  await expect(news).toHaveRole("status");
  await expect(his.message).toBeEmpty();

  await hers.release(c7);
  await expect(news).toContainText("C7 is free now");
  await expect(ben.page).toHaveTitle(`C7 is free · ${title}`);

  // A third visitor is faster: the offer is withdrawn, the watch stays.
  const third = await (await newVisitor()).visit(show.id);
  await third.hold(c7);
  await expect(news).toHaveText("We’ll notify you here if C7 is released.");
  await expect(ben.page.getByTestId("accept-offer")).toHaveCount(0);
  await expect(ben.page).toHaveTitle(title);
  await third.release(c7);
  await press(ben.page.getByTestId("accept-offer"));
  await expect(his.heldSeats()).toHaveCount(1);
  await his.expectSeat(c7, "mine");
  await expect(ben.page).toHaveTitle(title);
});

test("a watched seat that is sold is announced", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(c7);
  await his.expectSeat(c7, "locked");
  await his.pressSeat(c7);
  await press(ben.page.getByTestId("watch-seat"));
  await hers.checkOut("Anna", "anna@example.org");
  await press(anna.page.locator("#pay"));
  await expect(ben.page.getByTestId("news")).toContainText("C7 has been sold");
});

test("after expiry one tap holds the seats that are still free and names the others", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"]]);
  const [c6, c7] = [show.seat("C", "6"), show.seat("C", "7")];
  const hers = await anna.visit(show.id, SHORT_HOLDS);
  const his = await ben.visit(show.id);
  await hers.hold(c6);
  await hers.hold(c7);
  await expect(hers.message).toContainText("Your time is up");
  await expect(hers.cartSeats).toHaveCount(0);
  await his.expectSeat(c7, "available");
  await his.hold(c7);
  await press(anna.page.getByTestId("ask-again"));
  await expect(hers.heldSeats()).toHaveCount(1);
  expect(await hers.heldSeatNames()).toEqual(["C6"]);
  await expect(hers.message).toContainText("C7");
  await expect(hers.message).toContainText("You still have your other seats.");
});

test("the countdown is urgent only near the expiry", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"]]);
  const hers = await anna.visit(show.id);
  await hers.hold(show.seat("C", "6"));
  await expect(hers.countdown).toHaveAttribute("data-urgent", "false");
  await expect(anna.page.getByTestId("extend")).toBeHidden();
  const his = await ben.visit(show.id, SHORT_HOLDS);
  await his.hold(show.seat("C", "7"));
  await expect(his.countdown).toHaveAttribute("data-urgent", "true");
  await expect(ben.page.getByTestId("extend")).toBeVisible();
});
