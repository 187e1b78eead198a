// The first view of every room: all of it is on the screen, large enough to read, and a tap hits the seat under it.
import { roomsOfTheDemo } from "../pages/catalogue.js";
import { expectWholeRoom, openRoom } from "../pages/first-view.js";
import { MapView } from "../pages/map.js";
import { press } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

/** Most seats tapped in each room and at each magnification. */
const TAPS = 200;

test("every room is on the screen as a whole", async ({ request, anna }) => {
  test.slow();
  for (const room of await roomsOfTheDemo(request)) {
    await test.step(room.name, async () => {
      await openRoom(anna.page, room.show);
      await expectWholeRoom(anna.page, room.name);
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
      const seats = anna.page.locator("[data-seat]");
      // A large room draws its sections at first.
      if ((await seats.count()) === 0) {
        await press(anna.page.locator(".section-card").first());
        await expect(seats.first()).toBeAttached();
      }
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
