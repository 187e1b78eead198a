// The drawing board of organisers, as they use it.
import { expect, type Page } from "@playwright/test";

import type { Point } from "./fingers.js";

/** What is written into the form of new rows; the rest stays as it stands there. */
interface NewRows {
  rows: string;
  seats: string;
  bow: string;
  aisles: string;
}

export class LayoutBoard {
  constructor(private readonly page: Page) {}

  /** Waits until there is something to draw on. */
  async opens(): Promise<void> {
    await expect(this.page.getByTestId("layout-board")).toBeVisible();
  }

  /** Waits until this mistake is named. */
  async says(finding: string): Promise<void> {
    await expect(this.page.locator(`[data-testid="layout-mistakes"] [data-finding="${finding}"]`).first()).toBeVisible();
    await expect(this.page.getByTestId("layout-mistakes")).toHaveAttribute("data-state", "wrong");
  }

  /** Waits until nothing is wrong any more. */
  async passes(): Promise<void> {
    await expect(this.page.getByTestId("layout-mistakes")).toHaveAttribute("data-state", "passes");
  }

  /** Fills the form from its first field to its last and sends it, by the keyboard alone. */
  async drawRows({ rows, seats, bow, aisles }: NewRows): Promise<void> {
    for (const [field, text] of [["#new-rows", rows], ["#new-seats", seats], ["#new-aisles", aisles], ["#new-bow", bow]] as const) {
      await this.page.locator(field).focus();
      await this.page.keyboard.press("Control+a");
      await this.page.keyboard.type(text);
    }
    await this.page.keyboard.press("Enter");
  }

  async seats(): Promise<number> {
    return Number(await this.page.getByTestId("layout-count").getAttribute("data-seats"));
  }

  /** Chooses a row in the list, by the keyboard; it keeps the focus. */
  async choose(row: string): Promise<void> {
    const line = this.page.getByTestId("layout-thing").filter({ hasText: new RegExp(`^Row \\W*${row}\\W* ·`) });
    await line.focus();
    await this.page.keyboard.press("Enter");
    await expect(line).toHaveAttribute("aria-pressed", "true");
  }

  /** Writes into a field and leaves it. */
  async write(field: string, text: string): Promise<void> {
    await this.page.locator(field).fill(text);
    await this.page.locator(field).press("Tab");
  }

  /** Where a seat of a row is drawn: the middle of it, units of the drawing. */
  async place(row: string, seat: number): Promise<{ x: number; y: number }> {
    const drawn = this.row(row).locator(`[data-seat="${seat}"]`);
    return { x: Number(await drawn.getAttribute("x")), y: Number(await drawn.getAttribute("y")) };
  }

  /** Drags a row by its first seat, pixels. */
  async drag(row: string, x: number, y: number): Promise<void> {
    const seat = this.row(row).locator('[data-seat="0"]');
    await seat.scrollIntoViewIfNeeded();
    const box = await seat.boundingBox();
    if (!box) throw new Error(`row ${row} is nowhere to be seen`);
    const [left, top] = [box.x + box.width / 2, box.y + box.height / 2];
    await this.page.mouse.move(left, top);
    await this.page.mouse.down();
    await this.page.mouse.move(left + x / 2, top + y / 2);
    await this.page.mouse.move(left + x, top + y);
    await this.page.mouse.up();
  }

  /** How wide the drawing is, pixels. */
  async width(): Promise<number> {
    return Number(await this.page.getByTestId("layout-board").getAttribute("width"));
  }

  /** Where the middle of a seat is in the window. */
  async seatAt(row: string, seat: number): Promise<Point> {
    const box = await this.row(row).locator(`[data-seat="${seat}"]`).boundingBox();
    if (!box) throw new Error(`row ${row} is nowhere to be seen`);
    return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  }

  /** What is chosen, as the list beside the drawing says it. */
  async chosen(): Promise<string[]> {
    return this.page.locator('[data-testid="layout-thing"][aria-pressed="true"]').allTextContents();
  }

  private row(row: string) {
    const letter = this.page.locator(".layout-letter", { hasText: new RegExp(`^${row}$`) });
    return this.page.locator(".layout-row", { has: letter });
  }
}
