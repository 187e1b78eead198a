// Admission at the door: bought tickets and scanning devices.
import { expect, type Locator, type Page, request as requests } from "@playwright/test";
import { randomUUID } from "node:crypto";

import { PASSWORD } from "./accounts.js";
import type { Show } from "./catalogue.js";
import { press } from "./show.js";
import { managerEmail } from "./staff.js";

// Maximum seats of one buyer.
const SEATS_PER_HOLD = 10;
// The ticket code, printed under the QR code.
const CODE = /\b[0-9A-HJKMNP-TV-Z]{26}\b/g;

/** Buys `count` seats of a show over the API and returns the ticket codes. */
export async function buyTickets(show: Show, count: number): Promise<string[]> {
  const look = await requests.newContext({ baseURL: process.env.BASE_URL });
  const states = ((await (await look.get(`/api/v1/shows/${show.id}/seats`)).json()) as { states: string }).states;
  await look.dispose();
  const free = [...states].flatMap((state, seat) => (state === "0" ? [seat] : [])).slice(0, count);
  expect(free).toHaveLength(count);
  const parties: number[][] = [];
  for (let from = 0; from < count; from += SEATS_PER_HOLD) parties.push(free.slice(from, from + SEATS_PER_HOLD));
  return (await Promise.all(parties.map((seats) => buySeats(show.id, seats)))).flat();
}

async function buySeats(show: string, seats: number[]): Promise<string[]> {
  const buyer = await requests.newContext({ baseURL: process.env.BASE_URL });
  const post = async (path: string, data: object, status: number) => {
    const answer = await buyer.post(path, { headers: { "idempotency-key": randomUUID() }, data });
    expect(answer.status(), path).toBe(status);
    return (await answer.json()) as { id: string; ticket_url?: string };
  };
  const hold = await post(`/api/v1/shows/${show}/holds`, { seats }, 201);
  const contact = { name: "Anna", email: `anna-${seats[0]}@example.org` };
  const booking = await post("/api/v1/bookings", { show, hold: hold.id, buyer: contact }, 201);
  await post(`/api/v1/bookings/${booking.id}/confirm`, { payment_token: "tok_paid" }, 200);
  const page = await (await buyer.get(`/bookings/${booking.id}/ticket`)).text();
  await buyer.dispose();
  const codes = [...new Set(page.match(CODE) ?? [])];
  expect(codes).toHaveLength(seats.length);
  return codes;
}

/** A scanning device at the door of a show. */
export class Door {
  readonly word: Locator;
  private scans = 0;

  constructor(private readonly page: Page) {
    this.word = page.getByTestId("door-word");
  }

  /** Opens the scanner from the list of tonight's shows and waits until the ticket list is stored. */
  async open(show: Show, server = ""): Promise<void> {
    await this.page.goto(`${server}/staff/${show.theatre}/door`);
    await this.page.locator(`[data-testid="door-show"][data-show="${show.id}"]`).click();
    this.scans = 0;
    await this.waitUntilReady();
  }

  /** Opens the scanner by its address, as from the browser's history without a network. */
  async openByAddress(show: Show, server: string): Promise<void> {
    await this.page.goto(`${server}/staff/${show.theatre}/door/${show.id}`);
    this.scans = 0;
    await this.waitUntilReady();
  }

  /** Reloads the page of the scanner. */
  async reload(): Promise<void> {
    await this.page.reload();
    this.scans = 0;
    await this.waitUntilReady();
  }

  /** Follows the link of a door without a session, signs in, and returns to the door. No prompt appears. */
  async signInAgain(show: Show): Promise<void> {
    const prompts: string[] = [];
    this.page.on("dialog", (dialog) => {
      prompts.push(dialog.type());
      void dialog.accept();
    });
    const door = `/staff/${show.theatre}/door/${show.id}`;
    const link = this.page.getByTestId("door-sign-in");
    await expect(link).toHaveAttribute("href", `/login?next=${door}`);
    await press(link);
    await this.page.locator('input[name="email"]').fill(managerEmail());
    await this.page.locator('input[name="password"]').fill(PASSWORD);
    await press(this.page.getByTestId("sign-in"));
    await this.page.waitForURL((url) => url.pathname === door);
    this.scans = 0;
    await this.waitUntilReady();
    expect(prompts).toEqual([]);
  }

  private async waitUntilReady(): Promise<void> {
    await expect(this.page.getByTestId("door-bar")).toHaveAttribute("data-list", "kept");
    await this.expectReadyToScan();
  }

  /** Scans like a barcode reader that acts as a keyboard: a text and Enter. */
  async scan(text: string): Promise<void> {
    await this.page.keyboard.insertText(text);
    await this.page.keyboard.press("Enter");
    this.scans += 1;
  }

  /** Scans tickets without waiting for the answers, then waits for the last answer. */
  async scanAll(codes: string[]): Promise<void> {
    for (const code of codes) await this.scan(`ROWLOCK1|${code}|C7|Anna`);
    await this.waitForAnswer();
  }

  /** Scans one ticket with the camera. */
  async scanWithCamera(): Promise<void> {
    await press(this.page.getByTestId("door-camera"));
    this.scans += 1;
    await this.waitForAnswer();
    await press(this.page.getByTestId("door-camera"));
    await expect(this.page.locator(".door-camera video")).toBeHidden();
    await this.expectReadyToScan();
  }

  /** Waits for the answer to the last scan. */
  async waitForAnswer(): Promise<void> {
    await expect(this.page.getByTestId("door-answer")).toHaveAttribute("data-number", String(this.scans));
  }

  /** Expects tone and word of the last answer. */
  async expectAnswer(tone: "good" | "partly" | "bad" | "unsure", word: string | RegExp): Promise<void> {
    await this.waitForAnswer();
    await expect(this.page.getByTestId("door-answer")).toHaveAttribute("data-tone", tone);
    await expect(this.word).toHaveText(word);
  }

  async expectAdmitted(count: number): Promise<void> {
    await expect(this.page.getByTestId("door-came")).toHaveAttribute("data-admitted", String(count));
  }

  async expectLink(link: "up" | "down" | "signed-out"): Promise<void> {
    await expect(this.page.getByTestId("door-bar")).toHaveAttribute("data-link", link);
  }

  async expectWaiting(count: number): Promise<void> {
    await expect(this.page.getByTestId("door-queue")).toHaveAttribute("data-waiting", String(count));
  }

  /** Expects this number of unsent scans of other shows. */
  async expectWaitingElsewhere(count: number): Promise<void> {
    await expect(this.page.getByTestId("door-queue-elsewhere")).toHaveAttribute("data-waiting", String(count));
  }

  /** Expects that a scanner would type into the code field. */
  async expectReadyToScan(): Promise<void> {
    await expect(this.page.locator("#door-code")).toBeFocused();
  }

  conflicts(): Locator {
    return this.page.getByTestId("door-conflicts").locator("li");
  }
}
