// A room is drawn by keyboard and pointer, its mistakes are named and mended, it is saved and given to a screen, and
// a show in it sells a seat.
import { randomUUID } from "node:crypto";

import type { Page } from "@playwright/test";

import { expectForEveryone } from "../pages/everyone.js";
import { pinch } from "../pages/fingers.js";
import { LayoutBoard } from "../pages/layout-board.js";
import { bookingBecomes, payWith } from "../pages/paying.js";
import { press } from "../pages/show.js";
import { signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";

const THEATRE = "/staff/meridian-berlin";

test("two curved rows and a floor are drawn, mended, given to a screen, and sell a seat", async ({ newVisitor, anna }) => {
  test.setTimeout(120_000);
  const { page } = await newVisitor({ reducedMotion: "reduce" });
  const name = `Atelier ${randomUUID().slice(0, 8)}`;
  await signInAsManager(page);
  await page.goto(`${THEATRE}/screens`);
  await press(page.getByTestId("draw-room"));
  const board = new LayoutBoard(page);
  await board.opens();
  await board.says("no_seats");

  // By the keyboard alone: two rows of six with an aisle, their ends a seat in front.
  await board.drawRows({ rows: "2", seats: "6", bow: "1", aisles: "3" });
  await board.passes();
  expect(await board.seats()).toBe(12);
  const [end, middle] = [await board.place("B", 0), await board.place("B", 2)];
  expect(end.y).toBeLessThan(middle.y - 3);

  // Two rows A: each clash is named, and shown.
  await board.choose("B");
  await board.write("#row-label", "A");
  await board.says("duplicate_seat");
  await expect(page.getByTestId("layout-mistakes")).toContainText("A1");
  await press(page.getByTestId("layout-show").first());
  await expect(page.getByTestId("layout-rows-chosen")).toContainText("2");
  await page.getByTestId("layout-board").focus();
  await page.keyboard.press("Control+z");
  await board.passes();

  // Arrow keys move the row that is chosen in the list; a pointer drags it further. Both can be taken back.
  await board.choose("B");
  await page.keyboard.press("ArrowDown");
  const lower = await board.place("B", 2);
  expect(lower.y).toBeGreaterThan(middle.y);
  await board.drag("B", 0, 40);
  await expect.poll(async () => (await board.place("B", 2)).y).toBeGreaterThan(lower.y + 20);
  const dragged = await board.place("B", 2);
  await press(page.getByTestId("layout-undo"));
  await expect.poll(async () => (await board.place("B", 2)).y).toBeLessThan(dragged.y - 20);
  await press(page.getByTestId("layout-redo"));
  await expect.poll(async () => (await board.place("B", 2)).y).toBeGreaterThan(dragged.y - 1);

  await press(page.getByTestId("layout-area-open"));
  await page.locator("#new-area").fill("Floor");
  await page.locator("#new-capacity").fill("50");
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("layout-area-chosen")).toBeVisible();
  await board.write("#area-capacity", "0");
  await expect(page.getByTestId("layout-refused")).not.toBeEmpty();
  await board.write("#area-capacity", "60");
  await board.passes();
  await expectForEveryone(page, "the drawing board");

  await press(page.getByTestId("layout-save"));
  await expect(page.getByTestId("layout-saved")).toContainText("60");
  const layout = (await page.getByTestId("layout-saved").getAttribute("data-layout")) ?? "";
  const file = await page.request.get(`/api/v1/theatres/meridian-berlin/layouts/${layout}/file?form=seating_plan`);
  expect(await file.text()).toContain('"capacity": 60');
  await page.locator("#give-name").fill(name);
  await page.locator("#give-reason").fill("A small hall in the attic.");
  await press(page.getByTestId("layout-publish"));
  await page.waitForURL(/\/screens\?done=true$/);
  await expect(page.getByTestId("screens")).toContainText(name);

  const show = await planShow(page, name);
  const hers = await anna.visit(show);
  await hers.hold(0);
  expect(await hers.heldNames()).toEqual(["A1"]);
  await hers.checkOut("Anna", "anna@example.org");
  await payWith(anna.page, "paid");
  await bookingBecomes(anna.page, "CONFIRMED");

  // The seat that was sold is marked; without it the room can still be drawn on, for shows to come later.
  await page.goto(`${THEATRE}/layouts/${layout}/edit`);
  await board.opens();
  await board.choose("A");
  await expect(page.locator('[data-testid="layout-seat"][data-sold]')).toHaveCount(1);
  await page.keyboard.press("Delete");
  await expect(page.getByTestId("layout-sold-gone")).toContainText("1");
});

test("two fingers look closer at the drawing and move it, and choose nothing", async ({ newVisitor }) => {
  const { page } = await newVisitor({ reducedMotion: "reduce", hasTouch: true });
  await signInAsManager(page);
  await page.goto(`${THEATRE}/screens`);
  await press(page.getByTestId("draw-room"));
  const board = new LayoutBoard(page);
  await board.opens();
  await board.drawRows({ rows: "3", seats: "8", bow: "0", aisles: "4" });
  await board.passes();
  await board.choose("A");
  const chosen = await board.chosen();
  expect(chosen).toHaveLength(1);
  await page.getByTestId("layout-board").scrollIntoViewIfNeeded();
  const near = (is: number, wanted: number) => expect(Math.abs(is - wanted)).toBeLessThan(8);

  // The first finger comes down on a row that is not chosen.
  const [seat, whole] = [await board.seatAt("B", 2), await board.width()];
  const about = { x: seat.x + 30, y: seat.y };
  await pinch(page, about, 60, 150);
  await expect.poll(() => board.width()).toBeGreaterThan(whole * 2.2);
  await expect(async () => {
    const now = await board.seatAt("B", 2);
    near(now.x, about.x - 75);
    near(now.y, about.y);
  }).toPass();
  expect(await board.chosen()).toEqual(chosen);

  // Both go the same way: the drawing goes with them, as close as it was.
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
  expect(await board.chosen()).toEqual(chosen);
  await press(page.getByTestId("layout-zoom-in"));
  await expect.poll(() => board.width()).toBeGreaterThan(whole * 1.3);
});

/** A price, and a week of shows on that screen; the first of them. */
async function planShow(page: Page, screen: string): Promise<string> {
  await page.goto(`${THEATRE}/prices`);
  await page.getByLabel("Ordinary seat").fill("9.50");
  await page.locator("#prices-reason").fill("What the attic costs.");
  await press(page.getByTestId("set-prices"));
  await expect(page.getByTestId("organiser-done")).toBeVisible();
  await page.goto(`${THEATRE}/shows/plan`);
  await page.locator('select[name="screen"]').selectOption({ label: screen });
  await page.locator('input[name="language"]').fill("Français");
  for (const day of ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]) {
    await page.locator(`input[name="${day}"]`).fill("20:15");
  }
  await page.locator("#plan-reason").fill("First week.");
  await press(page.getByTestId("plan"));
  const mine = page.getByTestId("organised-show").filter({ hasText: screen });
  await expect(mine).toHaveCount(7);
  // The last of them: no show of today, whose doors may be closed already.
  await press(mine.last());
  await page.waitForURL(/[0-9a-f-]{36}$/);
  return /[0-9a-f-]{36}$/.exec(page.url())?.[0] ?? "";
}
