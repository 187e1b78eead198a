// The line to the box office breaks and comes back: what was said of it goes, what was said of seats stays.
import { claimShow } from "../pages/catalogue.js";
import { messages } from "../pages/languages.js";
import { press, ShowPage } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

const UNREACHABLE = messages("en")["map.unreachable"]!;
// Four tries, with pauses between them.
const GIVEN_UP_MS = 20_000;

test("that the box office cannot be reached is said until it can, and the seat can be had then", async ({ request, anna }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  anna.mayBeCutOff();
  await anna.context.setOffline(true);
  await expect(anna.page.getByTestId("live")).toHaveAttribute("data-state", "offline");
  await hers.touch(c7);
  await expect(hers.message).toHaveText(UNREACHABLE, { timeout: GIVEN_UP_MS });

  await anna.context.setOffline(false);
  await hers.live();
  await expect(hers.message).toBeEmpty();
  await hers.hold(c7);
});

test("what is said of a seat stays when the line comes back", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(c7);
  await his.sees(c7, "locked");
  await his.touch(c7);
  await expect(his.message).toContainText("C7 is held by someone else");

  ben.mayBeCutOff();
  await ben.context.setOffline(true);
  await expect(ben.page.getByTestId("live")).toHaveAttribute("data-state", "offline");
  await ben.context.setOffline(false);
  await his.live();
  await expect(his.message).toContainText("C7 is held by someone else");
});

test("a room that a busy box office did not give comes by itself, and nobody is told to check a connection", async ({ request, anna }) => {
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
  await hers.live();
  await expect(why).toHaveCount(0);
  await hers.hold(show.seat("C", "7"));
});

test("a payment that found nobody says so until the line is back", async ({ request, anna }) => {
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  await hers.hold(show.seat("C", "7"));
  await hers.fillDetails("Anna", "anna@example.org");
  anna.mayBeCutOff();
  await anna.context.setOffline(true);
  const pay = anna.page.getByTestId("pay");
  await press(pay);
  const trouble = anna.page.getByTestId("pay-error");
  await expect(trouble).toHaveText(messages("en")["pay.unreachable"]!, { timeout: GIVEN_UP_MS });
  await anna.context.setOffline(false);
  await hers.live();
  await expect(trouble).toBeEmpty();
  // What was typed is still there, and the button goes to the payment page.
  await press(pay);
  await expect(anna.page.locator("#pay")).toBeVisible();
});
