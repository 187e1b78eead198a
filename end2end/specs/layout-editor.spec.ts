// The layout editor: a room is drawn by keyboard and pointer, its mistakes are fixed, it is saved and assigned to a
// screen, and a show in it sells a seat.
import { randomUUID } from "node:crypto";

import type { Page } from "@playwright/test";

import { expectAccessible } from "../pages/accessibility.js";
import { pinch } from "../pages/touch.js";
import { LayoutBoard } from "../pages/layout-board.js";
import { expectBookingState, payWith } from "../pages/paying.js";
import { planWeek } from "../pages/schedule.js";
import { press } from "../pages/show.js";
import { signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";

const THEATRE = "/staff/meridian-berlin";
/** Maximum duration of loading or saving a room of 50,000 seats. */
const LARGE_ROOM_MS = 40_000;

test("two curved rows and an area are drawn, fixed, assigned to a screen, and sell a seat", async ({ newVisitor, anna }) => {
  test.setTimeout(120_000);
  const { page } = await newVisitor({ reducedMotion: "reduce" });
  const name = `Atelier ${randomUUID().slice(0, 8)}`;
  await signInAsManager(page);
  await page.goto(`${THEATRE}/screens`);
  await press(page.getByTestId("draw-room"));
  const board = new LayoutBoard(page);
  await board.waitUntilReady();
  await board.expectMistake("no_seats");

  // By keyboard: two rows of six with an aisle, curved by one seat.
  await board.drawRows({ rows: "2", seats: "6", bow: "1", aisles: "3" });
  await board.expectValid();
  expect(await board.seats()).toBe(12);
  const [end, middle] = [await board.seatPosition("B", 0), await board.seatPosition("B", 2)];
  expect(end.y).toBeLessThan(middle.y - 3);

  // Two rows A: each duplicate is reported and can be shown.
  await board.selectRow("B");
  await board.fillField("#row-label", "A");
  await board.expectMistake("duplicate_seat");
  await expect(page.getByTestId("layout-mistakes")).toContainText("A1");
  await press(page.getByTestId("layout-show").first());
  await expect(page.getByTestId("layout-rows-chosen")).toContainText("2");
  await page.getByTestId("layout-board").focus();
  await page.keyboard.press("Control+z");
  await board.expectValid();

  // Arrow keys move the selected row; the pointer drags it. Both can be undone.
  await board.selectRow("B");
  await page.keyboard.press("ArrowDown");
  const lower = await board.seatPosition("B", 2);
  expect(lower.y).toBeGreaterThan(middle.y);
  await board.drag("B", 0, 40);
  await expect.poll(async () => (await board.seatPosition("B", 2)).y).toBeGreaterThan(lower.y + 20);
  const dragged = await board.seatPosition("B", 2);
  await press(page.getByTestId("layout-undo"));
  await expect.poll(async () => (await board.seatPosition("B", 2)).y).toBeLessThan(dragged.y - 20);
  await press(page.getByTestId("layout-redo"));
  await expect.poll(async () => (await board.seatPosition("B", 2)).y).toBeGreaterThan(dragged.y - 1);

  await press(page.getByTestId("layout-area-open"));
  await page.locator("#new-area").fill("Floor");
  await page.locator("#new-capacity").fill("50");
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("layout-area-chosen")).toBeVisible();
  await board.fillField("#area-capacity", "0");
  await expect(page.getByTestId("layout-refused")).not.toBeEmpty();
  await board.fillField("#area-capacity", "60");
  await board.expectValid();
  await expectAccessible(page, "the drawing board");

  await press(page.getByTestId("layout-save"));
  await expect(page.getByTestId("layout-saved")).toContainText("60");
  const layout = (await page.getByTestId("layout-saved").getAttribute("data-layout")) ?? "";
  const file = await page.request.get(`/api/v1/theatres/meridian-berlin/layouts/${layout}/file?form=seating_plan`);
  expect(await file.text()).toContain('"capacity": 60');
  await page.locator("#give-name").fill(name);
  await press(page.getByTestId("layout-publish"));
  await expect(page.getByTestId("organiser-done")).toBeVisible();
  await expect(page.getByTestId("screens")).toContainText(name);

  const show = await planShow(page, name);
  const hers = await anna.visit(show);
  await hers.hold(0);
  expect(await hers.heldSeatNames()).toEqual(["A1"]);
  await hers.checkOut("Anna", "anna@example.org");
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");

  // A sold seat is marked; it can still be removed for later shows.
  await page.goto(`${THEATRE}/layouts/${layout}/edit`);
  await board.waitUntilReady();
  await board.selectRow("A");
  await expect(page.locator('[data-testid="layout-seat"][data-sold]')).toHaveCount(1);
  await page.keyboard.press("Delete");
  await expect(page.getByTestId("layout-sold-gone")).toContainText("1");
});

