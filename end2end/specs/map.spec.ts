// Zooming, panning and painting of the seat map.
import type { Page } from "@playwright/test";
import { holdAllExcept, releaseHold } from "../pages/api-visitors.js";
import { claimShow } from "../pages/catalogue.js";
import { messages } from "../pages/languages.js";
import { MapView } from "../pages/map.js";
import { largestRoomShow, paintedColours, paintWorkers, canvasChecksum } from "../pages/seat-canvas.js";
import { press, SMALLEST_TARGET } from "../pages/show.js";
import { expect, test, type Visitor } from "../pages/visitors.js";

/** A laptop's window below the bars of its browser. */
const SMALL_LAPTOP = { width: 1_280, height: 720 };
/** The smallest rooms of the demo with five categories. */
const FIVE_CATEGORIES = { minSeats: 400 };

/** Rooms whose seats can still grow by half: the seats of a lounge nearly have their largest size in the whole room. */
const MAGNIFIABLE = { minSeats: 180 };

/** Seats are painted together, seconds apart (`app/src/seat_map/plan/map_view.rs`), and sooner where a busy machine holds the drag. */
const PAINT_GAP_MS = 400;

const isPhone = () => !!test.info().project.use.hasTouch;

test("the zoom buttons zoom in and out, and the minimap shows and moves the view", async ({ request, anna }) => {
  const show = await claimShow(request, [["C", "7"]], MAGNIFIABLE);
  await anna.visit(show.id);
  const map = new MapView(anna.page);
  await map.zoom("whole");
  await expect(map.minimap).toBeHidden();
  const whole = await map.width();
  await expect(anna.page.getByTestId("zoom-out")).toHaveAttribute("aria-disabled", "true");
  // A small room reaches the maximum zoom before the second press.
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

test("the legend of five categories is in view below the card of a seat", async ({ request, anna }) => {
  test.skip(isPhone(), "on a phone it is a line that scrolls");
  const show = await claimShow(request, [["C", "7"]], FIVE_CATEGORIES);
  const hers = await anna.visit(show.id);
  await anna.page.setViewportSize(SMALL_LAPTOP);
  await expect(anna.page.getByTestId("price-filter")).toHaveCount(5);
  await hers.seat(show.seat("C", "7")).hover();
  await expect(anna.page.getByTestId("seat-card")).toContainText("Row C, seat 7");
  await expect(anna.page.locator(".legend")).toBeInViewport({ ratio: 1 });
});

test("the minimap is visible after one zoom step and hidden for the whole room", async ({ request, anna }) => {
  const show = await claimShow(request, [["C", "7"]], MAGNIFIABLE);
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

test("dragging by mouse pans the map and selects no seat", async ({ request, anna }) => {
  test.skip(isPhone(), "fingers scroll");
  const show = await claimShow(request, [["C", "7"]], MAGNIFIABLE);
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
  // A movement of a few pixels counts as a click. The drag may have moved the seat out of view.
  await anna.page.locator(`#seat-${show.seat("C", "7")}`).scrollIntoViewIfNeeded();
  await map.drag(await map.seatAt(show.seat("C", "7")), { x: 2, y: 1 });
  await hers.expectSeat(show.seat("C", "7"), "mine");
});

test("seats that change during a drag are painted together, and none is lost", async ({ request, anna }) => {
  const show = await claimShow(request, [["C", "7"]], MAGNIFIABLE);
  const hers = await anna.visit(show.id);
  const map = new MapView(anna.page);
  await map.zoom("in", 3);
  await expect(map.minimap, "the map is larger than its view").toBeVisible();
  const before = await map.scrolled();
  const paints = await map.recordPaints();
  const endDrag = await map.keepDragging();
  await expect.poll(() => map.scrolled(), "the drag moves the map").not.toEqual(before);

  const others = await holdAllExcept(show, [show.seat("C", "7")]);
  await hers.expectSeat(others.at(-1)!.seats.at(-1)!, "locked");
  const frames = await paints();
  const gaps = frames.slice(1).map((frame, number) => frame - frames[number]!);
  expect(gaps.filter((gap) => gap < PAINT_GAP_MS), `painted at ${frames.join(", ")} ms`).toEqual([]);

  await releaseHold(others[0]!, show);
  await endDrag();
  const states = others.flatMap(({ seats }, visitor) => seats.map((seat) => [seat, visitor === 0 ? "available" : "locked"]));
  await expect.poll(() => map.paintedStates()).toMatchObject(Object.fromEntries(states));
});

test("Ctrl and wheel zoom at the pointer, and the wheel alone scrolls the page", async ({ request, anna }) => {
  test.skip(isPhone(), "phones have no wheel");
  const show = await claimShow(request, [["C", "7"]], MAGNIFIABLE);
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
  // Repeated, because the map scrolls itself until its animation ends.
  await expect(async () => {
    await anna.page.mouse.wheel(0, 200);
    await expect.poll(() => anna.page.evaluate(() => window.scrollY), { timeout: 1_000 }).toBeGreaterThan(scrolled);
  }).toPass();
});

test("a pinch zooms, and one finger scrolls the page", async ({ request, anna }) => {
  test.skip(!isPhone(), "a mouse has no two fingers");
  const show = await claimShow(request, [["C", "7"]], MAGNIFIABLE);
  const hers = await anna.visit(show.id);
  const map = new MapView(anna.page);
  await map.zoom("whole");
  await map.scroller.scrollIntoViewIfNeeded();
  const whole = await map.width();
  await map.pinch(await map.middle(), 80, 240);
  await expect.poll(() => map.width()).toBeGreaterThan(whole * 1.8);
  await expect(hers.cartSeats, "a pinch selects no seat").toHaveCount(0);
  await expect(map.minimap, "the animation has ended").toBeVisible();
  await map.pinch(await map.middle(), 240, 40);
  await expect.poll(() => map.width()).toBeCloseTo(whole, -1);
  await anna.page.evaluate(() => window.scrollTo(0, 0));
  const before = await anna.page.evaluate(() => window.scrollY);
  await map.swipe(await map.middle(), { x: 0, y: -180 });
  await expect.poll(() => anna.page.evaluate(() => window.scrollY)).toBeGreaterThan(before);
});

test("the first tap on small seats zooms in, the next one selects the seat", async ({ request, anna }) => {
  test.skip(!isPhone(), "a mouse hits small seats");
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  const map = new MapView(anna.page);
  await map.zoom("whole");
  const c7 = show.seat("C", "7");
  const width = async () => (await anna.page.locator(`#seat-${c7} .seat-target`).boundingBox())!.width;
  test.skip((await width()) >= SMALLEST_TARGET, "this room's seats are large enough");
  await press(hers.seat(c7));
  await expect.poll(width, "seats of 40 pixels").toBeCloseTo(40, 0);
  await expect(hers.cartSeats).toHaveCount(0);
  await press(hers.seat(c7));
  await hers.expectSeat(c7, "mine");
  await expect(map.scroller).toBeVisible();
});

test("the first tap on a free seat with a restricted view shows its card, the next one selects the seat", async ({ request, anna }) => {
  test.skip(!isPhone(), "a mouse sees the card before it presses");
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  const atSide = anna.page.locator('.seat[data-state="available"][aria-label*="view from the side"]').first();
  const index = Number(await atSide.getAttribute("data-seat"));
  // Seats that are large enough for a finger: no tap magnifies the map.
  await new MapView(anna.page).zoom("in", 4);
  await press(hers.seat(index));
  const card = anna.page.getByTestId("seat-card");
  await expect(card).toContainText(messages("en")["map.card_restricted"]!);
  await expect(card.getByText(messages("en")["map.card_tap_again"]!)).toBeVisible();
  await press(hers.seat(index));
  await hers.expectSeat(index, "mine");
  await expect(card).not.toContainText(messages("en")["map.card_tap_again"]!);
  await expect(hers.heldSeats()).toHaveCount(1);
});

test("the focused seat is always in view", async ({ request, anna }) => {
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

test("a price filter dims the seats of other prices", async ({ request, anna }) => {
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

test("the seat card shows name, price and view of the screen", async ({ request, anna }) => {
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  await hers.hold(show.seat("C", "7"));
  const card = anna.page.getByTestId("seat-card");
  await expect(card).toContainText("Row C, seat 7");
  await expect(card).toContainText("all fees included");
  await expect(card).toContainText("of your view");
  await expect(card.locator(".sight-screen")).toHaveAttribute("points", /^(-?\d+,-?\d+ ?){4}$/);
});

/** Expects that the canvas is repainted after a change of theme and size. Starts and ends in the dark theme. */
async function expectRepaint(page: Page) {
  const dark = await paintedColours(page);
  await page.emulateMedia({ colorScheme: "light" });
  await expect.poll(() => paintedColours(page).then((light) => light.filter((colour) => dark.includes(colour))), "no colour of the dark theme remains").toEqual([]);
  expect((await paintedColours(page)).length).toBeGreaterThan(1);
  const size = page.viewportSize()!;
  await page.setViewportSize({ width: size.height, height: size.width });
  const fits = (canvas: HTMLCanvasElement) => canvas.width === Math.round(canvas.clientWidth * Math.min(devicePixelRatio, 2));
  const canvas = page.locator("canvas.overview-seats");
  await expect.poll(() => canvas.evaluate(fits), "the canvas has the resolution of its layout").toBe(true);
  await expect.poll(() => paintedColours(page).then((colours) => colours.length)).toBeGreaterThan(1);
  await page.setViewportSize(size);
  await page.emulateMedia({ colorScheme: "dark" });
}

test("a room of 50,000 seats is painted on a canvas, and only an open section has seat elements", async ({ request, newVisitor }) => {
  // More pixels than the canvas may have.
  const anna = await newVisitor(isPhone() ? { deviceScaleFactor: 3 } : {});
  // Before the page is opened: after a change of theme it is unknown when all of the map is repainted.
  await anna.page.emulateMedia({ colorScheme: "dark" });
  await anna.page.goto(`/shows/${(await largestRoomShow(request)).id}`);
  const map = anna.page.getByTestId("overview-map");
  await expect(map).toHaveAttribute("data-painted", "true");
  await expect.poll(() => paintedColours(anna.page).then((colours) => colours.length), "more than one category is painted").toBeGreaterThan(1);
  await expectRepaint(anna.page);
  await expect(anna.page.locator('[role="gridcell"]')).toHaveCount(0);
  await press(anna.page.locator(".section-card").nth(3));
  await expect(anna.page.locator('[role="gridcell"]').first()).toBeAttached();
  expect(await anna.page.locator('[role="gridcell"]').count()).toBeLessThan(1_500);
  // The paint worker ends with the canvas.
  await expect.poll(() => paintWorkers(anna.page).length).toBe(0);
  await press(anna.page.locator(".section-back"));
  await expect(anna.page.locator(".section-card").nth(3), "the focus returns").toBeFocused();
  await expect(map).toHaveAttribute("data-painted", "true");
  await expect.poll(() => paintedColours(anna.page).then((colours) => colours.length)).toBeGreaterThan(1);
  expect(paintWorkers(anna.page)).toHaveLength(1);
});

test("a worker paints the large room, and without one the page paints the same", async ({ request, anna, ben }) => {
  const { id } = await largestRoomShow(request);
  // As in a browser without OffscreenCanvas transfer.
  await ben.page.addInitScript(() => Reflect.deleteProperty(HTMLCanvasElement.prototype, "transferControlToOffscreen"));
  const loaded: string[] = [];
  ben.page.on("worker", (worker) => loaded.push(new URL(worker.url()).pathname));
  const look = async ({ page }: Visitor) => {
    await page.goto(`/shows/${id}`);
    await expect(page.getByTestId("overview-map")).toHaveAttribute("data-painted", "true");
    await expect.poll(() => paintedColours(page).then((colours) => colours.length)).toBeGreaterThan(1);
    return canvasChecksum(page);
  };
  // Repeated when they differ: other tests may buy there, and touching dots depend on the order of changes.
  await expect(async () => expect(await look(anna), "to the pixel").toEqual(await look(ben))).toPass();
  expect(paintWorkers(anna.page)).toHaveLength(1);
  expect(loaded.filter((path) => path.endsWith("/overview-worker.js")), "a browser that cannot use the worker does not load it").toEqual([]);
});

test("a lost paint worker is replaced", async ({ request, anna }) => {
  const { page } = anna;
  await page.goto(`/shows/${(await largestRoomShow(request)).id}`);
  await expect(page.getByTestId("overview-map")).toHaveAttribute("data-painted", "true");
  await expect.poll(() => paintedColours(page).then((colours) => colours.length)).toBeGreaterThan(1);
  const before = await paintedColours(page);
  const [worker] = paintWorkers(page);
  const gone = new Promise((resolve) => worker!.once("close", resolve));
  // After the answer to this call.
  await worker!.evaluate(() => void setTimeout(() => self.close()));
  await gone;
  // The loss is detected at the next repaint.
  await press(page.getByTestId("price-filter").first());
  await expect.poll(() => paintWorkers(page).length, { timeout: 20_000 }).toBe(1);
  await expect.poll(() => paintedColours(page), "other seats are dimmed").not.toEqual(before);
  await expect.poll(() => paintedColours(page).then((colours) => colours.length)).toBeGreaterThan(1);
});

test("font and form styles load only after the seats are interactive", async ({ request, anna }) => {
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
    // Not earlier: the clock has a resolution of a tenth of a millisecond.
    expect(await asked(part)).toBeGreaterThanOrEqual(seats ?? Infinity);
  }
  expect(await asked("/style/map.css")).toBeGreaterThan(0);
  expect(await asked("/style/main.css")).toBeUndefined();
});

test("a message overlays the map without moving it or covering a button", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const c7 = show.seat("C", "7");
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(c7);
  await his.expectSeat(c7, "locked");
  const map = new MapView(ben.page);
  const close = ben.page.getByRole("button", { name: messages("en")["map.close_message"]! });
  // A first time, because pressing a seat scrolls it into view.
  await his.pressSeat(c7);
  await press(close);
  await expect(his.message).toBeEmpty();

  const before = await map.seatAt(c7);
  await his.pressSeat(c7);
  await expect(his.message).toContainText("C7");
  expect(await map.seatAt(c7)).toEqual(before);
  const notice = (await ben.page.locator(".notice").boundingBox())!;
  // On a phone the cart is hidden while it is empty.
  for (const other of [ben.page.locator(".room-zoom"), isPhone() ? ben.page.locator(".party") : his.cart]) {
    const box = (await other.boundingBox())!;
    const isBeside = notice.x + notice.width <= box.x || box.x + box.width <= notice.x;
    const isAboveOrBelow = notice.y + notice.height <= box.y || box.y + box.height <= notice.y;
    expect(isBeside || isAboveOrBelow, `${JSON.stringify(notice)} and ${JSON.stringify(box)}`).toBe(true);
  }
  await press(close);
  await expect(his.message).toBeEmpty();
  expect(await map.seatAt(c7)).toEqual(before);
});
