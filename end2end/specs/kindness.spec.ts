// Hold with kindness: who was slower is told by how much, who waits is told when, who was too late gets back what
// is left.
import { claimShow } from "../pages/catalogue.js";
import { takeTheRest } from "../pages/crowd.js";
import { press } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

const SHORT_HOLDS = process.env.SHORT_HOLD_URL ?? "";

test("who was slower is told by how much, keeps the rest, and is offered a seat beside it", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["C", "7"], ["D", "3"], ["D", "4"], ["D", "5"]]);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await his.hold(show.seat("D", "4"));
  // His line is slow: he still sees the seat free when it is hers already.
  await ben.page.route("**/holds/*", async (route) => {
    await hers.hold(c7);
    await route.continue();
  }, { times: 1 });
  await his.touch(c7);
  await expect(his.message).toHaveText(/^C7 was taken (less than 0\.1|\d+\.\d) s before you\. Your other seats are safe\.$/);
  expect(await his.heldNames()).toEqual(["D4"]);
  await expect(ben.page.getByTestId("accept-offer")).toHaveText(/^Take D[35] instead, /);
  await press(ben.page.getByTestId("accept-offer"));
  await expect(his.held()).toHaveCount(2);
  expect(await his.heldNames()).toContain("D4");
  expect((await his.heldNames()).filter((name) => /^D[35]$/.test(name))).toHaveLength(1);
});

test("what one must know can be read while the cart lies over the map", async ({ request, anna }) => {
  test.skip(!test.info().project.use.hasTouch, "beside the map it covers nothing");
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

test("who taps a seat that another holds is offered the nearest free one, and takes it in one tap", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"], ["C", "8"]]);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(c7);
  await his.sees(c7, "locked");
  await his.touch(c7);
  await expect(his.message).toHaveText("C7 is held by someone else.");
  const offer = ben.page.getByTestId("accept-offer");
  await expect(offer).toHaveText(/^Take C[68] instead, /);
  // One may wait for that very seat all the same.
  await expect(ben.page.getByTestId("watch-seat")).toBeVisible();
  await press(offer);
  await expect(his.held()).toHaveCount(1);
  expect((await his.heldNames())[0]).toMatch(/^C[68]$/);
  await expect(his.message).toBeEmpty();
});

test("nobody is offered anything where nothing else is free", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["B", "3"]], { mostSeats: 100 });
  const b3 = show.seat("B", "3");
  await takeTheRest(show, [b3]);
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(b3);
  await his.sees(b3, "locked");
  await his.touch(b3);
  await expect(his.message).toHaveText("B3 is held by someone else.");
  await expect(ben.page.getByTestId("watch-seat")).toBeVisible();
  await expect(ben.page.getByTestId("accept-offer")).toHaveCount(0);
});

test("who wants another's seat is told when it is free, in the page and in the title, and takes it in one tap", async ({ request, anna, ben, newVisitor }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  const title = await ben.page.title();
  await hers.hold(c7);
  await his.sees(c7, "locked");
  await his.touch(c7);
  await expect(his.message).toContainText("C7 is held by someone else");
  await press(ben.page.getByTestId("watch-seat"));
  const news = ben.page.getByTestId("news");
  await expect(news).toHaveText("We tell you here when C7 is free.");
  // Said when a screen reader is free to, not in the middle of a word.
  await expect(news).toHaveRole("status");
  await expect(his.message).toBeEmpty();

  await hers.letGo(c7);
  await expect(news).toContainText("C7 is free now");
  await expect(ben.page).toHaveTitle(`C7 is free · ${title}`);

  // A third one is faster still: the offer is withdrawn, the wish stays.
  const third = await (await newVisitor()).visit(show.id);
  await third.hold(c7);
  await expect(news).toHaveText("We tell you here when C7 is free.");
  await expect(ben.page.getByTestId("accept-offer")).toHaveCount(0);
  await expect(ben.page).toHaveTitle(title);
  await third.letGo(c7);
  await press(ben.page.getByTestId("accept-offer"));
  await expect(his.held()).toHaveCount(1);
  await his.sees(c7, "mine");
  await expect(ben.page).toHaveTitle(title);
});

test("a seat one waits for is sold: that is said once, and then no more", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(c7);
  await his.sees(c7, "locked");
  await his.touch(c7);
  await press(ben.page.getByTestId("watch-seat"));
  await hers.checkOut("Anna", "anna@example.org");
  await press(anna.page.locator("#pay"));
  await expect(ben.page.getByTestId("news")).toContainText("C7 has been sold");
});

test("after the time ran out one tap gets back what is still free, and names what is gone", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"]]);
  const [c6, c7] = [show.seat("C", "6"), show.seat("C", "7")];
  const hers = await anna.visit(show.id, SHORT_HOLDS);
  const his = await ben.visit(show.id);
  await hers.hold(c6);
  await hers.hold(c7);
  await expect(hers.message).toContainText("Your time is over");
  await expect(hers.cartSeats).toHaveCount(0);
  await his.hold(c7);
  await press(anna.page.getByTestId("ask-again"));
  await expect(hers.held()).toHaveCount(1);
  expect(await hers.heldNames()).toEqual(["C6"]);
  await expect(hers.message).toContainText("C7");
  await expect(hers.message).toContainText("Your other seats are safe.");
});

test("the countdown is calm while there is time and warns when there is little", async ({ request, anna, ben }) => {
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
