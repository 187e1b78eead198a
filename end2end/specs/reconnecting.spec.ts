// Lost and restored connections: messages about the connection disappear, messages about seats stay.
import { claimShow } from "../pages/catalogue.js";
import { messages } from "../pages/languages.js";
import { NetworkProxy } from "../pages/network-proxy.js";
import { press, ShowPage } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

const UNREACHABLE = messages("en")["map.unreachable"]!;
// Four attempts with pauses.
const GIVEN_UP_MS = 20_000;
// The longest pause before an attempt to reconnect is ten seconds.
const RECONNECTED_MS = 15_000;

test("an unreachable server is reported until it is back, and the seat can then be held", async ({ request, anna }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  anna.allowNetworkErrors();
  await anna.context.setOffline(true);
  await expect(anna.page.getByTestId("live")).toHaveAttribute("data-state", "offline");
  await hers.pressSeat(c7);
  await expect(hers.message).toHaveText(UNREACHABLE, { timeout: GIVEN_UP_MS });

  await anna.context.setOffline(false);
  await hers.waitUntilLive();
  await expect(hers.message).toBeEmpty();
  await hers.hold(c7);
});

test("a message about a seat stays after a reconnection", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(c7);
  await his.expectSeat(c7, "locked");
  await his.pressSeat(c7);
  await expect(his.message).toContainText("C7 is held by someone else");

  ben.allowNetworkErrors();
  await ben.context.setOffline(true);
  await expect(ben.page.getByTestId("live")).toHaveAttribute("data-state", "offline");
  await ben.context.setOffline(false);
  await his.waitUntilLive();
  await expect(his.message).toContainText("C7 is held by someone else");
});

test("a plan refused by an overloaded server loads later by itself, without a hint about the connection", async ({ request, anna }) => {
  const show = await claimShow(request);
  let isBusy = true;
  await anna.page.route("**/plan", async (route) => {
    if (!isBusy) return route.continue();
    const problem = { type: "about:blank", title: "Too much at once", status: 503, detail: "", code: "overloaded" };
    return route.fulfill({ status: 503, contentType: "application/problem+json", body: JSON.stringify(problem) });
  });
  await anna.page.goto(`/shows/${show.id}`);
  const why = anna.page.locator(".room-unreachable p");
  await expect(why).toHaveText(messages("en")["problem.overloaded"]!);
  isBusy = false;
  const hers = new ShowPage(anna.page);
  await hers.waitUntilLive();
  await expect(why).toHaveCount(0);
  await hers.hold(show.seat("C", "7"));
});

test("a section opened without a connection then shows seats that were taken before", async ({ request, anna }) => {
  test.skip(test.info().project.name !== "laptop", "the same on every screen");
  const show = await claimShow(request, [], { minSeats: 2_501, maxSeats: Infinity });
  const { page } = anna;
  const proxy = await NetworkProxy.start();
  const hers = await anna.visit(show.id, proxy.url);
  const openSection = (section: number) => page.evaluate((name) => void (location.hash = name), `section-${section}`);
  const free = page.locator('[role="gridcell"][data-state="available"]');
  await openSection(1);
  await expect(free.first()).toBeAttached();
  const seat = Number((await free.last().getAttribute("id"))!.slice("seat-".length));
  await openSection(0);
  await expect(hers.seat(seat)).toHaveCount(0);
  await expect(free.first()).toBeAttached();

  // Of another section the page receives only the number of free seats.
  const left = page.getByTestId("seats-left");
  const before = await left.innerText();
  const held = await request.post(`/api/v1/shows/${show.id}/holds`, { headers: { "idempotency-key": `${show.id}-${seat}` }, data: { seats: [seat] } });
  expect(held.status()).toBe(201);
  await expect(left).not.toHaveText(before);

  anna.allowNetworkErrors();
  await proxy.disconnect();
  await expect(page.getByTestId("live")).not.toHaveAttribute("data-state", "live");
  await openSection(1);
  await expect(hers.seat(seat)).toBeAttached();
  await proxy.reconnect();
  await hers.expectSeat(seat, "locked", RECONNECTED_MS);
});

test("a hold that cannot be read at first is read again", async ({ request, anna }) => {
  test.skip(test.info().project.name !== "laptop", "the same on every screen");
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  await (await anna.visit(show.id)).hold(c7);
  const tab = await anna.newTab();
  anna.allowNetworkErrors();
  let [reads, isDown] = [0, true];
  await tab.page.route("**/hold", async (route) => {
    reads += 1;
    await (isDown ? route.abort() : route.continue());
  });
  const second = await tab.visit(show.id);
  // At once, after the report of the live map, and after beacons. Further ones are retries.
  await expect.poll(() => reads).toBeGreaterThan(3);
  isDown = false;
  await second.expectSeat(c7, "mine");
});

test("a failed checkout request is reported until the connection is back", async ({ request, anna }) => {
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  await hers.hold(show.seat("C", "7"));
  await hers.fillDetails("Anna", "anna@example.org");
  anna.allowNetworkErrors();
  await anna.context.setOffline(true);
  const pay = anna.page.getByTestId("pay");
  await press(pay);
  const trouble = anna.page.getByTestId("pay-error");
  await expect(trouble).toHaveText(messages("en")["pay.unreachable"]!, { timeout: GIVEN_UP_MS });
  await anna.context.setOffline(false);
  await hers.waitUntilLive();
  await expect(trouble).toBeEmpty();
  // Typed values are kept, and the button opens the payment page.
  await press(pay);
  await expect(anna.page.locator("#pay")).toBeVisible();
});
