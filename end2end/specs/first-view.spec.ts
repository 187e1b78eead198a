// The first view of every room: all of it is on the screen, large enough to read, and a tap hits the seat under it.
import { roomsOfTheDemo } from "../pages/catalogue.js";
import { expectTapsToHit, expectWholeRoom, openRoom } from "../pages/first-view.js";
import { test } from "../pages/visitors.js";

test("every room is on the screen as a whole", async ({ request, anna }) => {
  test.slow();
  for (const room of await roomsOfTheDemo(request)) {
    await test.step(room.name, async () => {
      await openRoom(anna.page, room.show);
      await expectWholeRoom(anna.page, room.name);
    });
  }
});

test("a tap hits the seat under it in every room and at every magnification", async ({ request, anna }) => {
  test.slow();
  for (const room of await roomsOfTheDemo(request)) {
    await test.step(room.name, async () => {
      await openRoom(anna.page, room.show);
      await expectTapsToHit(anna.page, room.name);
    });
  }
});
