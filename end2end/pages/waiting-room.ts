// The waiting room of a show: switched on as an organiser does, by the API or from the page; and those in front of it.
import { randomUUID } from "node:crypto";

import { type APIRequestContext, expect, type Page } from "@playwright/test";

import { PASSWORD } from "./accounts.js";

/** Has a show entered through a waiting room that opens in so many milliseconds. */
export async function openWaitingRoom(request: APIRequestContext, show: string, opensInMs: number, perSecond: number): Promise<void> {
  const email = "manager-laptop@example.org";
  const signedIn = await request.post("/api/v1/users/login", { data: { email, password: PASSWORD } });
  expect(signedIn.status()).toBe(200);
  const found = (await (await request.get(`/api/v1/shows/${show}`)).json()) as { theatre: string };
  const data = { on: true, opens_at: new Date(Date.now() + opensInMs).toISOString(), per_second: perSecond, reason: "On sale." };
  const headers = { "idempotency-key": randomUUID() };
  const switched = await request.post(`/api/v1/theatres/${found.theatre}/shows/${show}/waiting-room`, { data, headers });
  expect(switched.status(), await switched.text()).toBe(204);
}

/** Ten minutes before a show starts, on the clocks of its theatre, as the field of a form has it. */
export async function tenMinutesBefore(request: APIRequestContext, show: string): Promise<string> {
  const { local_date, local_time } = (await (await request.get(`/api/v1/shows/${show}`)).json()) as { local_date: string; local_time: string };
  return new Date(Date.parse(`${local_date}T${local_time}Z`) - 600_000).toISOString().slice(0, "2026-12-01T10:00".length);
}

/** The organiser's page of it. */
export class RoomDesk {
  constructor(readonly page: Page) {}

  /** Waits until the page says that the room stands so. */
  async says(state: "off" | "early" | "open" | "resting" | "sold_out" | "closed"): Promise<void> {
    await expect(this.page.getByTestId("room-state")).toHaveAttribute("data-state", state);
  }

  async fill(opens: string, perSecond: number, reason: string): Promise<void> {
    await this.page.locator('input[name="opens"]').fill(opens);
    await this.page.locator('input[name="per_second"]').fill(String(perSecond));
    await this.page.locator("#room-reason").fill(reason);
  }
}

/** Waits until somebody stands so with the room. */
export async function standsAs(page: Page, state: string, timeout?: number): Promise<void> {
  const room = page.getByTestId("waiting-room");
  await expect(room).toHaveAttribute("data-state", state, timeout === undefined ? {} : { timeout });
}
