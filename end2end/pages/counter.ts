// A counter of the box office: its clerk, till and sales, and its controls by touch or by keyboard.
import { randomUUID } from "node:crypto";

import { type APIRequestContext, expect, type Locator, type Page, test } from "@playwright/test";

import { PASSWORD, signInByApi, waitForMailedLink } from "./accounts.js";
import type { Show } from "./catalogue.js";
import { messages } from "./languages.js";
import { ShowPage } from "./show.js";
import { post } from "./staff.js";

const FLOAT_MINOR = 10_000;

/** The fields of a booking at the counter that the stories read. */
export interface CounterBooking {
  id: string;
  reference: string;
  state: string;
  money: string;
  to_pay_out?: { minor: number };
  moved_to?: string;
}

/** Uses a control by touch or by keyboard. */
export async function use(page: Page, control: Locator): Promise<void> {
  if (test.info().project.use.hasTouch) {
    // Staff may ask for the holder of an unavailable seat, whose control is disabled.
    await control.tap({ force: (await control.getAttribute("aria-disabled")) === "true" });
  } else {
    // A hidden control takes no focus, and the key would press another.
    await expect(control).toBeVisible();
    await control.focus();
    await page.keyboard.press("Enter");
  }
}

/** Uses a button that asks this message after the first press and acts after the second. */
export async function useTwice(page: Page, button: Locator, question: string): Promise<void> {
  await use(page, button);
  await expect(button).toHaveText(messages("en")[question]!);
  await use(page, button);
}

/** Takes or returns a seat: by finger as a moviegoer does, else by keyboard. */
export async function choose(page: Page, seat: number): Promise<void> {
  const counter = new ShowPage(page);
  if (test.info().project.use.hasTouch) await counter.pressSeat(seat);
  else await use(page, counter.seat(seat));
}

/**
 * Signs the page in as a new clerk of a theatre, who is no manager, and opens their till. `manager` is signed in as a
 * manager. Each story has a clerk, because an account has one till per theatre.
 */
export async function signInAsNewClerk(page: Page, manager: APIRequestContext, theatre: string): Promise<void> {
  const email = `clerk-${randomUUID()}@example.org`;
  // The name sorts behind those of the managers, because the story of the team takes the first person.
  await post(page.request, "/api/v1/users/register", { name: "Nina Clerk", email, password: PASSWORD }, 201);
  await signInByApi(page.request, email);
  const link = await waitForMailedLink("Please confirm your address", email);
  const token = link.split("token=")[1] ?? "";
  await post(page.request, "/api/v1/users/me/email/proof", { token }, 200);
  const role = { email, role: "box_office", granted: true, reason: "Starts today." };
  await post(manager, `/api/v1/theatres/${theatre}/staff`, role, 204);
  // A new role ends the session.
  await signInByApi(page.request, email);
  await post(page.request, `/api/v1/theatres/${theatre}/box-office/till`, { float_minor: FLOAT_MINOR }, 201);
}

/** Sells a seat for cash over the API. */
export async function sellForCash(clerk: APIRequestContext, show: Show, seat: number, buyer: { name?: string; email?: string } = {}): Promise<CounterBooking> {
  const held = JSON.parse(await post(clerk, `/api/v1/shows/${show.id}/holds`, { seats: [seat] }, 201)) as { id: string; total: { minor: number } };
  const sale = { hold: held.id, means: "cash", total_minor: held.total.minor, ...buyer };
  return JSON.parse(await post(clerk, `/api/v1/theatres/${show.theatre}/box-office/shows/${show.id}/sales`, sale, 201)) as CounterBooking;
}

/** Returns a booking as the clerk sees it. */
export async function readBooking(clerk: APIRequestContext, theatre: string, booking: string): Promise<CounterBooking> {
  const answer = await clerk.get(`/api/v1/theatres/${theatre}/box-office/bookings/${booking}`);
  expect(answer.status()).toBe(200);
  return (await answer.json()) as CounterBooking;
}

/** Returns the expected cash in the clerk's till, in minor units. */
export async function cashInTill(clerk: APIRequestContext, theatre: string): Promise<number> {
  const answer = await clerk.get(`/api/v1/theatres/${theatre}/box-office/till`);
  expect(answer.status()).toBe(200);
  return ((await answer.json()) as { expected: { minor: number } }).expected.minor;
}
