// The map under one's hands: closer, further, elsewhere, and never a tap lost or a page stuck.
import type { Page } from "@playwright/test";
import { claimShow } from "../pages/catalogue.js";
import { messages } from "../pages/languages.js";
import { MapView } from "../pages/map.js";
import { arena, paintedColours, painters, pictureOf } from "../pages/overview.js";
import { press } from "../pages/show.js";
import { expect, test, type Visitor } from "../pages/visitors.js";

const isPhone = () => !!test.info().project.use.hasTouch;

test("buttons look closer and back at the whole room, and the small map says where one is", async ({ request, anna }) => {
  const show = await claimShow(request);
  await anna.visit(show.id);
  const map = new MapView(anna.page);
  await map.zoom("whole");
  await expect(map.minimap).toBeHidden();
  const whole = await map.width();
  await expect(anna.page.getByTestId("zoom-out")).toHaveAttribute("aria-disabled", "true");
  // A small room is at its closest before the second press.
  await map.zoom("in", 2);
  await expect.poll(() => map.width()).toBeGreaterThan(whole * 1.4);
  await expect(map.minimap).toBeVisible();
  const before = await map.scrolled();
  await map.minimap.click({ position: { x: 4, y: 4 } });
  await expect.poll(async () => (await map.scrolled()).x).toBeLessThan(before.x);
  await map.zoom("whole");
  await expect.poll(() => map.width()).toBeCloseTo(whole, -1);
  await expect(map.minimap).toBeHidden();
});

test("one press of the button is enough for the small map, and the whole room needs none", async ({ request, anna }) => {
  const show = await claimShow(request);
  await anna.visit(show.id);
  const map = new MapView(anna.page);
  await map.zoom("whole");
  const whole = await map.width();
  await map.zoom("in");
  await expect.poll(() => map.width()).toBeCloseTo(whole * 1.5, -1);
  await expect(map.minimap).toBeVisible();
  await map.zoom("whole");
  await expect(map.minimap).toBeHidden();
});

test("a mouse drags the map, and letting go over a seat takes none", async ({ request, anna }) => {
  test.skip(isPhone(), "fingers scroll");
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  const map = new MapView(anna.page);
  await map.zoom("in", 3);
  await map.scroller.scrollIntoViewIfNeeded();
  await anna.page.locator(`#seat-${show.seat("C", "7")}`).scrollIntoViewIfNeeded();
  const from = await map.seatAt(show.seat("C", "7"));
  const before = await map.scrolled();
  await map.drag(from, { x: -90, y: 0 });
  await expect.poll(async () => (await map.scrolled()).x).not.toBe(before.x);
  await expect(hers.cartSeats).toHaveCount(0);
  // A hand that trembles has clicked all the same.
  await map.drag(await map.seatAt(show.seat("C", "7")), { x: 2, y: 1 });
  await hers.sees(show.seat("C", "7"), "mine");
});

test("the wheel with Ctrl looks closer at what is under it, and without it scrolls the page", async ({ request, anna }) => {
  test.skip(isPhone(), "phones have no wheel");
  const show = await claimShow(request);
  await anna.visit(show.id);
  const map = new MapView(anna.page);
  const c7 = show.seat("C", "7");
  const whole = await map.width();
  const at = await map.seatAt(c7);
  await anna.page.mouse.move(at.x, at.y);
  await anna.page.keyboard.down("Control");
  await anna.page.mouse.wheel(0, -300);
  await anna.page.keyboard.up("Control");
  await expect.poll(() => map.width()).toBeGreaterThan(whole * 1.5);
  expect(await map.isAt(c7, at), "the seat stayed under the mouse").toBe(true);
  await map.zoom("whole");
  await expect.poll(() => map.width()).toBeCloseTo(whole, -1);
  const scrolled = await anna.page.evaluate(() => window.scrollY);
  const middle = await map.middle();
  await anna.page.mouse.move(middle.x, middle.y);
  // Once more where the map was just about to be still: until then it scrolls itself.
  await expect(async () => {
    await anna.page.mouse.wheel(0, 200);
    await expect.poll(() => anna.page.evaluate(() => window.scrollY), { timeout: 1_000 }).toBeGreaterThan(scrolled);
  }).toPass();
});

test("two fingers look closer, and one still scrolls the page", async ({ request, anna }) => {
  test.skip(!isPhone(), "a mouse has no two fingers");
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  const map = new MapView(anna.page);
  await map.zoom("whole");
  await map.scroller.scrollIntoViewIfNeeded();
  const whole = await map.width();
  await map.pinch(await map.middle(), 80, 240);
  await expect.poll(() => map.width()).toBeGreaterThan(whole * 1.8);
  await expect(hers.cartSeats, "fingers that pinch tap nothing").toHaveCount(0);
  await expect(map.minimap, "the map has come to rest").toBeVisible();
  await map.pinch(await map.middle(), 240, 40);
  await expect.poll(() => map.width()).toBeCloseTo(whole, -1);
  await anna.page.evaluate(() => window.scrollTo(0, 200));
  const before = await anna.page.evaluate(() => window.scrollY);
  await map.swipe(await map.middle(), { x: 0, y: -180 });
  await expect.poll(() => anna.page.evaluate(() => window.scrollY)).toBeGreaterThan(before);
});

