// General admission: unnumbered places, bought for a friend, or taken in another area because the first is full.
import { randomUUID } from "node:crypto";

import { claimShowWithArea } from "../pages/catalogue.js";
import { expectBookingState, bookingPath, payWith, readTickets } from "../pages/paying.js";
import { createScreen, planShow } from "../pages/schedule.js";
import { press, SMALLEST_TARGET } from "../pages/show.js";
import { signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";

const THEATRE = "marigold-mumbai";
/** The theatre has prices for these categories, silver being the cheapest. */
const THREE_AREAS = {
  sketch: 1,
  name: "Three areas",
  categories: [
    { name: "silver", label: "Silver" },
    { name: "gold", label: "Gold" },
    { name: "platinum", label: "Platinum" },
  ],
  zones: [{ category: "silver", rows: [{ rows: "A", seats: "1-6" }] }],
  areas: [
    { name: "Floor", category: "silver", capacity: 3 },
    { name: "Terrace", category: "platinum", capacity: 20 },
    { name: "Balcony", category: "gold", capacity: 20 },
  ],
};

test("unnumbered places are counted live, become tickets in a friend's name, and can be refunded", async ({ request, anna, ben }) => {
  const show = await claimShowWithArea(request);
  const hers = await anna.visit(show.id);
  await ben.visit(show.id);
  const left = ben.page.getByTestId("places-left");
  const before = Number.parseInt(await left.innerText(), 10);
  const more = anna.page.getByTestId("more-places");
  await press(more);
  await press(more);
  await press(more);
  await press(anna.page.getByTestId("fewer-places"));
  const line = anna.page.getByTestId("cart-places");
  await expect(line).toContainText(`2 × ${show.area}`);
  await expect(line).toHaveAttribute("data-held", "true");
  await expect(left).toHaveText(`${before - 2} places left`);

  const checkout = anna.page.getByTestId("continue");
  if (await checkout.isVisible()) await press(checkout);
  await press(anna.page.getByTestId("for-friend"));
  await anna.page.locator("#friend-name").fill("Luís");
  await anna.page.locator("#friend-email").fill("luis@example.org");
  await hers.checkOut("Anna", "anna@example.org");
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
  await expect(anna.page.getByTestId("booking-state")).toHaveText("Booked for Luís");
  await expect(anna.page.locator(".booking-words")).toContainText("luis@example.org");
  const booking = bookingPath(anna.page);
  const codes = await readTickets(anna.page);
  expect(codes).toHaveLength(2);
  for (const code of codes) expect(code).toMatch(new RegExp(`\\|${show.area}\\|Luís$`));
  await expect(left).toHaveText(`${before - 2} places left`);

  // Without seats to choose the whole booking is cancelled.
  await anna.page.goto(booking);
  await press(anna.page.getByTestId("cancel-open"));
  await expect(anna.page.getByTestId("cancel-sum")).toHaveText(/^You get .+ back\. The fee is .+, 10 %\.$/);
  await expect(anna.page.getByTestId("cancel-confirm")).toHaveText("Cancel all places");
  await press(anna.page.getByTestId("cancel-confirm"));
  await expectBookingState(anna.page, "CANCELLED");
  await expect(anna.page.getByTestId("booking-state")).toHaveAttribute("data-money", "REFUNDED", { timeout: 20_000 });
  await expect(left).toHaveText(`${before} places left`);
});

test("an area is drawn at its place in the room and leads to its card, also by keyboard", async ({ request, anna }) => {
  const show = await claimShowWithArea(request);
  await anna.visit(show.id);
  const [area, card] = [anna.page.locator(".room-area"), anna.page.getByTestId("area")];
  await expect(anna.page.getByTestId("places-left")).not.toBeEmpty();
  const left = await anna.page.getByTestId("places-left").innerText();
  for (const text of [show.area, left, "€"]) await expect(area).toContainText(text);
  expect((await area.boundingBox())!.height).toBeGreaterThanOrEqual(SMALLEST_TARGET);
  await press(area);
  await expect(card).toBeFocused();
  await expect(card).toBeInViewport();
  await area.focus();
  await expect(card).not.toBeFocused();
  await anna.page.keyboard.press("Enter");
  await expect(card).toBeFocused();
  await anna.page.keyboard.press("Tab");
  await expect(anna.page.getByTestId("fewer-places")).toBeFocused();
});

test("a visitor whose area is full is offered as many places in the area with the nearest price", async ({ request, newVisitor, ben }) => {
  const { page } = await newVisitor();
  await signInAsManager(page);
  const show = await planShow(page, THEATRE, await createScreen(page, THEATRE, THREE_AREAS));
  const his = await ben.visit(show);
  const floor = ben.page.getByTestId("area").filter({ hasText: "Floor" });
  // His request is delayed: another visitor takes the floor after both presses.
  await ben.page.route("**/holds", async (route) => {
    await expect(floor.getByTestId("wanted-places")).toHaveText("2");
    const taken = await request.post(`/api/v1/shows/${show}/holds`, {
      headers: { "idempotency-key": randomUUID() },
      data: { area: 0, quantity: 3 },
    });
    expect(taken.status()).toBe(201);
    await route.continue();
  }, { times: 1 });
  await press(floor.getByTestId("more-places"));
  await press(floor.getByTestId("more-places"));
  await expect(his.message).toHaveText("Floor has no places left. Please choose another area.");
  await expect(floor.getByTestId("wanted-places")).toHaveText("0");
  const offer = ben.page.getByTestId("accept-offer");
  await expect(offer).toHaveText(/^Take 2 × Balcony instead, ₹/);

  const sent: string[] = [];
  ben.page.on("request", (call) => {
    if (call.url().includes("/holds")) sent.push(call.method());
  });
  await press(offer);
  const line = ben.page.getByTestId("cart-places");
  await expect(line).toContainText("2 × Balcony");
  await expect(line).toHaveAttribute("data-held", "true");
  await expect(his.message).toBeEmpty();
  await expect(offer).toHaveCount(0);
  expect(sent).toEqual(["POST"]);
});
