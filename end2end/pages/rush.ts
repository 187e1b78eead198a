// A show that many want at once: sold as on on-sale day, with a crowd of strangers that has no browser.
import { randomUUID } from "node:crypto";

import { type APIRequestContext, expect, request as requests } from "@playwright/test";

import { PASSWORD } from "./accounts.js";
import type { Show } from "./catalogue.js";

// Tries at a time: until it is hot, and to keep it so.
const MANY = 40;
const SOME = 8;

/** Has a show sold as a flash sale, as its organiser does. */
export async function sellInARush(request: APIRequestContext, show: Show): Promise<void> {
  const signedIn = await request.post("/api/v1/users/login", { data: { email: "manager-laptop@example.org", password: PASSWORD } });
  expect(signedIn.status()).toBe(200);
  const path = `/api/v1/theatres/${show.theatre}/programme/${show.id}`;
  const { terms, version } = (await (await request.get(path)).json()) as { terms: object; version: number };
  const changed = await request.post(`${path}/terms`, {
    headers: { "idempotency-key": randomUUID() },
    data: { terms: { ...terms, flash_sale: true }, version, reason: "On sale today." },
  });
  expect(changed.status(), await changed.text()).toBe(200);
}

/** Strangers who keep trying to take a seat of somebody else's. */
export class Rush {
  private isOver = false;
  private readonly tries: Promise<void>;

  private constructor(
    private readonly request: APIRequestContext,
    private readonly holder: APIRequestContext,
    private readonly show: Show,
    private readonly seat: number,
  ) {
    this.tries = this.goOn();
  }

  /** They come, and from then on puzzles are asked for. */
  static async comes(show: Show, seat: number): Promise<Rush> {
    const [one, other] = [await requests.newContext({ baseURL: process.env.BASE_URL }), await requests.newContext({ baseURL: process.env.BASE_URL })];
    expect(await take(one, show, seat)).toBe(201);
    await expect(async () => expect(await Promise.all(times(MANY, () => take(other, show, seat)))).toContain(428)).toPass();
    return new Rush(other, one, show, seat);
  }

  private async goOn(): Promise<void> {
    while (!this.isOver) await Promise.all(times(SOME, () => take(this.request, this.show, this.seat)));
  }

  /** They go. */
  async ends(): Promise<void> {
    this.isOver = true;
    await this.tries;
    await this.request.dispose();
    await this.holder.dispose();
  }
}

async function take(request: APIRequestContext, show: Show, seat: number): Promise<number> {
  const answer = await request.post(`/api/v1/shows/${show.id}/holds`, { headers: { "idempotency-key": randomUUID() }, data: { seats: [seat] } });
  return answer.status();
}

function times<T>(count: number, make: () => T): T[] {
  return Array.from({ length: count }, make);
}