test("a tap on seats too small for a finger looks closer first, the next one takes the seat", async ({ request, anna }) => {
  test.skip(!isPhone(), "a mouse hits small seats");
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  const map = new MapView(anna.page);
  await map.zoom("whole");
  const c7 = show.seat("C", "7");
  const small = (await anna.page.locator(`#seat-${c7} .seat-target`).boundingBox())!.width < 22;
  test.skip(!small, "this room's seats are large enough at once");
  await press(hers.seat(c7));
  await expect.poll(async () => (await anna.page.locator(`#seat-${c7} .seat-target`).boundingBox())!.width).toBeGreaterThan(22);
  await expect(hers.cartSeats).toHaveCount(0);
  await press(hers.seat(c7));
  await hers.sees(c7, "mine");
  await expect(map.scroller).toBeVisible();
});

test("the focus is never out of view", async ({ request, anna }) => {
  test.skip(isPhone(), "phones have no keyboard");
  const show = await claimShow(request);
  await anna.visit(show.id);
  await new MapView(anna.page).zoom("in", 4);
  await anna.page.locator('[role="gridcell"][tabindex="0"]').focus();
  for (const key of ["Control+End", "Home", "Control+Home", "End"]) {
    await anna.page.keyboard.press(key);
    await expect(anna.page.locator('[role="gridcell"]:focus')).toBeInViewport();
  }
});

test("a price that is pressed leaves only its seats standing out", async ({ request, anna }) => {
  const show = await claimShow(request);
  await anna.visit(show.id);
  const prices = anna.page.getByTestId("price-filter");
  test.skip((await prices.count()) < 2, "this room has one price");
  const category = /cat-(\d)/.exec((await prices.first().getAttribute("class")) ?? "")?.[1];
  await press(prices.first());
  await expect(prices.first()).toHaveAttribute("aria-pressed", "true");
  const others = anna.page.locator(`.seat:not(.cat-${category})[data-state="available"]`).first();
  await expect(others).toHaveCSS("opacity", "0.22");
  await expect(anna.page.locator(`.seat.cat-${category}[data-state="available"]`).first()).toHaveCSS("opacity", "1");
  await press(prices.first());
  await expect(others).toHaveCSS("opacity", "1");
});

test("a seat tells its place, its price and how the screen looks from there", async ({ request, anna }) => {
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  await hers.hold(show.seat("C", "7"));
  const card = anna.page.getByTestId("seat-card");
  await expect(card).toContainText("Row C, seat 7");
  await expect(card).toContainText("all fees included");
  await expect(card).toContainText("of your view");
  await expect(card.locator(".sight-screen")).toHaveAttribute("points", /^(-?\d+,-?\d+ ?){4}$/);
});

/** Another theme and another size of the page: the canvas is painted anew. Its page is dark, and afterwards as it was. */
async function followsThePage(page: Page) {
  const dark = await paintedColours(page);
  await page.emulateMedia({ colorScheme: "light" });
  await expect.poll(() => paintedColours(page).then((light) => light.filter((colour) => dark.includes(colour))), "no colour of the dark theme is left").toEqual([]);
  expect((await paintedColours(page)).length).toBeGreaterThan(1);
  const size = page.viewportSize()!;
  await page.setViewportSize({ width: size.height, height: size.width });
  const fits = (canvas: HTMLCanvasElement) => canvas.width === Math.round(canvas.clientWidth * Math.min(devicePixelRatio, 2));
  const canvas = page.locator("canvas.overview-seats");
  await expect.poll(() => canvas.evaluate(fits), "the canvas is as sharp as it is laid out").toBe(true);
  await expect.poll(() => paintedColours(page).then((colours) => colours.length)).toBeGreaterThan(1);
  await page.setViewportSize(size);
  await page.emulateMedia({ colorScheme: "dark" });
}

test("a room of 50,000 seats is painted whole, and only what one looks at becomes seats", async ({ request, anna }) => {
  // Before the page is opened: of a map that was painted light it cannot be told when all of it is dark.
  await anna.page.emulateMedia({ colorScheme: "dark" });
  await anna.page.goto(`/shows/${(await arena(request)).id}`);
  const map = anna.page.getByTestId("overview-map");
  await expect(map).toHaveAttribute("data-painted", "true");
  await expect.poll(() => paintedColours(anna.page).then((colours) => colours.length), "more than one category is painted").toBeGreaterThan(1);
  await followsThePage(anna.page);
  await expect(anna.page.locator('[role="gridcell"]')).toHaveCount(0);
  await press(anna.page.locator(".section-card").nth(3));
  await expect(anna.page.locator('[role="gridcell"]').first()).toBeAttached();
  expect(await anna.page.locator('[role="gridcell"]').count()).toBeLessThan(1_500);
  // Who painted it is gone with it.
  await expect.poll(() => painters(anna.page).length).toBe(0);
  await press(anna.page.locator(".section-back"));
  await expect(anna.page.locator(".section-card").nth(3), "one stands where one left").toBeFocused();
  await expect(map).toHaveAttribute("data-painted", "true");
  await expect.poll(() => paintedColours(anna.page).then((colours) => colours.length)).toBeGreaterThan(1);
  expect(painters(anna.page)).toHaveLength(1);
});

