// The waiting room of a show: enabled over the API or from the organiser's page, and as a visitor sees it.
import { randomUUID } from "node:crypto";

import { type APIRequestContext, expect, type Locator, type Page } from "@playwright/test";

import { signInByApi } from "./accounts.js";
import { press } from "./show.js";

/** Enables a waiting room for a show, which opens in `opensInMs` milliseconds. */
export async function openWaitingRoom(request: APIRequestContext, show: string, opensInMs: number, perSecond: number): Promise<void> {
  await signInByApi(request, "manager-laptop@example.org");
  const found = (await (await request.get(`/api/v1/shows/${show}`)).json()) as { theatre: string };
  const data = { on: true, opens_at: new Date(Date.now() + opensInMs).toISOString(), per_second: perSecond, reason: "On sale." };
  const headers = { "idempotency-key": randomUUID() };
  const switched = await request.post(`/api/v1/theatres/${found.theatre}/shows/${show}/waiting-room`, { data, headers });
  expect(switched.status(), await switched.text()).toBe(204);
}

/** Returns the local time ten minutes before a show, as a form field value. */
export async function tenMinutesBefore(request: APIRequestContext, show: string): Promise<string> {
  const { local_date, local_time } = (await (await request.get(`/api/v1/shows/${show}`)).json()) as { local_date: string; local_time: string };
  return new Date(Date.parse(`${local_date}T${local_time}Z`) - 600_000).toISOString().slice(0, "2026-12-01T10:00".length);
}

/** The organiser's page of a waiting room. */
export class WaitingRoomPage {
  constructor(readonly page: Page) {}

  /** Waits until the page shows this state of the room. */
  async expectState(state: "off" | "early" | "open" | "resting" | "sold_out" | "closed"): Promise<void> {
    await expect(this.page.getByTestId("room-state")).toHaveAttribute("data-state", state);
  }

  async fill(opens: string, perSecond: number, reason: string): Promise<void> {
    await this.page.locator('input[name="opens"]').fill(opens);
    await this.page.locator('input[name="per_second"]').fill(String(perSecond));
    await this.page.locator("#room-reason").fill(reason);
  }
}

/** Presses a button that asks after the first press and acts after the second. */
export async function pressTwice(button: Locator): Promise<void> {
  const label = (await button.textContent()) ?? "";
  await press(button);
  await expect(button).not.toHaveText(label);
  await press(button);
}

/** Waits until the visitor's page shows this state. */
export async function expectQueueState(page: Page, state: string, timeout?: number): Promise<void> {
  const room = page.getByTestId("waiting-room");
  await expect(room).toHaveAttribute("data-state", state, timeout === undefined ? {} : { timeout });
}
