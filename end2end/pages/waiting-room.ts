// The waiting room of a show: switched on as an organiser does, by the API.
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

/** Waits until somebody stands so with the room. */
export async function standsAs(page: Page, state: string, timeout?: number): Promise<void> {
  const room = page.getByTestId("waiting-room");
  await expect(room).toHaveAttribute("data-state", state, timeout === undefined ? {} : { timeout });
}