test("a worker paints the large room, and where there can be none the page paints the same", async ({ request, anna, ben }) => {
  const { id } = await arena(request);
  // As in a browser that hands over no canvas.
  await ben.page.addInitScript(() => Reflect.deleteProperty(HTMLCanvasElement.prototype, "transferControlToOffscreen"));
  const loaded: string[] = [];
  ben.page.on("worker", (worker) => loaded.push(new URL(worker.url()).pathname));
  const look = async ({ page }: Visitor) => {
    await page.goto(`/shows/${id}`);
    await expect(page.getByTestId("overview-map")).toHaveAttribute("data-painted", "true");
    await expect.poll(() => paintedColours(page).then((colours) => colours.length)).toBeGreaterThan(1);
    return pictureOf(page);
  };
  // Opened again where they differ: others may buy there just now, and dots that touch show in which order they changed.
  await expect(async () => expect(await look(anna), "to the pixel").toEqual(await look(ben))).toPass();
  expect(painters(anna.page)).toHaveLength(1);
  expect(loaded.filter((path) => path.endsWith("/overview-worker.js")), "nobody who cannot use it loads it").toEqual([]);
});

test("where the worker that paints is lost, another paints the whole room", async ({ request, anna }) => {
  const { page } = anna;
  await page.goto(`/shows/${(await arena(request)).id}`);
  await expect(page.getByTestId("overview-map")).toHaveAttribute("data-painted", "true");
  await expect.poll(() => paintedColours(page).then((colours) => colours.length)).toBeGreaterThan(1);
  const before = await paintedColours(page);
  const [worker] = painters(page);
  const gone = new Promise((resolve) => worker!.once("close", resolve));
  // Later than the answer to this.
  await worker!.evaluate(() => void setTimeout(() => self.close()));
  await gone;
  // Nobody notices before there is something to paint.
  await press(page.getByTestId("price-filter").first());
  await expect.poll(() => painters(page).length, { timeout: 20_000 }).toBe(1);
  await expect.poll(() => paintedColours(page), "what is not looked for is faint").not.toEqual(before);
  await expect.poll(() => paintedColours(page).then((colours) => colours.length)).toBeGreaterThan(1);
});

test("a seat can be taken before the font and the style of the form are asked for, and then they come", async ({ request, anna }) => {
  const show = await claimShow(request);
  await anna.page.addInitScript(() => {
    const look = () => {
      if (document.querySelector('[role="gridcell"][data-state="available"]')) performance.mark("seats");
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  await anna.visit(show.id);
  const asked = (part: string) =>
    anna.page.evaluate((name) => performance.getEntriesByType("resource").find((entry) => entry.name.includes(name))?.startTime, part);
  for (const part of ["/style/map-later.css", "/fonts/figtree-"]) {
    await expect.poll(() => asked(part)).toBeGreaterThan(0);
    const seats = await anna.page.evaluate(() => performance.getEntriesByName("seats")[0]?.startTime);
    // Not before: their clock steps by a tenth of a millisecond.
    expect(await asked(part)).toBeGreaterThanOrEqual(seats ?? Infinity);
  }
  expect(await asked("/style/map.css")).toBeGreaterThan(0);
  expect(await asked("/style/main.css")).toBeUndefined();
});

test("what one must know lies over the map: nothing moves for it, and no button is covered", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(c7);
  await his.sees(c7, "locked");
  const map = new MapView(ben.page);
  const close = ben.page.getByRole("button", { name: messages("en")["map.close_message"]! });
  // Once before it counts: to touch a seat, one brings it into view.
  await his.touch(c7);
  await press(close);
  await expect(his.message).toBeEmpty();

  const before = await map.seatAt(c7);
  await his.touch(c7);
  await expect(his.message).toContainText("C7");
  expect(await map.seatAt(c7)).toEqual(before);
  const notice = (await ben.page.locator(".notice").boundingBox())!;
  for (const other of [ben.page.locator(".room-zoom"), his.cart]) {
    const box = (await other.boundingBox())!;
    const isBeside = notice.x + notice.width <= box.x || box.x + box.width <= notice.x;
    const isAboveOrBelow = notice.y + notice.height <= box.y || box.y + box.height <= notice.y;
    expect(isBeside || isAboveOrBelow, `${JSON.stringify(notice)} and ${JSON.stringify(box)}`).toBe(true);
  }
  await press(close);
  await expect(his.message).toBeEmpty();
  expect(await map.seatAt(c7)).toEqual(before);
});
