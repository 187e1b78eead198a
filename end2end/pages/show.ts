// The page of a show, as visitors use it.
import { expect, type Locator, type Page, test } from "@playwright/test";

/** States a seat shows. */
export type SeatState = "available" | "locked" | "booked" | "blocked" | "mine";

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
    await this.live();
    // What comes after the map has come: a page that is left before it complains.
    await expect(this.page.getByTestId("cart")).toBeAttached();
    await this.dressed();
  }

  /** Waits for the style and the font that come after the map: until then things move. */
  async dressed(): Promise<void> {
    await this.page.waitForFunction(() => document.fonts.size > 0 && document.fonts.check("1em Figtree"));
  }

  async live(): Promise<void> {
    await expect(this.page.getByTestId("live")).toHaveAttribute("data-state", "live");
  }

  seat(index: number): Locator {
    return this.page.locator(`#seat-${index}`);
  }

  async sees(index: number, state: SeatState, timeout?: number): Promise<void> {
    await expect(this.seat(index)).toHaveAttribute("data-state", state, timeout === undefined ? {} : { timeout });
  }

  /** Touches a seat with whatever this device has: a finger or a mouse. */
  async touch(index: number): Promise<void> {
    await press(this.seat(index));
  }

  /** Takes a free seat and waits until the server has granted it. */
  async hold(index: number): Promise<void> {
    const before = await this.cartSeats.count();
    await this.touch(index);
    await this.sees(index, "mine");
    await expect(this.cartSeats).toHaveCount(before + 1);
    await expect(this.held()).toHaveCount(before + 1);
  }

  /** Lets a seat of one's own go. */
  async letGo(index: number): Promise<void> {
    await this.touch(index);
    await this.sees(index, "available");
  }

  /** Lines of the cart that the server has granted. */
  held(): Locator {
    return this.page.locator('[data-testid="cart-seat"][data-held="true"]');
  }

  /** Names of the granted seats. */
  async heldNames(): Promise<string[]> {
    return this.held().locator(".cart-seat-name").allTextContents();
  }

  /** Opens the sheet with the cart, where it is one. */
  async openCart(): Promise<void> {
    const more = this.page.getByTestId("continue");
    // After a reload the seats are there before the cart is.
    await expect(this.total).toBeVisible();
    if (await more.isVisible()) await press(more);
  }

  /** Fills the form of the one who buys. */
  async fillDetails(name: string, email: string): Promise<void> {
    await this.openCart();
    await this.page.locator('input[name="name"]').fill(name);
    await this.page.locator('input[name="email"]').fill(email);
  }

  /** Fills the form and goes to the payment page. */
  async checkOut(name: string, email: string): Promise<void> {
    await this.fillDetails(name, email);
    await press(this.page.getByTestId("pay"));
    await expect(this.page.locator("#pay")).toBeVisible();
  }
}

/** Presses as this device does. */
export async function press(target: Locator): Promise<void> {
  if (test.info().project.use.hasTouch) await target.tap();
  else await target.click();
}
