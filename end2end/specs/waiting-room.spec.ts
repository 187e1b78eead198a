// On-sale day: people wait in front of a show, are drawn, and come in; their place stays theirs meanwhile.
import { lookAway, lookBack } from "../pages/another-tab.js";
import { claimShow } from "../pages/catalogue.js";
import { expectForEveryone } from "../pages/everyone.js";
import { messages } from "../pages/languages.js";
import { press, ShowPage } from "../pages/show.js";
import { signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";
import { openWaitingRoom, RoomDesk, standsAs, tenMinutesBefore } from "../pages/waiting-room.js";

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

  // What an address asks for is still asked for behind the door.
  const address = `/shows/${show.id}?again=3-n0`;
  await hers.goto(address);
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
  await expect(hers.getByTestId("queue-enter")).toHaveAttribute("href", address);
  await press(hers.getByTestId("queue-enter"));
  const seats = new ShowPage(hers);
  await seats.live();
  await seats.touch(show.seat("C", "7"));
  await seats.sees(show.seat("C", "7"), "mine");
  await expect(seats.countdown).toBeVisible();
});

test("whoever looks at another tab when their turn comes reads so in its title, and comes in once they look", async ({ request, anna }) => {
  const show = await claimShow(request);
  await openWaitingRoom(request, show.id, OPENS_IN_MS, 5);
  const hers = anna.page;
  await hers.goto(`/shows/${show.id}`);
  await standsAs(hers, "outside");
  const title = await hers.title();
  // Whoever goes by the keyboard stands at what is said of it: the button is gone.
  await hers.getByTestId("queue-join").focus();
  await hers.keyboard.press("Enter");
  await standsAs(hers, "waiting");
  await expect(hers.getByTestId("queue-title")).toBeFocused();
  await expect(hers).toHaveTitle(title);

  await lookAway(hers);
  await expect(hers).toHaveTitle(`${messages("en")["queue.called_title"]!} · ${title}`, { timeout: OPENS_IN_MS + 20_000 });
  await lookBack(hers);
  await standsAs(hers, "inside");
  await expect(hers).toHaveTitle(`${messages("en")["queue.inside_title"]!} · ${title}`);
});

test("an organiser has people wait from a page, sees them, and lets them in", async ({ request, newVisitor, anna }) => {
  test.setTimeout(120_000);
  const { page } = await newVisitor({ reducedMotion: "reduce" });
  const show = await claimShow(request);
  const desk = new RoomDesk(page);
  await signInAsManager(page);
  await page.goto(`/staff/${show.theatre}/shows/${show.id}`);
  await press(page.getByTestId("to-waiting-room"));
  await desk.says("off");
  await desk.fill("2020-01-01T10:00", 20, "On sale on Friday.");
  await press(page.getByTestId("room-on"));
  await expect(page.getByTestId("organiser-trouble")).toContainText("marked fields");
  await expect(page.locator("#opens-error")).toContainText("over already");
  await expectForEveryone(page, "a waiting room that cannot open then");
  // What was typed is still there.
  await expect(page.locator('input[name="per_second"]')).toHaveValue("20");
  await page.locator('input[name="opens"]').fill(await tenMinutesBefore(request, show.id));
  await press(page.getByTestId("room-on"));
  await desk.says("early");
  await expect(page.getByTestId("room-pace")).toHaveText("20");

  const hers = anna.page;
  await hers.goto(`/shows/${show.id}`);
  await standsAs(hers, "outside");
  await press(hers.getByTestId("queue-join"));
  await standsAs(hers, "waiting");
  // The organiser's page asks again by itself, until it is told to stand still.
  await expect(page.getByTestId("room-waiting")).toHaveText("1", { timeout: 30_000 });
  await press(page.getByTestId("room-still"));
  await expect(page.getByTestId("room-renew")).toBeVisible();
  const usual = page.viewportSize();
  for (const [width, height] of [[390, 844], [820, 1180]] as const) {
    await page.setViewportSize({ width, height });
    await expectForEveryone(page, `a waiting room, ${width} wide`);
  }
  if (usual) await page.setViewportSize(usual);

  await press(page.getByTestId("to-room-off"));
  await expect(page.getByTestId("off-waiting")).toContainText("One person");
  await expectForEveryone(page, "what switching it off would mean");
  await page.locator("#room-reason").fill("No crowd came.");
  await page.locator("#room-sure").check();
  await press(page.getByTestId("room-off"));
  await desk.says("off");
  // In a tab of its own: the other one goes to the seats by itself, whenever it asks next.
  await hers.close();
  const seats = await (await anna.newTab()).visit(show.id);
  await seats.hold(show.seat("C", "7"));
});
