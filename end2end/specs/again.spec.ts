// The payment did not come off: the seats one had are one tap away, and nobody holds them before that tap.
import { claimShow, claimShowWithArea } from "../pages/catalogue.js";
import { bookingBecomes, lookForThemAgain, payWith, stopPaying } from "../pages/paying.js";
import { press, type ShowPage } from "../pages/show.js";
import { expect, test, type Visitor } from "../pages/visitors.js";

/** She stops paying for these seats; she is back on the page of the booking. */
async function stops(anna: Visitor, hers: ShowPage, show: { id: string }, seats: number[]): Promise<void> {
  for (const seat of seats) await hers.hold(seat);
  await hers.checkOut("Anna", `anna-${show.id}@example.org`);
  await stopPaying(anna.page);
  await bookingBecomes(anna.page, "CANCELLED");
  await expect(anna.page.getByTestId("booking-state")).toHaveText("You stopped the payment");
}

test("after a payment that was stopped one key holds the same seats, and not before", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"]]);
  const [c6, c7] = [show.seat("C", "6"), show.seat("C", "7")];
  const his = await ben.visit(show.id);
  await stops(anna, await anna.visit(show.id), show, [c6, c7]);
  const hers = await lookForThemAgain(anna.page);
  const news = anna.page.getByTestId("news");
  await expect(news).toHaveText("C6 and C7 are still free.");
  // Said when a screen reader is free to; what to press has the seats in its name.
  await expect(news).toHaveRole("status");
  const offer = anna.page.getByTestId("accept-offer");
  await expect(offer).toHaveAccessibleName(/^Take C6 and C7 again, /);
  await expect(hers.cartSeats).toHaveCount(0);
  await his.sees(c6, "available");
  await his.sees(c7, "available");

  await offer.focus();
  await anna.page.keyboard.press("Enter");
  await expect(hers.held()).toHaveCount(2);
  expect(await hers.heldNames()).toEqual(["C6", "C7"]);
  await his.sees(c6, "locked");
  await his.sees(c7, "locked");
  await expect(news).toBeEmpty();

  // That was asked once: whoever reads the page again, or comes back to it, is not asked once more.
  await expect(anna.page).toHaveURL(new RegExp(`/shows/${show.id}$`));
  await anna.page.reload();
  await expect(hers.held()).toHaveCount(2);
  await hers.checkOut("Anna", `anna-${show.id}@example.org`);
  await payWith(anna.page, "paid");
  await bookingBecomes(anna.page, "CONFIRMED");
});

test("one of the seats is another's by now: it is named, the rest is one tap away, and then one near it", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"], ["C", "8"]]);
  const [c6, c7] = [show.seat("C", "6"), show.seat("C", "7")];
  const his = await ben.visit(show.id);
  await stops(anna, await anna.visit(show.id), show, [c6, c7]);
  await his.sees(c7, "available");
  await his.hold(c7);
  const hers = await lookForThemAgain(anna.page);
  await expect(anna.page.getByTestId("news")).toHaveText("C6 is still free. C7 is held by someone else.");
  const offer = anna.page.getByTestId("accept-offer");
  await expect(offer).toHaveText(/^Take C6 again, /);
  await press(offer);
  await expect(hers.held()).toHaveCount(1);
  expect(await hers.heldNames()).toEqual(["C6"]);
  await his.sees(c7, "mine");

  await expect(hers.message).toHaveText("C7 is held by someone else. Your other seats are safe.");
  await expect(offer).toHaveText(/^Take .+ instead, /);
  await press(offer);
  await expect(hers.held()).toHaveCount(2);
  expect(await hers.heldNames()).not.toContain("C7");
});

test("all of the seats are another's by now: they are named, and the nearest is offered", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"], ["C", "8"]]);
  const c7 = show.seat("C", "7");
  const his = await ben.visit(show.id);
  await stops(anna, await anna.visit(show.id), show, [c7]);
  await his.sees(c7, "available");
  await his.hold(c7);
  const hers = await lookForThemAgain(anna.page);
  await expect(hers.message).toHaveText("C7 is held by someone else. Please pick another seat.");
  await expect(anna.page.getByTestId("watch-seat")).toBeVisible();
  await expect(anna.page.getByTestId("accept-offer")).toHaveText(/^Take C[68] instead, /);
  await expect(hers.cartSeats).toHaveCount(0);
});

test("an offer that is set aside stays aside", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"]]);
  const c7 = show.seat("C", "7");
  const his = await ben.visit(show.id);
  await stops(anna, await anna.visit(show.id), show, [c7]);
  const hers = await lookForThemAgain(anna.page);
  await expect(anna.page.getByTestId("accept-offer")).toBeVisible();
  await press(anna.page.getByRole("button", { name: "Close this message" }));
  // News of that very seat, and of her own choice.
  await his.hold(c7);
  await hers.sees(c7, "locked");
  await expect(anna.page.getByTestId("news")).toBeEmpty();
  await expect(hers.message).toBeEmpty();
  await expect(anna.page.getByTestId("accept-offer")).toHaveCount(0);
  // Nor is it asked once more by a page that is read again.
  await expect(anna.page).toHaveURL(new RegExp(`/shows/${show.id}$`));
  await hers.hold(show.seat("C", "6"));
  await expect(anna.page.getByTestId("news")).toBeEmpty();
  await expect(hers.message).toBeEmpty();
  await expect(anna.page.getByTestId("accept-offer")).toHaveCount(0);
});

test("places without numbers are offered again as well, as many as there are", async ({ request, anna }) => {
  const show = await claimShowWithArea(request);
  const hers = await anna.visit(show.id);
  const more = anna.page.getByTestId("more-places");
  await press(more);
  await press(more);
  await expect(anna.page.getByTestId("cart-places")).toHaveAttribute("data-held", "true");
  await stops(anna, hers, show, []);
  await lookForThemAgain(anna.page);
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
