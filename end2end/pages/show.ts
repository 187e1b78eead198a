// The page of a show.
import { expect, type Locator, type Page, test } from "@playwright/test";

/** Displayed states of a seat. */
export type SeatState = "available" | "locked" | "booked" | "blocked" | "mine";

/** A tap on a seat narrower than this magnifies the map, pixels. */
export const SMALLEST_TARGET = 24;

export class ShowPage {
  readonly cart: Locator;
  readonly cartSeats: Locator;
  readonly total: Locator;
  readonly countdown: Locator;
  readonly message: Locator;

  constructor(readonly page: Page) {
    this.cart = page.getByTestId("cart");
    this.cartSeats = page.getByTestId("cart-seat");
    this.total = page.getByTestId("cart-total");
    this.countdown = page.getByTestId("countdown");
    this.message = page.getByTestId("message");
  }

  async open(show: string, at = ""): Promise<void> {
    await this.page.goto(`${at}/shows/${show}`);
    await this.waitUntilLive();
    // Wait for lazily loaded parts: leaving the page earlier logs an error.
    await expect(this.page.getByTestId("cart")).toBeAttached();
    await this.waitForStyles();
  }

  /** Waits for the style and the font loaded after the map: until then the layout moves. */
  async waitForStyles(): Promise<void> {
    await this.page.waitForFunction(() => document.fonts.size > 0 && document.fonts.check("1em Figtree"));
  }

  async waitUntilLive(): Promise<void> {
    await expect(this.page.getByTestId("live")).toHaveAttribute("data-state", "live");
  }

  seat(index: number): Locator {
    return this.page.locator(`#seat-${index}`);
  }

  async expectSeat(index: number, state: SeatState, timeout?: number): Promise<void> {
    await expect(this.seat(index)).toHaveAttribute("data-state", state, timeout === undefined ? {} : { timeout });
  }

  /** Taps a seat that is too small for a finger, which magnifies the map. Returns true if it did. */
  async magnify(index: number): Promise<boolean> {
    const seat = this.seat(index);
    const width = async () => (await seat.locator(".seat-target").boundingBox())?.width ?? 0;
    if (!test.info().project.use.hasTouch || (await width()) >= SMALLEST_TARGET) return false;
    await press(seat);
    await expect.poll(width).toBeGreaterThanOrEqual(SMALLEST_TARGET);
    return true;
  }

  /**
   * Presses a seat by touch or mouse, depending on the device. A finger needs two taps on a free seat with a restricted
   * view: the first shows its card.
   */
  async pressSeat(index: number): Promise<void> {
    const seat = this.seat(index);
    await this.magnify(index);
    const name = (await seat.getAttribute("aria-label")) ?? "";
    await press(seat);
    const isAtTheSide = name.includes("view from the side") && name.endsWith("available");
    // A seat that is taken is painted as the visitor's own at once.
    if (isAtTheSide && (await seat.getAttribute("data-state")) === "available") await press(seat);
  }

  /** Selects a free seat and waits until the server has granted it. */
  async hold(index: number): Promise<void> {
    const before = await this.cartSeats.count();
    await this.pressSeat(index);
    await this.expectSeat(index, "mine");
    await expect(this.cartSeats).toHaveCount(before + 1);
    await expect(this.heldSeats()).toHaveCount(before + 1);
  }

  /** Releases a held seat. */
  async release(index: number): Promise<void> {
    await this.pressSeat(index);
    await this.expectSeat(index, "available");
  }

  /** Returns the cart lines of granted seats. */
  heldSeats(): Locator {
    return this.page.locator('[data-testid="cart-seat"][data-held="true"]');
  }

  /** Returns the names of the granted seats. */
  async heldSeatNames(): Promise<string[]> {
    return this.heldSeats().locator(".cart-seat-name").allTextContents();
  }

  /** Opens the cart where it is a collapsed sheet. */
  async openCart(): Promise<void> {
    const openButton = this.page.getByTestId("continue");
    // After a reload the seats appear before the cart.
    await expect(this.total).toBeVisible();
    if (await openButton.isVisible()) await press(openButton);
  }

  /** Fills the buyer's form. */
  async fillDetails(name: string, email: string): Promise<void> {
    await this.openCart();
    await this.page.locator('input[name="name"]').fill(name);
    await this.page.locator('input[name="email"]').fill(email);
  }

  /** Fills the form and opens the payment page. */
  async checkOut(name: string, email: string): Promise<void> {
    await this.fillDetails(name, email);
    await press(this.page.getByTestId("pay"));
    await expect(this.page.locator("#pay")).toBeVisible();
  }
}

/** Taps or clicks, depending on the device. */
export async function press(target: Locator): Promise<void> {
  if (test.info().project.use.hasTouch) await target.tap();
  else await target.click();
}
