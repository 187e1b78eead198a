// The first view of every room: all of it is on the screen, large enough to read, and a tap hits the seat under it.
import type { Page } from "@playwright/test";
import { roomsOfTheDemo } from "../pages/catalogue.js";
import { MapView } from "../pages/map.js";
import { expect, test } from "../pages/visitors.js";

/** Least share of a phone's pixels for the map, and of a laptop's, which has the cart beside it. */
const LEAST_SHARE = { phone: 0.6, laptop: 0.4 };
/** Smallest size of a recognisable seat, pixels. */
const SMALLEST_SEAT = 6;
/** Most seats tapped in each room and at each magnification. */
const TAPS = 170;

/** Waits until a room is drawn in its final size. */
async function openRoom(page: Page, show: string): Promise<void> {
  await page.goto(`/shows/${show}`);
  await expect(page.locator('[role="gridcell"][data-state="available"], .overview-map[data-painted="true"]').first()).toBeAttached();
  await expect(page.getByTestId("party-find")).toBeVisible();
  await expect(page.locator(".legend")).toBeVisible();
  await page.waitForFunction(() => document.fonts.size > 0 && document.fonts.check("1em Figtree"));
}

/** Measures in the page what is in the first view. */
const measure = () => {
  const boxes = (selector: string) => [...document.querySelectorAll(selector)].map((element) => element.getBoundingClientRect());
  const map = document.querySelector(".room-pan, .overview-fit")!.getBoundingClientRect();
  const isSeen = (box: DOMRect) =>
    box.left >= map.left - 1 && box.right <= map.right + 1 && box.top >= map.top - 1 && box.bottom <= map.bottom + 1 && box.bottom <= innerHeight;
  const parts = boxes(".seat-target, .overview-boxes .overview-box");
  const labels = boxes(".row-letter:not([hidden]), .focus-label, .overview-box-label, .overview-focus-label");
  return {
    parts: parts.length,
    hidden: parts.filter((box) => !isSeen(box)).length,
    cutLabels: labels.filter((box) => !isSeen(box)).length,
    seat: Math.min(...boxes(".seat-target").map((box) => box.width)),
    share: (map.width * map.height) / (innerWidth * innerHeight),
    isWider: document.documentElement.scrollWidth > innerWidth,
  };
};

test("every room is on the screen as a whole", async ({ request, anna }) => {
  test.slow();
  const least = LEAST_SHARE[test.info().project.name as keyof typeof LEAST_SHARE];
  for (const room of await roomsOfTheDemo(request)) {
    await test.step(room.name, async () => {
      await openRoom(anna.page, room.show);
      const seen = await anna.page.evaluate(measure);
      expect(seen.parts, room.name).toBeGreaterThan(0);
      expect(seen, room.name).toMatchObject({ hidden: 0, cutLabels: 0, isWider: false });
      expect(seen.seat, room.name).toBeGreaterThan(SMALLEST_SEAT);
      expect(seen.share, room.name).toBeGreaterThanOrEqual(least);
    });
  }
});

/** In the page: scrolls to random seats, to each at most once, and returns those that are not the topmost element at
 * their middle. */
const missedSeats = (count: number) => {
  const seats = [...document.querySelectorAll("[data-seat]")];
  for (let place = 0; place < Math.min(count, seats.length); place += 1) {
    const other = place + Math.floor(Math.random() * (seats.length - place));
    [seats[place], seats[other]] = [seats[other]!, seats[place]!];
  }
  const chosen = seats.slice(0, count);
  return chosen
    .filter((seat) => {
      const target = seat.querySelector(".seat-target")!;
      target.scrollIntoView({ block: "center", inline: "center" });
      const box = target.getBoundingClientRect();
      const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
      return hit?.closest("[data-seat]") !== seat;
    })
    .map((seat) => seat.getAttribute("aria-label"));
};

test("a tap hits the seat under it in every room and at every magnification", async ({ request, anna }) => {
  test.slow();
  for (const room of await roomsOfTheDemo(request)) {
    await test.step(room.name, async () => {
      await openRoom(anna.page, room.show);
      const map = new MapView(anna.page);
      if ((await anna.page.locator("[data-seat]").count()) === 0) return;
      for (let step = 0; ; step += 1) {
        expect(await anna.page.evaluate(missedSeats, TAPS), `${room.name}, step ${step}`).toEqual([]);
        if ((await anna.page.getByTestId("zoom-in").getAttribute("aria-disabled")) === "true") break;
        const before = await map.width();
        await map.zoom("in");
        await expect.poll(() => map.width()).toBeGreaterThan(before);
        await expect(map.room).not.toHaveCSS("transform", /matrix\((?!1, 0, 0, 1, 0, 0)/);
      }
    });
  }
});
