// Plans shows as an organiser does.
import { randomUUID } from "node:crypto";

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

/** Creates a screen with this layout over the API, and returns its id. */
export async function createScreen(page: Page, theatre: string, plan: object): Promise<string> {
  const { id } = await send(page, theatre, "layouts", { plan });
  const screen = await send(page, theatre, "screens", { name: `Screen ${randomUUID().slice(0, 8)}`, layout: id, reason: "A story." });
  return screen.id;
}

/** Plans a show over the API, on a Monday evening: the price has no further percentage. */
export async function planShow(page: Page, theatre: string, screen: string): Promise<string> {
  const films = (await (await page.request.get(`/api/v1/theatres/${theatre}/films`)).json()) as { id: string }[];
  const planned = await send(page, theatre, "programme", {
    screen,
    film: films[0]?.id,
    language: "Hindi",
    format: "2D",
    from: "2031-01-06",
    weeks: 1,
    pattern: [{ weekday: "monday", times: ["20:15"] }],
    cleaning_minutes: 20,
    reason: "A story.",
  });
  return planned.shows?.[0]?.id ?? "";
}

/** Sends a request of an organiser. */
async function send(page: Page, theatre: string, path: string, data: object): Promise<{ id: string; shows?: { id: string }[] }> {
  const answer = await page.request.post(`/api/v1/theatres/${theatre}/${path}`, {
    data,
    headers: { "Idempotency-Key": randomUUID() },
  });
  expect(answer.ok(), await answer.text()).toBe(true);
  return (await answer.json()) as { id: string; shows?: { id: string }[] };
}