test("a section of a room of 50,000 seats is edited, and the others stay as they are", async ({ newVisitor }) => {
  test.setTimeout(180_000);
  const { page } = await newVisitor({ reducedMotion: "reduce" });
  await signInAsManager(page);
  await page.goto(`${THEATRE}/screens`);
  const arena = page.getByTestId("screen").filter({ has: page.locator("strong", { hasText: /^Arena$/ }) });
  await press(arena.getByRole("link").first());
  await press(page.getByTestId("edit-room"));
  await expect(page.getByTestId("room-section")).toHaveCount(80);
  await expectAccessible(page, "the sections of a large room");
  const layout = /[0-9a-f-]{36}/.exec(page.url())?.[0] ?? "";

  await page.getByRole("link", { name: "Block 105", exact: true }).focus();
  await page.keyboard.press("Enter");
  const board = new LayoutBoard(page);
  await expect(page.getByTestId("layout-board")).toBeVisible({ timeout: LARGE_ROOM_MS });
  expect(await board.seats()).toBe(660);
  await board.selectRow("Block 105 7");
  await board.fillField("#row-label", "VIP");
  await press(page.getByTestId("layout-undo"));
  await expect(page.locator("#row-label")).toHaveValue("7");
  await press(page.getByTestId("layout-redo"));
  await expect(page.locator("#row-label")).toHaveValue("VIP");
  await board.expectValid();

  await press(page.getByTestId("layout-save"));
  await expect(page.getByTestId("layout-saved")).toBeVisible({ timeout: LARGE_ROOM_MS });
  const saved = (await page.getByTestId("layout-saved").getAttribute("data-layout")) ?? "";
  const [before, after] = [await zonesOf(page, layout), await zonesOf(page, saved)];
  const changed = before.filter((zone, at) => JSON.stringify(zone) !== JSON.stringify(after[at]));
  expect(changed.map((zone) => zone.name)).toEqual(["Block 105"]);
  const rows = after.find((zone) => zone.name === "Block 105")?.rows.map((row) => row.row_number);
  expect(rows?.slice(5, 8)).toEqual(["6", "VIP", "8"]);

  // Other sections are edited in the version with these changes.
  await press(page.getByTestId("layout-other-section"));
  await page.waitForURL(`**/layouts/${saved}/edit`);
  await expect(page.getByTestId("room-section")).toHaveCount(80);
});

test("a pinch zooms and moves the drawing without changing the selection", async ({ newVisitor }) => {
  const { page } = await newVisitor({ reducedMotion: "reduce", hasTouch: true });
  await signInAsManager(page);
  await page.goto(`${THEATRE}/screens`);
  await press(page.getByTestId("draw-room"));
  const board = new LayoutBoard(page);
  await board.waitUntilReady();
  await board.drawRows({ rows: "3", seats: "8", bow: "0", aisles: "4" });
  await board.expectValid();
  await board.selectRow("A");
  const chosen = await board.selected();
  expect(chosen).toHaveLength(1);
  await page.getByTestId("layout-board").scrollIntoViewIfNeeded();
  const near = (is: number, wanted: number) => expect(Math.abs(is - wanted)).toBeLessThan(8);

  // The first finger touches a row that is not selected.
  const [seat, whole] = [await board.seatAt("B", 2), await board.width()];
  const about = { x: seat.x + 30, y: seat.y };
  await pinch(page, about, 60, 150);
  await expect.poll(() => board.width()).toBeGreaterThan(whole * 2.2);
  await expect(async () => {
    const now = await board.seatAt("B", 2);
    near(now.x, about.x - 75);
    near(now.y, about.y);
  }).toPass();
  expect(await board.selected()).toEqual(chosen);

  // Both fingers move in parallel: the drawing moves at the same zoom.
  const [before, close] = [await board.seatAt("B", 2), await board.width()];
  await pinch(page, about, 80, 80, { x: 30, y: 24 });
  await expect(async () => {
    const now = await board.seatAt("B", 2);
    near(now.x, before.x + 30);
    near(now.y, before.y + 24);
  }).toPass();
  near(await board.width(), close);

  await pinch(page, about, 200, 40);
  await expect.poll(() => board.width()).toBeLessThan(whole * 1.05);
  expect(await board.selected()).toEqual(chosen);
  await press(page.getByTestId("layout-zoom-in"));
  await expect.poll(() => board.width()).toBeGreaterThan(whole * 1.3);
});

/** Returns the zones of a layout's seating plan. */
async function zonesOf(page: Page, layout: string): Promise<{ name: string; rows: { row_number: string }[] }[]> {
  const file = await page.request.get(`/api/v1/theatres/meridian-berlin/layouts/${layout}/file?form=seating_plan`);
  return ((await file.json()) as { zones: { name: string; rows: { row_number: string }[] }[] }).zones;
}

/** Sets a price, plans a week of shows on the screen, and returns one of them. */
async function planShow(page: Page, screen: string): Promise<string> {
  await page.goto(`${THEATRE}/prices`);
  await page.getByLabel("Ordinary seat").fill("9.50");
  await press(page.getByTestId("set-prices"));
  await expect(page.getByTestId("organiser-done")).toBeVisible();
  return await planWeek(page, THEATRE, screen);
}
