// Plans of other venues, imported as rooms: `cargo xtask test --only-browser --plans FOLDER "plan of another venue"`.
import type { Page } from "@playwright/test";
import { randomUUID } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";

import { expectTapsToHit, expectWholeRoom, openRoom } from "../pages/first-view.js";
import { planWeek } from "../pages/schedule.js";
import { press } from "../pages/show.js";
import { signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";

const THEATRE = "/staff/kupfer-berlin";
const FOLDER = process.env.PLANS;
const PLANS = FOLDER === undefined ? [] : readdirSync(FOLDER).filter((file) => file.endsWith(".json"));
/** Large plans are read, checked and stored in seconds. */
const STORED_IN_MS = 30_000;

for (const plan of PLANS) {
  test(`the plan of another venue is on the screen as a whole, and taps hit its seats: ${plan}`, async ({ newVisitor, anna }) => {
    test.slow();
    const { page } = await newVisitor({ reducedMotion: "reduce" });
    await signInAsManager(page);
    const screen = await importPlan(page, join(FOLDER ?? "", plan));
    await setPrices(page);
    await openRoom(anna.page, await planWeek(page, THEATRE, screen));
    await expectWholeRoom(anna.page, plan);
    await expectTapsToHit(anna.page, plan);
  });
}

/** Imports a plan as a new screen, with repairs and a focus if the importer requires them. Returns the screen's name. */
async function importPlan(page: Page, file: string): Promise<string> {
  const [imported, findings] = [page.getByTestId("preview"), page.getByTestId("findings")];
  await page.goto(`${THEATRE}/screens`);
  await sendPlan(page, file);
  await expect(imported.or(findings).first()).toBeVisible({ timeout: STORED_IN_MS });
  if (!(await imported.isVisible())) {
    await page.locator('input[name="mend"]').check();
    await sendPlan(page, file);
    await expect(imported).toBeVisible({ timeout: STORED_IN_MS });
  }
  const newScreen = page.getByTestId("new-screen");
  if ((await newScreen.count()) === 0) {
    await page.locator('select[name="kind"]').selectOption("stage");
    await press(page.getByTestId("set-focus"));
    await expect(newScreen).toBeVisible({ timeout: STORED_IN_MS });
  }
  const name = `Plan ${randomUUID().slice(0, 8)}`;
  await page.locator('input[name="name"]').fill(name);
  await press(newScreen);
  await expect(page.getByTestId("screens")).toContainText(name, { timeout: STORED_IN_MS });
  return name;
}

async function sendPlan(page: Page, file: string): Promise<void> {
  await page.locator("#plan-file").setInputFiles(file);
  await expect(page.locator("[data-plan-text]")).not.toHaveValue("", { timeout: STORED_IN_MS });
  await press(page.getByTestId("import"));
}

/** Prices the theatre's categories without a price. */
async function setPrices(page: Page): Promise<void> {
  // Another project may save the theatre's prices meanwhile; the second is then asked to begin again.
  await expect(async () => {
    await page.goto(`${THEATRE}/prices`);
    const prices = page.locator('form:has([data-testid="set-prices"])').getByRole("textbox");
    for (const price of await prices.all()) {
      if ((await price.isVisible()) && (await price.inputValue()) === "") await price.fill("12.50");
    }
    await press(page.getByTestId("set-prices"));
    await expect(page.getByTestId("organiser-done")).toBeVisible({ timeout: 5_000 });
  }).toPass({ timeout: STORED_IN_MS });
}
