// Many hold attempts of API visitors at a show.
import { randomUUID } from "node:crypto";

import { type APIRequestContext, expect, request as requests } from "@playwright/test";

import type { Show } from "./catalogue.js";

// Concurrent attempts: to reach the puzzle threshold, and to stay above it.
const INITIAL_ATTEMPTS = 40;
const ONGOING_ATTEMPTS = 8;

/** API visitors who keep trying to hold a seat that is already held. */
export class HoldAttempts {
  private isStopped = false;
  private readonly tries: Promise<void>;

  private constructor(
    private readonly request: APIRequestContext,
    private readonly holder: APIRequestContext,
    private readonly show: Show,
    private readonly seat: number,
  ) {
    this.tries = this.keepTrying();
  }

  /** Starts the attempts and waits until the server requires puzzles. */
  static async start(show: Show, seat: number): Promise<HoldAttempts> {
    const [one, other] = [await requests.newContext({ baseURL: process.env.BASE_URL }), await requests.newContext({ baseURL: process.env.BASE_URL })];
    expect(await tryHold(one, show, seat)).toBe(201);
    await expect(async () => expect(await Promise.all(times(INITIAL_ATTEMPTS, () => tryHold(other, show, seat)))).toContain(428)).toPass();
    return new HoldAttempts(other, one, show, seat);
  }

  private async keepTrying(): Promise<void> {
    while (!this.isStopped) await Promise.all(times(ONGOING_ATTEMPTS, () => tryHold(this.request, this.show, this.seat)));
  }

  /** Stops the attempts. */
  async stop(): Promise<void> {
    this.isStopped = true;
    await this.tries;
    await this.request.dispose();
    await this.holder.dispose();
  }
}

async function tryHold(request: APIRequestContext, show: Show, seat: number): Promise<number> {
  const answer = await request.post(`/api/v1/shows/${show.id}/holds`, { headers: { "idempotency-key": randomUUID() }, data: { seats: [seat] } });
  return answer.status();
}

function times<T>(count: number, make: () => T): T[] {
  return Array.from({ length: count }, make);
}
