// The layout editor of organisers.
import { expect, type Page } from "@playwright/test";

import type { Point } from "./touch.js";

/** Values for the form of new rows. */
interface NewRows {
  rows: string;
  seats: string;
  bow: string;
  aisles: string;
}

export class LayoutBoard {
  constructor(private readonly page: Page) {}

  /** Waits until the drawing is visible. */
  async waitUntilReady(): Promise<void> {
    await expect(this.page.getByTestId("layout-board")).toBeVisible();
  }

  /** Waits until this mistake is reported. */
  async expectMistake(finding: string): Promise<void> {
    await expect(this.page.locator(`[data-testid="layout-mistakes"] [data-finding="${finding}"]`).first()).toBeVisible();
    await expect(this.page.getByTestId("layout-mistakes")).toHaveAttribute("data-state", "wrong");
  }

  /** Waits until the plan has no mistakes. */
  async expectValid(): Promise<void> {
    await expect(this.page.getByTestId("layout-mistakes")).toHaveAttribute("data-state", "passes");
  }

  /** Fills and submits the form of new rows by keyboard. */
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

  /** Selects a row in the list by keyboard. */
  async selectRow(row: string): Promise<void> {
    const line = this.page.getByTestId("layout-thing").filter({ hasText: new RegExp(`^Row \\W*${row}\\W* ·`) });
    await line.focus();
    await this.page.keyboard.press("Enter");
    await expect(line).toHaveAttribute("aria-pressed", "true");
  }

  /** Fills a field and moves the focus away. */
  async fillField(field: string, text: string): Promise<void> {
    await this.page.locator(field).fill(text);
    await this.page.locator(field).press("Tab");
  }

  /** Returns the centre of a seat, in units of the drawing. */
  async seatPosition(row: string, seat: number): Promise<{ x: number; y: number }> {
    const drawn = this.row(row).locator(`[data-seat="${seat}"]`);
    return { x: Number(await drawn.getAttribute("x")), y: Number(await drawn.getAttribute("y")) };
  }

  /** Drags a row by its first seat, in pixels. */
  async drag(row: string, x: number, y: number): Promise<void> {
    const seat = this.row(row).locator('[data-seat="0"]');
    await seat.scrollIntoViewIfNeeded();
    const box = await seat.boundingBox();
    if (!box) throw new Error(`row ${row} is not visible`);
    const [left, top] = [box.x + box.width / 2, box.y + box.height / 2];
    await this.page.mouse.move(left, top);
    await this.page.mouse.down();
    await this.page.mouse.move(left + x / 2, top + y / 2);
    await this.page.mouse.move(left + x, top + y);
    await this.page.mouse.up();
  }

  /** Returns the width of the drawing, in pixels. */
  async width(): Promise<number> {
    return Number(await this.page.getByTestId("layout-board").getAttribute("width"));
  }

  /** Returns the centre of a seat, in window pixels. */
  async seatAt(row: string, seat: number): Promise<Point> {
    const box = await this.row(row).locator(`[data-seat="${seat}"]`).boundingBox();
    if (!box) throw new Error(`row ${row} is not visible`);
    return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  }

  /** Returns the selected entries of the list. */
  async selected(): Promise<string[]> {
    return this.page.locator('[data-testid="layout-thing"][aria-pressed="true"]').allTextContents();
  }

  private row(row: string) {
    const letter = this.page.locator(".layout-letter", { hasText: new RegExp(`^${row}$`) });
    return this.page.locator(".layout-row", { has: letter });
  }
}
