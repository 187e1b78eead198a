// On-sale day: people wait in front of a show, are drawn, and come in; their place stays theirs meanwhile.
import { claimShow } from "../pages/catalogue.js";
import { expectForEveryone } from "../pages/everyone.js";
import { press, ShowPage } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";
import { openWaitingRoom, standsAs } from "../pages/waiting-room.js";

const OPENS_IN_MS = 25_000;

test("one waits, is drawn, comes in, and takes a seat; the place survives a reload and moves to another device", async ({
  request,
  anna,
  ben,
  newVisitor,
}) => {
  const show = await claimShow(request);
  const opensAt = Date.now() + OPENS_IN_MS;
  await openWaitingRoom(request, show.id, OPENS_IN_MS, 5);
  const [hers, his] = [anna.page, ben.page];

  await hers.goto(`/shows/${show.id}`);
  await standsAs(hers, "outside");
  await press(hers.getByTestId("queue-join"));
  await standsAs(hers, "waiting");
  await expect(hers.getByTestId("queue-title")).toHaveText("You are in");
  await expect(hers.getByTestId("queue-countdown")).toContainText("Opens in");
  await hers.reload();
  await standsAs(hers, "waiting");

  // Ben thinks better of it, then better of that.
  await his.goto(`/shows/${show.id}`);
  await press(his.getByTestId("queue-join"));
  await standsAs(his, "waiting");
  await press(his.getByTestId("queue-leave"));
  await standsAs(his, "outside");
  await press(his.getByTestId("queue-join"));
  await standsAs(his, "waiting");
  await expectForEveryone(his, "waiting in front of a show");

  // Her phone is opened by her link.
  const link = await hers.getByTestId("queue-link").inputValue();
  const phone = await newVisitor();
  await phone.page.goto(link);
  expect(new URL(phone.page.url()).pathname).toBe(`/shows/${show.id}`);
  await standsAs(phone.page, "waiting");
  await phone.page.close();

  const untilOpen = Math.max(0, opensAt - Date.now());
  await standsAs(hers, "inside", untilOpen + 20_000);
  await standsAs(his, "inside", 20_000);
  await expect(hers.locator(".waiting-room-draw")).toContainText("SHA-256");
  await press(hers.getByTestId("queue-enter"));
  const seats = new ShowPage(hers);
  await seats.live();
  await seats.touch(show.seat("C", "7"));
  await seats.sees(show.seat("C", "7"), "mine");
  await expect(seats.countdown).toBeVisible();
});
