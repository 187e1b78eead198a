// Opens the page of a room, measures its first view, and taps its seats at every magnification.
import { expect, type Page, test } from "@playwright/test";

import { MapView } from "./map.js";
import { press } from "./show.js";

/** Least share of a phone's pixels for the map, and of a laptop's, which has the cart beside it. */
const LEAST_SHARE = { phone: 0.6, laptop: 0.4 };
/** Smallest size of a recognisable seat, pixels. */
const SMALLEST_SEAT = 6;
/** Most seats tapped in each room and at each magnification. */
const TAPS = 200;

/** Opens the page of a show and waits until its room is drawn in its final size. */
export async function openRoom(page: Page, show: string): Promise<void> {
  await page.goto(`/shows/${show}`);
  await expect(page.locator('[role="gridcell"][data-state="available"], .overview-map[data-painted="true"]').first()).toBeAttached();
  await expect(page.locator(".room-pan, .overview-fit").first()).toHaveAttribute("data-measured");
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

/** Expects that a tap on random seats of the open room, or of its first section, hits them at every magnification. */
export async function expectTapsToHit(page: Page, room: string): Promise<void> {
  const map = new MapView(page);
  const seats = page.locator("[data-seat]");
  // A large room draws its sections at first.
  if ((await seats.count()) === 0) {
    await press(page.locator(".section-card").first());
    await expect(seats.first()).toBeAttached();
  }
  for (let step = 0; ; step += 1) {
    expect(await page.evaluate(missedSeats, TAPS), `${room}, step ${step}`).toEqual([]);
    if ((await page.getByTestId("zoom-in").getAttribute("aria-disabled")) === "true") break;
    const before = await map.width();
    await map.zoom("in");
    await expect.poll(() => map.width()).toBeGreaterThan(before);
  }
}

/** In the page: scrolls to random seats, and returns those that are not the topmost element at their middle then, nor
 * after scrolling to another. */
const missedSeats = async (count: number) => {
  // A change of the magnification glides.
  await Promise.allSettled(document.querySelector(".room-plane")!.getAnimations().map((glide) => glide.finished));
  const seats = [...document.querySelectorAll("[data-seat]")];
  for (let place = 0; place < Math.min(count, seats.length); place += 1) {
    const other = place + Math.floor(Math.random() * (seats.length - place));
    [seats[place], seats[other]] = [seats[other]!, seats[place]!];
  }
  const targetOf = (seat: Element) => seat.querySelector(".seat-target")!;
  const isHit = (seat: Element) => {
    const box = targetOf(seat).getBoundingClientRect();
    const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    return hit?.closest("[data-seat]") === seat;
  };
  const missed = [];
  for (let left = seats.slice(0, count); left.length > 0; left = left.filter((seat) => !isHit(seat))) {
    const seat = left[0]!;
    targetOf(seat).scrollIntoView({ block: "center", inline: "center" });
    // At an edge of the map, the minimap moves to another corner.
    for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
    if (!isHit(seat)) {
      missed.push(seat.getAttribute("aria-label"));
      left.shift();
    }
  }
  return missed;
};
