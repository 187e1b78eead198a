// An organiser imports a room, creates a screen, sets prices, plans a week and sells a show. The show is cancelled, and
// its buyer is refunded.
import { randomUUID } from "node:crypto";

import type { Locator, Page } from "@playwright/test";

import { expectAccessible, expectFitsPhone } from "../pages/accessibility.js";
import { expectBookingState, payWith } from "../pages/paying.js";
import { fillWeek } from "../pages/schedule.js";
import { press } from "../pages/show.js";
import { signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";

const THEATRE = "/staff/kupfer-berlin";
/** A second theatre, whose prices no other test changes. */
const ELSEWHERE = "meridian-berlin";
const CALM = { reducedMotion: "reduce" } as const;

/** Returns an imported plan: two sections with equal row labels, Cyrillic script, a seat "14 bis". */
function plan(isWrong: boolean): string {
  const seats = (y: number, numbers: string[]) =>
    numbers.map((number, at) => ({ seat_guid: `${y}-${at}`, seat_number: number, position: { x: at * 30, y }, category: "Партер" }));
  const row = (label: string, y: number, numbers: string[]) => ({ row_number: label, position: { x: 0, y: 0 }, seats: seats(y, numbers) });
  return JSON.stringify({
    name: "Зал на набережной",
    size: { width: 400, height: 300 },
    categories: [{ name: "Партер", color: "#7f4a91" }],
    zones: [
      { name: "Партер", position: { x: 0, y: 0 }, rows: [row("А", 0, ["13", "14", isWrong ? "14" : "14 bis", "15"]), row("12", 40, ["4", "3", "2", "1"])] },
      { name: "Балкон", position: { x: 0, y: 160 }, rows: [row("А", 0, ["13", "14", "15"])] },
    ],
  });
}

async function importPlan(page: Page, isWrong: boolean): Promise<void> {
  await page.goto(`${THEATRE}/screens`);
  await page.locator("#plan-file").setInputFiles({ name: "room.json", mimeType: "application/json", buffer: Buffer.from(plan(isWrong)) });
  await expect(page.locator("[data-plan-text]")).not.toHaveValue("");
  await press(page.getByTestId("import"));
}

test("a room is imported, a week is planned and sold, and a show is cancelled", async ({ newVisitor, anna }) => {
  test.setTimeout(120_000);
  const { page } = await newVisitor(CALM);
  const name = `Zelt ${randomUUID().slice(0, 8)}`;
  await signInAsManager(page);

  await importPlan(page, true);
  await expect(page.getByTestId("findings")).toContainText("Партер А14");
  await expectAccessible(page, "a room that is refused");
  await importPlan(page, false);
  await expect(page.getByTestId("preview").locator(".preview-number")).toHaveCount(11);
  await expectAccessible(page, "a room that was brought");
  // Two rows do not state where the stage is.
  await expect(page.getByTestId("new-screen")).toHaveCount(0);
  await page.locator('select[name="kind"]').selectOption("screen");
  await press(page.getByTestId("set-focus"));
  await expect(page.locator(".preview-focus")).toHaveCount(1);
  await expectAccessible(page, "a room with its screen");
  await page.locator('input[name="name"]').fill(name);
  await press(page.getByTestId("new-screen"));
  await expect(page.getByTestId("screens")).toContainText(name);

  // Three house seats in every show: two selected by keyboard, one typed.
  await press(page.getByTestId("screen").filter({ hasText: name }).getByTestId("house-seats"));
  await expect(page.locator("html")).toHaveAttribute("data-live", "ready");
  const tick = (seat: string) => page.getByRole("checkbox", { name: seat, exact: true });
  await tick("Партер А13").focus();
  await page.keyboard.press("Space");
  await page.keyboard.press("ArrowDown");
  await expect(tick("Партер 12-4")).toBeFocused();
  await page.keyboard.press("Space");
  await expect(page.getByTestId("house-plan").locator(":checked")).toHaveCount(2);
  await page.locator("#house-names").fill("Балкон А15");
  await page.locator("#house-reason").fill("Press");
  await press(page.getByTestId("house-keep"));
  await expect(page.getByTestId("house-kept")).toContainText("Press");
  await expect(page.getByTestId("house-plan").locator("[data-kept]")).toHaveCount(3);
  await expectAccessible(page, "house seats of a screen");

  // An invalid price keeps all typed values and has the error next to its field.
  await page.goto(`${THEATRE}/prices`);
  const price = page.getByLabel("Партер");
  await price.fill("nine");
  await press(page.getByTestId("set-prices"));
  await expect(price).toHaveAttribute("aria-invalid", "true");
  await expect(price).toHaveValue("nine");
  await expect(price).toHaveAccessibleDescription(/12\.50/);
  await expectAccessible(page, "prices that are refused");
  await price.fill("9.50");
  await press(page.getByTestId("set-prices"));
  await expect(page.getByTestId("organiser-done")).toBeVisible();

  await page.goto(`${THEATRE}/shows/plan`);
  await expectAccessible(page, "planning");
  await fillWeek(page, name);
  const from = await page.locator('input[name="from"]').inputValue();
  await press(page.getByTestId("plan"));
  await page.waitForURL((url) => url.pathname === `${THEATRE}/shows` && url.searchParams.get("from") === from);
  const mine = page.getByTestId("organised-show").filter({ hasText: name });
  await expect(mine).toHaveCount(7);
  await press(mine.first());
  await expectAccessible(page, "one show");
  const show = page.url();
  const id = /[0-9a-f-]{36}/.exec(show)?.[0] ?? "";

  const hers = await anna.visit(id);
  await hers.expectSeat(0, "blocked");
  await hers.hold(2);
  expect(await hers.heldSeatNames()).toEqual(["Партер А14 bis"]);
  await hers.checkOut("Anna", "anna@example.org");
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");

  await page.goto(show);
  await page.locator("#cancel-reason").fill("The tent flew away.");
  await page.locator("#sure").check();
  await press(page.getByTestId("cancel-show"));
  // The page polls.
  await expect(page.getByTestId("undoing")).toHaveAttribute("data-finished", "true", { timeout: 30_000 });
  await anna.page.reload();
  await expectBookingState(anna.page, "CANCELLED");
  await expect(anna.page.getByTestId("booking-state")).toHaveAttribute("data-money", "REFUNDED", { timeout: 20_000 });
});

// The creator of a theatre becomes its manager, and the other managers lose "all theatres". So successful creation is
// tested elsewhere.
test("an invalid theatre keeps the typed values", async ({ newVisitor }) => {
  const { page } = await newVisitor(CALM);
  const typed = {
    name: "Kino",
    address: "Friedrichstraße 107–109, 10117 Berlin",
    currency: "EUR",
    city_name: "Ulm",
    country: "DE",
    time_zone: "Europe/Ulm",
  };
  await signInAsManager(page);
  await page.goto("/staff");
  await expectAccessible(page, "the list of workplaces");
  for (const [field, text] of Object.entries(typed)) await page.locator(`#${field}`).fill(text);
  await press(page.getByTestId("new-theatre"));
  await expect(page.getByTestId("theatre-trouble")).toBeVisible();
  for (const [field, text] of Object.entries(typed)) await expect(page.locator(`#${field}`)).toHaveValue(text);
  const hidden = await page.locator("#address").evaluate((field) => field.scrollWidth - field.clientWidth);
  expect(hidden, "an address fits its field").toBeLessThanOrEqual(0);
  await expectAccessible(page, "a theatre that is refused");
});

/** Returns a plan of one section with rows of six seats. */
function rows(names: string): object {
  return {
    sketch: 1,
    name: `Rows ${names}`,
    focus: { kind: "screen", at: [0, -60], width: 120 },
    categories: [{ name: "stalls", label: "Stalls" }],
    zones: [{ category: "stalls", rows: [{ rows: names, seats: "1-6" }] }],
  };
}

/** Sends a set-up request of an organiser over the API. */
async function act(page: Page, path: string, body: object): Promise<{ id: string; shows: { id: string }[] }> {
  const answer = await page.request.post(`/api/v1/theatres/${ELSEWHERE}${path}`, {
    data: { reason: "A story.", ...body },
    headers: { "Idempotency-Key": randomUUID() },
  });
  expect(answer.ok(), await answer.text()).toBe(true);
  return answer.json();
}

test("a moved show keeps seats that exist in the new room and offers others for the rest", async ({ newVisitor, anna, ben }) => {
  test.setTimeout(120_000);
  const { page } = await newVisitor(CALM);
  await signInAsManager(page);
  const screens: { id: string; name: string }[] = [];
  for (const names of ["A-C", "A-B"]) {
    const name = `Saal ${names} ${randomUUID().slice(0, 8)}`;
    const layout = await page.request.post(`/api/v1/theatres/${ELSEWHERE}/layouts`, {
      data: { plan: rows(names) },
      headers: { "Idempotency-Key": randomUUID() },
    });
    const { id } = await act(page, "/screens", { name, layout: (await layout.json()).id });
    screens.push({ id, name });
  }
  const [from, to] = screens;
  if (!from || !to) throw new Error("two screens were made");
  const tariff = await (await page.request.get(`/api/v1/theatres/${ELSEWHERE}/tariff`)).json();
  await act(page, "/tariff", { tariff: { ...tariff, base: { ...tariff.base, stalls: 900 } } });
  const planned = await act(page, "/programme", {
    screen: from.id,
    film: (await (await page.request.get(`/api/v1/theatres/${ELSEWHERE}/films`)).json())[0].id,
    language: "Deutsch",
    format: "2D",
    from: "2031-01-06",
    weeks: 1,
    pattern: [{ weekday: "monday", times: ["20:15"] }],
    cleaning_minutes: 20,
  });
  const show = planned.shows[0]?.id ?? "";

  // A2 exists in the new room; C3 does not.
  for (const [visitor, seat] of [[anna, 1], [ben, 14]] as const) {
    const theirs = await visitor.visit(show);
    await theirs.hold(seat);
    await theirs.checkOut(`Visitor ${seat}`, `visitor-${seat}@example.org`);
    await payWith(visitor.page, "paid");
    await expectBookingState(visitor.page, "CONFIRMED");
  }
  const { page: looking } = await newVisitor(CALM);
  await looking.goto(`/shows/${show}`);
  await expect(looking.locator("#seat-17")).toBeVisible();

  await page.goto(`/staff/${ELSEWHERE}/shows/${show}`);
  await page.locator('select[name="screen"]').selectOption({ label: to.name });
  await press(page.getByTestId("look-at-move"));
  const preview = page.getByTestId("move-preview");
  await expect(preview).toContainText("C3");
  await expect(page.getByTestId("move-same")).toContainText("1");
  await expectAccessible(page, "what a move would mean");
  await page.locator("#move-reason").fill("The projector is broken.");
  await page.locator("#move-sure").check();
  await press(page.getByTestId("move-show"));
  // The page polls.
  await expect(page.getByTestId("moved")).toHaveAttribute("data-finished", "true", { timeout: 30_000 });
  await expect(page.getByTestId("moved")).toContainText(to.name);

  // An open map switches to the other room without a reload.
  await expect(looking.locator("#seat-17")).toHaveCount(0);
  // A page opened while sales were paused polls.
  await expect(looking.locator("#seat-1")).toHaveAttribute("data-state", "booked", { timeout: 30_000 });

  await anna.page.reload();
  await expect(anna.page.getByTestId("booking-story")).toContainText(to.name);
  await expect(anna.page.getByTestId("seat-offer")).toHaveCount(0);

  await ben.page.reload();
  const offer = ben.page.getByTestId("seat-offer");
  await expect(offer).toContainText("C3");
  const places = await ben.page.getByTestId("offered-places").innerText();
  await expectAccessible(ben.page, "other seats to take or leave");
  await press(ben.page.getByTestId("take-offer"));
  await expect(ben.page.locator('[data-step="other_seats_taken"]')).toBeVisible();
  await expect(ben.page.getByTestId("seat-offer")).toHaveCount(0);
  await press(ben.page.getByTestId("ticket-link"));
  await expect(ben.page.locator("main")).toContainText(places.trim());
});

/** Drags a film or a draft by its middle to the middle of a cell of the calendar, without a release. */
async function drag(page: Page, dragged: Locator, cell: Locator): Promise<void> {
  await cell.scrollIntoViewIfNeeded();
  const [from, to] = [await dragged.boundingBox(), await cell.boundingBox()];
  if (!from || !to) throw new Error("the dragged show or the cell is not visible");
  await page.mouse.move(from.x + from.width / 2, from.y + from.height / 2);
  await page.mouse.down();
  // A pixel beyond the middle: a step begins exactly there.
  await page.mouse.move(to.x + to.width / 2 + 1, to.y + to.height / 2, { steps: 3 });
}

test("a dragged film and a free time chosen by keyboard become drafts on the calendar", async ({ newVisitor }) => {
  const { page } = await newVisitor(CALM);
  await signInAsManager(page);
  const week = `/staff/${ELSEWHERE}/shows?from=2031-03-03`;
  await page.goto(week);
  const isReady = () => expect(page.locator("html")).toHaveAttribute("data-live", "ready");
  const row = (day: string) => page.locator(`tr[data-screen="meridian-berlin-1"][data-day="${day}"]`);
  const film = page.getByTestId("calendar-film").first();
  const proposal = page.getByTestId("calendar-proposal");
  await isReady();
  await expectAccessible(page, "an empty week");

  // The row has 10:00 to 24:00.
  await drag(page, film, row("2031-03-04").locator("td"));
  await expect(proposal).toContainText("17:00");
  await expect(proposal).not.toHaveAttribute("data-refused");
  await page.mouse.up();
  await expect(page.locator("#film")).toHaveValue((await film.getAttribute("data-film")) ?? "");
  await expect(page.locator("#screen")).toHaveValue("meridian-berlin-1");
  await expect(page.locator("#day")).toHaveValue("2031-03-04");
  await expect(page.locator("#time")).toHaveValue("17:00");
  await page.locator("#language").fill("Deutsch");
  await press(page.getByTestId("add-show"));
  await expect(page.getByTestId("organiser-done")).toBeVisible();
  const added = row("2031-03-04").getByTestId("organised-show");
  await expect(added).toHaveAttribute("data-state", "planned");
  await expect(added).toContainText("17:00");

  await isReady();
  await drag(page, film, row("2031-03-04").locator("td").filter({ has: page.getByTestId("organised-show") }));
  await expect(proposal).toHaveAttribute("data-refused", "true");
  await page.mouse.up();
  await expect(page.getByTestId("calendar-announcement")).not.toBeEmpty();
  await expect(page.locator("#time")).toHaveValue("");

  // The language is that of the last show.
  await row("2031-03-05").getByTestId("calendar-free").focus();
  await page.keyboard.press("Enter");
  await expect(page.locator("#film")).toBeFocused();
  await expect(page.locator("#day")).toHaveValue("2031-03-05");
  await expect(page.locator("#time")).toHaveValue("10:00");
  await page.locator("#language").press("Enter");
  await expect(row("2031-03-05").getByTestId("organised-show")).toContainText("10:00");
  await expectAccessible(page, "a week with drafts");
  await expectFitsPhone(page, "a week with drafts");
});

test("a draft moves by a drag and by keyboard, and stays where it does not fit", async ({ newVisitor }) => {
  const { page } = await newVisitor(CALM);
  await signInAsManager(page);
  // All days are in view: the theatre's rooms of other tests are in the calendar too.
  await page.setViewportSize({ width: 1280, height: 2400 });
  // A week that no other test plans.
  const days = ["2031-04-07", "2031-04-08", "2031-04-09"] as const;
  await page.goto(`/staff/${ELSEWHERE}/shows?from=${days[0]}`);
  const isReady = () => expect(page.locator("html")).toHaveAttribute("data-live", "ready");
  const row = (day: string, screen = "meridian-berlin-1") => page.locator(`tr[data-screen="${screen}"][data-day="${day}"]`);
  const draft = (day: string, screen?: string) => row(day, screen).getByTestId("organised-show");
  const other = "meridian-berlin-2";
  const proposal = page.getByTestId("calendar-proposal");
  for (const day of [days[0], days[1]]) {
    await isReady();
    await row(day).getByTestId("calendar-free").click();
    await page.locator("#time").fill("17:00");
    await page.locator("#language").fill("Deutsch");
    await press(page.getByTestId("add-show"));
    await expect(draft(day)).toContainText("17:00");
  }

  // The other draft is in the way: this one stays, and its page does not open.
  await isReady();
  await drag(page, draft(days[0]), draft(days[1]));
  await expect(proposal).toContainText("17:00");
  await expect(proposal).toHaveAttribute("data-refused", "true");
  await page.mouse.up();
  await expect(page.getByTestId("calendar-announcement")).not.toBeEmpty();
  await expect(draft(days[0])).toContainText("17:00");

  // An empty day has one cell from 10:00 to 24:00, so its middle is that of a show around 17:00.
  await drag(page, draft(days[0]), row(days[2]).locator("td"));
  await expect(proposal).not.toHaveAttribute("data-refused");
  const [moved] = (await proposal.innerText()).split("–");
  await page.mouse.up();
  await expect(page.getByTestId("organiser-done")).toBeVisible();
  await expect(draft(days[0])).toHaveCount(0);
  await expect(draft(days[2])).toContainText(moved ?? "a start");

  // A reload forgets a chosen draft, so that a free time adds a show.
  await page.locator("#draft").selectOption((await draft(days[2]).getAttribute("data-draft")) ?? "");
  await page.reload();
  await isReady();
  await expect(page.locator("#draft")).toHaveValue("");

  // By keyboard: the draft, then a free time, then the button that has the focus.
  await page.locator("#draft").selectOption((await draft(days[2]).getAttribute("data-draft")) ?? "");
  await row(days[0]).getByTestId("calendar-free").focus();
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("move-draft")).toBeFocused();
  await expect(page.locator("#move_day")).toHaveValue(days[0]);
  await expect(page.locator("#move_time")).toHaveValue("10:00");
  await expect(page.getByTestId("calendar-announcement")).toContainText("10:00");
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("organiser-done")).toBeVisible();
  await expect(draft(days[0])).toContainText("10:00");
  await expect(draft(days[2])).toHaveCount(0);

  // The server refuses the time of another show on the draft's screen and says why: the draft stays. The other screen is
  // free then.
  await isReady();
  const chosen = (await draft(days[0]).getAttribute("data-draft")) ?? "";
  await page.locator("#draft").selectOption(chosen);
  await expect(page.locator("#move_screen")).toHaveValue("");
  await page.locator("#move_day").fill(days[1]);
  await page.locator("#move_time").fill("17:00");
  await press(page.getByTestId("move-draft"));
  await expect(page.getByTestId("organiser-trouble")).toBeVisible();
  await expect(draft(days[0])).toContainText("10:00");
  await isReady();
  await page.locator("#move_screen").selectOption(other);
  await press(page.getByTestId("move-draft"));
  await expect(page.getByTestId("organiser-done")).toBeVisible();
  await expect(draft(days[1], other)).toContainText("17:00");
  await expect(draft(days[0])).toHaveCount(0);

  // A drag soon after the move to another screen. For some seconds the room is still being changed, and the page says so.
  await expect(async () => {
    await isReady();
    await drag(page, draft(days[1], other), row(days[2], other).locator("td"));
    await expect(proposal).not.toHaveAttribute("data-refused");
    const [dragged] = (await proposal.innerText()).split("–");
    await page.mouse.up();
    await expect(page.getByTestId("organiser-done")).toBeVisible({ timeout: 3_000 });
    await expect(draft(days[2], other)).toContainText(dragged ?? "a start");
  }).toPass({ timeout: 20_000 });
  await expect(draft(days[1], other)).toHaveCount(0);

  // By keyboard, with the screen as it is: the draft stays on its own, which is not the first.
  await isReady();
  await page.locator("#draft").selectOption((await draft(days[2], other).getAttribute("data-draft")) ?? "");
  await page.locator("#move_day").fill(days[0]);
  await page.locator("#move_time").fill("19:00");
  await expect(page.locator("#move_screen")).toHaveValue("");
  await page.getByTestId("move-draft").press("Enter");
  await expect(draft(days[0], other)).toContainText("19:00");
  await expect(draft(days[2], other)).toHaveCount(0);
  await expectAccessible(page, "a week with moved drafts");

  // The agenda of a phone has no scale of hours: a shaky press opens the page of the draft.
  await page.setViewportSize({ width: 390, height: 844 });
  await expect(page.getByTestId("calendar-film").first()).toBeHidden();
  await isReady();
  const pressed = draft(days[0], other);
  const show = (await pressed.getAttribute("href")) ?? "";
  await pressed.scrollIntoViewIfNeeded();
  const box = await pressed.boundingBox();
  if (!box) throw new Error("the draft is not visible");
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2 + 8, box.y + box.height / 2, { steps: 2 });
  await page.mouse.up();
  await expect(page).toHaveURL(show);
});
