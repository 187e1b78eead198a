// Plans shows as an organiser does.
import { expect, type Page } from "@playwright/test";

import { press } from "./show.js";

const WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
/** A week of shows in a room of 50,000 seats is stored in seconds. */
const PLANNED_IN_MS = 30_000;

/** Fills in the form of shows: one on each day of a week. */
export async function fillWeek(page: Page, screen: string): Promise<void> {
  await page.locator('select[name="screen"]').selectOption({ label: screen });
  await page.locator('input[name="language"]').fill("Deutsch");
  for (const day of WEEKDAYS) await page.locator(`input[name="${day}"]`).fill("20:15");
}

/** Plans a week of shows on a screen without any, and returns the id of the last: sales of one today may be closed. */
export async function planWeek(page: Page, theatre: string, screen: string): Promise<string> {
  await page.goto(`${theatre}/shows/plan`);
  await fillWeek(page, screen);
  await press(page.getByTestId("plan"));
  const planned = page.getByTestId("organised-show").filter({ hasText: screen });
  await expect(planned).toHaveCount(WEEKDAYS.length, { timeout: PLANNED_IN_MS });
  await press(planned.last());
  await page.waitForURL(/[0-9a-f-]{36}$/);
  return /[0-9a-f-]{36}$/.exec(page.url())?.[0] ?? "";
}
