// After an unsuccessful payment the former seats are offered again; they are held only when the offer is accepted.
import { claimShow, claimShowWithArea } from "../pages/catalogue.js";
import { expectBookingState, openSeatsAgain, payWith, cancelPayment } from "../pages/paying.js";
import { press, type ShowPage } from "../pages/show.js";
import { expect, test, type Visitor } from "../pages/visitors.js";

/** Holds the seats, checks out, cancels the payment and waits for the booking page. */
async function cancelsPaymentFor(anna: Visitor, hers: ShowPage, show: { id: string }, seats: number[]): Promise<void> {
  for (const seat of seats) await hers.hold(seat);
  await hers.checkOut("Anna", `anna-${show.id}@example.org`);
  await cancelPayment(anna.page);
  await expectBookingState(anna.page, "CANCELLED");
  await expect(anna.page.getByTestId("booking-state")).toHaveText("You cancelled the payment");
}

test("after a cancelled payment one key press holds the same seats again", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"]]);
  const [c6, c7] = [show.seat("C", "6"), show.seat("C", "7")];
  const his = await ben.visit(show.id);
  await cancelsPaymentFor(anna, await anna.visit(show.id), show, [c6, c7]);
  const hers = await openSeatsAgain(anna.page);
  const news = anna.page.getByTestId("news");
  await expect(news).toHaveText("C6 and C7 are still free.");
  // A polite live region; the button's name has the seats.
  await expect(news).toHaveRole("status");
  const offer = anna.page.getByTestId("accept-offer");
  await expect(offer).toHaveAccessibleName(/^Take C6 and C7 again, /);
  await expect(hers.cartSeats).toHaveCount(0);
  await his.expectSeat(c6, "available");
  await his.expectSeat(c7, "available");

  await offer.focus();
  await anna.page.keyboard.press("Enter");
  await expect(hers.heldSeats()).toHaveCount(2);
  expect(await hers.heldSeatNames()).toEqual(["C6", "C7"]);
  await his.expectSeat(c6, "locked");
  await his.expectSeat(c7, "locked");
  await expect(news).toBeEmpty();

  // The offer is made once: a reload does not repeat it.
  await expect(anna.page).toHaveURL(new RegExp(`/shows/${show.id}$`));
  await anna.page.reload();
  await expect(hers.heldSeats()).toHaveCount(2);
  await hers.checkOut("Anna", `anna-${show.id}@example.org`);
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
});

test("when one former seat is taken it is named, and the rest and a nearby seat are offered", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"], ["C", "8"]]);
  const [c6, c7] = [show.seat("C", "6"), show.seat("C", "7")];
  const his = await ben.visit(show.id);
  await cancelsPaymentFor(anna, await anna.visit(show.id), show, [c6, c7]);
  await his.expectSeat(c7, "available");
  await his.hold(c7);
  const hers = await openSeatsAgain(anna.page);
  await expect(anna.page.getByTestId("news")).toHaveText("C6 is still free. C7 is held by someone else.");
  const offer = anna.page.getByTestId("accept-offer");
  await expect(offer).toHaveText(/^Take C6 again, /);
  await press(offer);
  await expect(hers.heldSeats()).toHaveCount(1);
  expect(await hers.heldSeatNames()).toEqual(["C6"]);
  await his.expectSeat(c7, "mine");

  await expect(hers.message).toHaveText("C7 is held by someone else. You still have your other seats.");
  await expect(offer).toHaveText(/^Take .+ instead, /);
  await press(offer);
  await expect(hers.heldSeats()).toHaveCount(2);
  expect(await hers.heldSeatNames()).not.toContain("C7");
});

test("when all former seats are taken they are named, and the nearest seat is offered", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"], ["C", "8"]]);
  const c7 = show.seat("C", "7");
  const his = await ben.visit(show.id);
  await cancelsPaymentFor(anna, await anna.visit(show.id), show, [c7]);
  await his.expectSeat(c7, "available");
  await his.hold(c7);
  const hers = await openSeatsAgain(anna.page);
  await expect(hers.message).toHaveText("C7 is held by someone else. Please pick another seat.");
  await expect(anna.page.getByTestId("watch-seat")).toBeVisible();
  await expect(anna.page.getByTestId("accept-offer")).toHaveText(/^Take C[68] instead, /);
  await expect(hers.cartSeats).toHaveCount(0);
});

test("a dismissed offer is not repeated", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"]]);
  const c7 = show.seat("C", "7");
  const his = await ben.visit(show.id);
  await cancelsPaymentFor(anna, await anna.visit(show.id), show, [c7]);
  const hers = await openSeatsAgain(anna.page);
  await expect(anna.page.getByTestId("accept-offer")).toBeVisible();
  await press(anna.page.getByRole("button", { name: "Close this message" }));
  // Updates of that seat, then of her own hold.
  await his.hold(c7);
  await hers.expectSeat(c7, "locked");
  await expect(anna.page.getByTestId("news")).toBeEmpty();
  await expect(hers.message).toBeEmpty();
  await expect(anna.page.getByTestId("accept-offer")).toHaveCount(0);
  // A later hold does not repeat the offer either.
  await expect(anna.page).toHaveURL(new RegExp(`/shows/${show.id}$`));
  await hers.hold(show.seat("C", "6"));
  await expect(anna.page.getByTestId("news")).toBeEmpty();
  await expect(hers.message).toBeEmpty();
  await expect(anna.page.getByTestId("accept-offer")).toHaveCount(0);
});

test("former unnumbered places are offered again", async ({ request, anna }) => {
  const show = await claimShowWithArea(request);
  const hers = await anna.visit(show.id);
  const more = anna.page.getByTestId("more-places");
  await press(more);
  await press(more);
  await expect(anna.page.getByTestId("cart-places")).toHaveAttribute("data-held", "true");
  await cancelsPaymentFor(anna, hers, show, []);
  await openSeatsAgain(anna.page);
  await expect(anna.page.getByTestId("news")).toHaveText(`2 × ${show.area} are still free.`);
  const offer = anna.page.getByTestId("accept-offer");
  await expect(offer).toHaveText(new RegExp(`^Take 2 × ${show.area} again, `));
  await expect(anna.page.getByTestId("cart-places")).toHaveCount(0);
  await press(offer);
  const line = anna.page.getByTestId("cart-places");
  await expect(line).toContainText(`2 × ${show.area}`);
  await expect(line).toHaveAttribute("data-held", "true");
  await expect(anna.page.getByTestId("news")).toBeEmpty();
});
