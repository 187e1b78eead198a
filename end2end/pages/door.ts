// The door: tickets that people bought, and devices that look at them.
import { expect, type Locator, type Page, request as requests } from "@playwright/test";

import type { Show } from "./catalogue.js";
import { press } from "./show.js";

// The most one person may have.
const SEATS_A_PERSON = 10;
// What a ticket's page says under the QR code.
const CODE = /\b[0-9A-HJKMNP-TV-Z]{26}\b/g;

/** Buys so many seats of a show, without a page; the codes of their tickets. */
export async function buyTickets(show: Show, count: number): Promise<string[]> {
  const look = await requests.newContext({ baseURL: process.env.BASE_URL });
  const states = ((await (await look.get(`/api/v1/shows/${show.id}/seats`)).json()) as { states: string }).states;
  await look.dispose();
  const free = [...states].flatMap((state, seat) => (state === "0" ? [seat] : [])).slice(0, count);
  expect(free).toHaveLength(count);
  const parties: number[][] = [];
  for (let from = 0; from < count; from += SEATS_A_PERSON) parties.push(free.slice(from, from + SEATS_A_PERSON));
  return (await Promise.all(parties.map((seats) => buyOf(show.id, seats)))).flat();
}

async function buyOf(show: string, seats: number[]): Promise<string[]> {
  const buyer = await requests.newContext({ baseURL: process.env.BASE_URL });
  const post = async (path: string, data: object, status: number) => {
    const answer = await buyer.post(path, { headers: { "idempotency-key": crypto.randomUUID() }, data });
    expect(answer.status(), path).toBe(status);
    return (await answer.json()) as { id: string; ticket_url?: string };
  };
  const hold = await post(`/api/v1/shows/${show}/holds`, { seats }, 201);
  const who = { name: "Anna", email: `anna-${seats[0]}@example.org` };
  const booking = await post("/api/v1/bookings", { show, hold: hold.id, buyer: who }, 201);
  await post(`/api/v1/bookings/${booking.id}/confirm`, { payment_token: "tok_paid" }, 200);
  const page = await (await buyer.get(`/bookings/${booking.id}/ticket`)).text();
  await buyer.dispose();
  const codes = [...new Set(page.match(CODE) ?? [])];
  expect(codes).toHaveLength(seats.length);
  return codes;
}

/** A device at the door of a show. */
export class Door {
  readonly word: Locator;
  private scans = 0;

  constructor(private readonly page: Page) {
    this.word = page.getByTestId("door-word");
  }

  /** From the list of tonight's shows to the scanner, ready and with its list. */
  async open(show: Show, server = ""): Promise<void> {
    await this.page.goto(`${server}/staff/${show.theatre}/door`);
    await this.page.locator(`[data-testid="door-show"][data-show="${show.id}"]`).click();
    await this.isReady();
  }

  /** Loads the page of the scanner anew. */
  async reload(): Promise<void> {
    await this.page.reload();
    this.scans = 0;
    await this.isReady();
  }

  private async isReady(): Promise<void> {
    await expect(this.page.getByTestId("door-bar")).toHaveAttribute("data-list", "kept");
    await expect(this.page.locator("#door-code")).toBeFocused();
  }

  /** Scans as a reader does that poses as a keyboard: a text and Enter, nothing clicked. */
  async scan(text: string): Promise<void> {
    await this.page.keyboard.insertText(text);
    await this.page.keyboard.press("Enter");
    this.scans += 1;
  }

  /** Scans tickets one after another, without waiting for the answers; then waits for the last. */
  async scanAll(codes: string[]): Promise<void> {
    for (const code of codes) await this.scan(`ROWLOCK1|${code}|C7|Anna`);
    await this.answered();
  }

  /** Looks with the camera, which reads one ticket. */
  async look(): Promise<void> {
    await press(this.page.getByTestId("door-camera"));
    this.scans += 1;
    await this.answered();
    await press(this.page.getByTestId("door-camera"));
    await expect(this.page.locator(".door-camera video")).toBeHidden();
    await this.page.locator("#door-code").focus();
  }

  /** Waits for the answer to the last scan. */
  async answered(): Promise<void> {
    await expect(this.page.getByTestId("door-answer")).toHaveAttribute("data-number", String(this.scans));
  }

  /** Requires that the last answer is of this kind, in this word. */
  async expectAnswer(tone: "good" | "partly" | "bad" | "unsure", word: string | RegExp): Promise<void> {
    await this.answered();
    await expect(this.page.getByTestId("door-answer")).toHaveAttribute("data-tone", tone);
    await expect(this.word).toHaveText(word);
  }

  async expectAdmitted(count: number): Promise<void> {
    await expect(this.page.getByTestId("door-came")).toHaveAttribute("data-admitted", String(count));
  }

  async expectLink(link: "up" | "down"): Promise<void> {
    await expect(this.page.getByTestId("door-bar")).toHaveAttribute("data-link", link);
  }

  async expectWaiting(count: number): Promise<void> {
    await expect(this.page.getByTestId("door-queue")).toHaveAttribute("data-waiting", String(count));
  }

  conflicts(): Locator {
    return this.page.getByTestId("door-conflicts").locator("li");
  }
}
