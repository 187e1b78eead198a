// Strangers without a browser: they take what is free, so that a room can be full.
import { type APIRequestContext, expect, request as requests } from "@playwright/test";

import type { Show } from "./catalogue.js";

// The most one person may hold.
const SEATS_A_PERSON = 10;

/** Somebody who speaks to the server without a page. */
export interface Stranger {
  request: APIRequestContext;
  hold: string;
  seats: number[];
}

/** Everything that is free in a show but these seats is held by strangers from here on. */
export async function takeTheRest(show: Show, but: number[] = [], at = process.env.BASE_URL): Promise<Stranger[]> {
  const look = await requests.newContext({ baseURL: at });
  const states = ((await (await look.get(`/api/v1/shows/${show.id}/seats`)).json()) as { states: string }).states;
  await look.dispose();
  const free = [...states].flatMap((state, seat) => (state === "0" && !but.includes(seat) ? [seat] : []));
  const strangers: Stranger[] = [];
  for (let from = 0; from < free.length; from += SEATS_A_PERSON) {
    strangers.push(await holdBy(show.id, free.slice(from, from + SEATS_A_PERSON), at));
  }
  return strangers;
}

async function holdBy(show: string, seats: number[], at?: string): Promise<Stranger> {
  const request = await requests.newContext({ baseURL: at });
  const answer = await request.post(`/api/v1/shows/${show}/holds`, { headers: { "idempotency-key": `${show}-${seats[0]}` }, data: { seats } });
  expect(answer.status()).toBe(201);
  return { request, hold: ((await answer.json()) as { id: string }).id, seats };
}

/** A stranger lets everything go. */
export async function letGo(stranger: Stranger, show: Show): Promise<void> {
  const answer = await stranger.request.delete(`/api/v1/shows/${show.id}/holds/${stranger.hold}`, {
    headers: { "idempotency-key": `${stranger.hold}-goes` },
  });
  expect(answer.ok()).toBe(true);
}
