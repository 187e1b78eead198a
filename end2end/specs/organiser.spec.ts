// An organiser brings a room, makes a screen, says what it costs, plans a week and sells a show of it; then it is
// called off, and its buyer has the money back.
import { randomUUID } from "node:crypto";

import type { Page } from "@playwright/test";

import { expectForEveryone } from "../pages/everyone.js";
import { bookingBecomes, payWith } from "../pages/paying.js";
import { press } from "../pages/show.js";
import { signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";

const THEATRE = "/staff/kupfer-berlin";
const CALM = { reducedMotion: "reduce" } as const;

/** A room as strangers draw it: two parts with the same labels, another script, a "14 bis". */
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

async function bring(page: Page, isWrong: boolean): Promise<void> {
  await page.goto(`${THEATRE}/screens`);
  await page.locator("#plan-file").setInputFiles({ name: "room.json", mimeType: "application/json", buffer: Buffer.from(plan(isWrong)) });
  await expect(page.locator("[data-plan-text]")).not.toHaveValue("");
  await press(page.getByTestId("import"));
}

test("a room is brought, a week planned and sold, and a show called off", async ({ newVisitor, anna }) => {
  test.setTimeout(120_000);
  const { page } = await newVisitor(CALM);
  const name = `Zelt ${randomUUID().slice(0, 8)}`;
  await signInAsManager(page);

  await bring(page, true);
  await expect(page.getByTestId("findings")).toContainText("Партер А14");
  await expectForEveryone(page, "a room that is refused");
  await bring(page, false);
  await expect(page.getByTestId("preview").locator(".preview-number")).toHaveCount(11);
  await expectForEveryone(page, "a room that was brought");
  await page.locator('input[name="name"]').fill(name);
  await page.locator("#new-reason").fill("A tent for the summer.");
  await press(page.getByTestId("new-screen"));
  await expect(page.getByTestId("screens")).toContainText(name);

  await page.goto(`${THEATRE}/prices`);
  await page.getByLabel("Партер").fill("9.50");
  await page.locator("#prices-reason").fill("What the tent costs.");
  await press(page.getByTestId("set-prices"));
  await expect(page.getByTestId("organiser-done")).toBeVisible();

  await page.goto(`${THEATRE}/shows/plan`);
  await expectForEveryone(page, "planning");
  await page.locator('select[name="screen"]').selectOption({ label: name });
  await page.locator('input[name="language"]').fill("Deutsch");
  const from = await page.locator('input[name="from"]').inputValue();
  for (const day of ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]) {
    await page.locator(`input[name="${day}"]`).fill("20:15");
  }
  await page.locator("#plan-reason").fill("First week.");
  await press(page.getByTestId("plan"));
  await page.waitForURL((url) => url.pathname === `${THEATRE}/shows` && url.searchParams.get("from") === from);
  const mine = page.getByTestId("organised-show").filter({ hasText: name });
  await expect(mine).toHaveCount(7);
  await press(mine.first());
  await expectForEveryone(page, "one show");
  const show = page.url();
  const id = /[0-9a-f-]{36}/.exec(show)?.[0] ?? "";

  const hers = await anna.visit(id);
  await hers.hold(2);
  expect(await hers.heldNames()).toEqual(["Партер А14 bis"]);
  await hers.checkOut("Anna", "anna@example.org");
  await payWith(anna.page, "paid");
  await bookingBecomes(anna.page, "CONFIRMED");

  await page.goto(show);
  await page.locator("#cancel-reason").fill("The tent flew away.");
  await page.locator("#sure").check();
  await press(page.getByTestId("cancel-show"));
  // The page asks again by itself.
  await expect(page.getByTestId("undoing")).toHaveAttribute("data-finished", "true", { timeout: 30_000 });
  await anna.page.reload();
  await bookingBecomes(anna.page, "CANCELLED");
  await expect(anna.page.getByTestId("booking-state")).toHaveAttribute("data-money", "REFUNDED", { timeout: 20_000 });
});
