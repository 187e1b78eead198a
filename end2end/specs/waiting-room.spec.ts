// The waiting room of an on-sale: joining, draw, admission, and persistence of the ticket.
import { hideTab, showTab } from "../pages/tab-visibility.js";
import { claimShow } from "../pages/catalogue.js";
import { expectAccessible } from "../pages/accessibility.js";
import { messages } from "../pages/languages.js";
import { press, ShowPage } from "../pages/show.js";
import { signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";
import { openWaitingRoom, WaitingRoomPage, expectQueueState, pressTwice, tenMinutesBefore } from "../pages/waiting-room.js";

/** Enough to join before the opening. */
const OPENS_IN_MS = 25_000;
/** The opening of a room that the story opens earlier, once its visitor waits. */
const OPENS_LATER_MS = 3_600_000;
const OPENS_SOON_MS = 3_000;

test("a visitor joins, is drawn, is admitted and holds a seat; the ticket survives a reload and moves to another device", async ({
  request,
  anna,
  ben,
  newVisitor,
}) => {
  const show = await claimShow(request);
  const opensAt = Date.now() + OPENS_IN_MS;
  await openWaitingRoom(request, show.id, OPENS_IN_MS, 5);
  const [hers, his] = [anna.page, ben.page];

  // The query of the URL is kept through the waiting room.
  const address = `/shows/${show.id}?again=3-n0`;
  await hers.goto(address);
  await expectQueueState(hers, "outside");
  await press(hers.getByTestId("queue-join"));
  await expectQueueState(hers, "waiting");
  await expect(hers.getByTestId("queue-title")).toHaveText("You are in the waiting room");
  await expect(hers.getByTestId("queue-countdown")).toContainText("Opens in");
  await hers.reload();
  await expectQueueState(hers, "waiting");

  // Ben leaves and joins again.
  await his.goto(`/shows/${show.id}`);
  await press(his.getByTestId("queue-join"));
  await expectQueueState(his, "waiting");
  // One press asks, and counts only while the button has the focus.
  const leave = his.getByTestId("queue-leave");
  await press(leave);
  await expect(leave).toHaveText(messages("en")["queue.leave_sure"]!);
  await leave.blur();
  await expect(leave).toHaveText(messages("en")["queue.leave"]!);
  await pressTwice(leave);
  await expectQueueState(his, "outside");
  await press(his.getByTestId("queue-join"));
  await expectQueueState(his, "waiting");
  await expectAccessible(his, "waiting in front of a show");

  // The link moves the place to another device, after a question.
  const link = await hers.getByTestId("queue-link").inputValue();
  const phone = await newVisitor();
  await phone.page.goto(link);
  await press(phone.page.getByTestId("continue-here"));
  await expectQueueState(phone.page, "waiting");
  expect(new URL(phone.page.url()).pathname).toBe(`/shows/${show.id}`);
  await phone.page.close();

  const untilOpen = Math.max(0, opensAt - Date.now());
  await expectQueueState(hers, "inside", untilOpen + 20_000);
  await expectQueueState(his, "inside", 20_000);
  await expect(hers.locator(".waiting-room-draw")).toContainText("SHA-256");
  await expect(hers.getByTestId("queue-countdown")).toHaveText(/^\d+:\d\d left to choose your seats\.$/);
  await expect(hers.getByTestId("queue-enter")).toHaveAttribute("href", address);
  await press(hers.getByTestId("queue-enter"));
  const seats = new ShowPage(hers);
  await seats.waitUntilLive();

  // A refusal by the waiting room leads back to it, also while the map is still shown.
  const holds = `**/api/v1/shows/${show.id}/holds`;
  const problem = { type: "about:blank", title: "Waiting room", status: 429, code: "waiting_room", detail: "Your time is over." };
  await hers.route(holds, (route) =>
    route.fulfill({ status: 429, contentType: "application/problem+json", body: JSON.stringify(problem) }),
  );
  await seats.pressSeat(show.seat("C", "7"));
  await expectQueueState(hers, "inside", 20_000);
  expect(new URL(hers.url()).search).toBe("?queue");
  await hers.unroute(holds);
  await expect(hers.getByTestId("queue-enter")).toHaveAttribute("href", `/shows/${show.id}`);
  await press(hers.getByTestId("queue-enter"));
  await seats.waitUntilLive();
  await seats.pressSeat(show.seat("C", "7"));
  await seats.expectSeat(show.seat("C", "7"), "mine");
  await expect(seats.countdown).toBeVisible();

  // A stranger with the link declines, and has no place yet.
  const stranger = await newVisitor();
  await stranger.page.goto(link);
  await expectAccessible(stranger.page, "the question before a place moves");
  await press(stranger.page.getByTestId("own-place"));
  await expectQueueState(stranger.page, "outside");
});

test("a call is announced in the title of a background tab, and the visitor is admitted when the tab is visible", async ({ request, anna }) => {
  const show = await claimShow(request);
  await openWaitingRoom(request, show.id, OPENS_LATER_MS, 5);
  const hers = anna.page;
  await hers.goto(`/shows/${show.id}`);
  await expectQueueState(hers, "outside");
  const title = await hers.title();
  // The button is gone: the focus moves to the title.
  await hers.getByTestId("queue-join").focus();
  await hers.keyboard.press("Enter");
  await expectQueueState(hers, "waiting");
  await expect(hers.getByTestId("queue-title")).toBeFocused();
  await expect(hers).toHaveTitle(title);

  // A lost connection is reported until the next answer.
  const offline = hers.getByTestId("queue-offline");
  anna.allowNetworkErrors();
  await anna.context.setOffline(true);
  await expect(offline).toHaveText(messages("en")["queue.offline_kept"]!);
  await anna.context.setOffline(false);
  await expect(offline).toBeEmpty();

  await hideTab(hers);
  await openWaitingRoom(request, show.id, OPENS_SOON_MS, 5);
  await expect(hers).toHaveTitle(`${messages("en")["queue.called_title"]!} · ${title}`, { timeout: OPENS_SOON_MS + 20_000 });
  await showTab(hers);
  await expectQueueState(hers, "inside");
  await expect(hers).toHaveTitle(`${messages("en")["queue.inside_title"]!} · ${title}`);
});

test("an organiser opens a waiting room, sees the waiting visitors, and closes it", async ({ request, newVisitor, anna }) => {
  test.setTimeout(120_000);
  const { page } = await newVisitor({ reducedMotion: "reduce" });
  const show = await claimShow(request);
  const desk = new WaitingRoomPage(page);
  await signInAsManager(page);
  await page.goto(`/staff/${show.theatre}/shows/${show.id}`);
  await press(page.getByTestId("to-waiting-room"));
  await desk.expectState("off");
  await desk.fill("2020-01-01T10:00", 20, "On sale on Friday.");
  await press(page.getByTestId("room-on"));
  await expect(page.getByTestId("organiser-trouble")).toContainText("marked fields");
  await expect(page.locator("#opens-error")).toContainText("over already");
  await expectAccessible(page, "a waiting room that cannot open then");
  // Typed values are kept.
  await expect(page.locator('input[name="per_second"]')).toHaveValue("20");
  await page.locator('input[name="opens"]').fill(await tenMinutesBefore(request, show.id));
  await press(page.getByTestId("room-on"));
  await desk.expectState("early");
  await expect(page.getByTestId("room-pace")).toHaveText("20");

  const hers = anna.page;
  await hers.goto(`/shows/${show.id}`);
  await expectQueueState(hers, "outside");
  await press(hers.getByTestId("queue-join"));
  await expectQueueState(hers, "waiting");
  // The organiser's page polls until it is paused.
  await expect(page.getByTestId("room-waiting")).toHaveText("1", { timeout: 30_000 });
  await press(page.getByTestId("room-still"));
  await expect(page.getByTestId("room-renew")).toBeVisible();
  const usual = page.viewportSize();
  for (const [width, height] of [[390, 844], [820, 1180]] as const) {
    await page.setViewportSize({ width, height });
    await expectAccessible(page, `a waiting room, ${width} wide`);
  }
  if (usual) await page.setViewportSize(usual);

  await press(page.getByTestId("to-room-off"));
  await expect(page.getByTestId("off-waiting")).toContainText("One person");
  await expectAccessible(page, "what switching it off would mean");
  await page.locator("#room-reason").fill("No crowd came.");
  await page.locator("#room-sure").check();
  await press(page.getByTestId("room-off"));
  await desk.expectState("off");
  // In a new tab: the old one would open the seats at its next poll.
  await hers.close();
  const seats = await (await anna.newTab()).visit(show.id);
  await seats.hold(show.seat("C", "7"));
});
