// Opens the page of a room and measures its first view.
import { expect, type Page, test } from "@playwright/test";

/** Least share of a phone's pixels for the map, and of a laptop's, which has the cart beside it. */
const LEAST_SHARE = { phone: 0.6, laptop: 0.4 };
/** Smallest size of a recognisable seat, pixels. */
const SMALLEST_SEAT = 6;

/** Opens the page of a show and waits until its room is drawn in its final size. */
export async function openRoom(page: Page, show: string): Promise<void> {
  await page.goto(`/shows/${show}`);
  await expect(page.locator('[role="gridcell"][data-state="available"], .overview-map[data-painted="true"]').first()).toBeAttached();
  await expect(page.getByTestId("party-find")).toBeVisible();
  await expect(page.locator(".legend")).toBeVisible();
  await page.waitForFunction(() => document.fonts.size > 0 && document.fonts.check("1em Figtree"));
}

/** Expects all seats or sections of the open room on the screen, and no label cut. */
export async function expectWholeRoom(page: Page, room: string): Promise<void> {
  const seen = await page.evaluate(measure);
  expect(seen.parts, room).toBeGreaterThan(0);
  expect(seen, room).toMatchObject({ hidden: 0, cutLabels: [], isWider: false });
  expect(seen.seat, room).toBeGreaterThan(SMALLEST_SEAT);
  expect(seen.share, room).toBeGreaterThanOrEqual(LEAST_SHARE[test.info().project.name as keyof typeof LEAST_SHARE]);
}

/** Runs in the page: measures its first view. */
const measure = () => {
  const boxes = (selector: string) => [...document.querySelectorAll(selector)].map((element) => element.getBoundingClientRect());
  const map = document.querySelector(".room-pan, .overview-fit")!.getBoundingClientRect();
  const isSeen = (box: DOMRect) =>
    box.left >= map.left - 1 && box.right <= map.right + 1 && box.top >= map.top - 1 && box.bottom <= map.bottom + 1 && box.bottom <= innerHeight;
  const parts = boxes(".seat-target, .overview-boxes .overview-box");
  // Rows of imported plans may have no name, and an empty text has no place.
  const labels = [...document.querySelectorAll(".row-letter:not([hidden]), .focus-label, .overview-box-label, .overview-focus-label")].filter(
    (label) => label.textContent !== "",
  );
  return {
    parts: parts.length,
    hidden: parts.filter((box) => !isSeen(box)).length,
    cutLabels: labels.filter((label) => !isSeen(label.getBoundingClientRect())).map((label) => label.textContent),
    seat: Math.min(...boxes(".seat-target").map((box) => box.width)),
    share: (map.width * map.height) / (innerWidth * innerHeight),
    isWider: document.documentElement.scrollWidth > innerWidth,
  };
};
