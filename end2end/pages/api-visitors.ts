// Visitors without a browser, who hold seats over the API to fill a room.
import { type APIRequestContext, expect, request as requests } from "@playwright/test";

import type { Show } from "./catalogue.js";

// Maximum seats of one hold.
const SEATS_PER_HOLD = 10;

/** A visitor who uses the API without a page. */
export interface ApiVisitor {
  request: APIRequestContext;
  hold: string;
  seats: number[];
}

/** Holds all free seats of a show except those in `except`, by API visitors. */
export async function holdAllExcept(show: Show, except: number[] = [], at = process.env.BASE_URL): Promise<ApiVisitor[]> {
  const look = await requests.newContext({ baseURL: at });
  const states = ((await (await look.get(`/api/v1/shows/${show.id}/seats`)).json()) as { states: string }).states;
  await look.dispose();
  const free = [...states].flatMap((state, seat) => (state === "0" && !except.includes(seat) ? [seat] : []));
  const visitors: ApiVisitor[] = [];
  for (let from = 0; from < free.length; from += SEATS_PER_HOLD) {
    visitors.push(await holdBy(show.id, free.slice(from, from + SEATS_PER_HOLD), at));
  }
  return visitors;
}

async function holdBy(show: string, seats: number[], at?: string): Promise<ApiVisitor> {
  const request = await requests.newContext({ baseURL: at });
  const answer = await request.post(`/api/v1/shows/${show}/holds`, { headers: { "idempotency-key": `${show}-${seats[0]}` }, data: { seats } });
  expect(answer.status()).toBe(201);
  return { request, hold: ((await answer.json()) as { id: string }).id, seats };
}

/** Releases the hold of an API visitor. */
export async function releaseHold(visitor: ApiVisitor, show: Show): Promise<void> {
  const answer = await visitor.request.delete(`/api/v1/shows/${show.id}/holds/${visitor.hold}`, {
    headers: { "idempotency-key": `${visitor.hold}-goes` },
  });
  expect(answer.ok()).toBe(true);
}
