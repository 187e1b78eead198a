// Twelve states compared with reference screenshots, each in the dark scheme on one device and in the light scheme on
// the other.
import type { BrowserContextOptions } from "@playwright/test";

import { claimShow, SCREENSHOT_SHOW, showWithArea } from "../pages/catalogue.js";
import { holdAllExcept } from "../pages/api-visitors.js";
import { expectBookingState, bookingPath, payWith } from "../pages/paying.js";
import { expectPicture } from "../pages/pictures.js";
import { press } from "../pages/show.js";
import { expect, test, type Visitor } from "../pages/visitors.js";

/** Returns the colour scheme of a screenshot; the other device has the other one. */
function scheme(number: number): "dark" | "light" {
  return (number % 2 === 0) === (test.info().project.name === "phone") ? "dark" : "light";
}

function look(number: number): BrowserContextOptions {
  // The pages' content security policy would block the style sheet that hides volatile elements; other tests keep it.
  return { bypassCSP: true, colorScheme: scheme(number), reducedMotion: "reduce", deviceScaleFactor: 1 };
}

test("screenshots of front page, film and not-found page", async ({ newVisitor }) => {
  const { page } = await newVisitor(look(1));
  await page.goto("/");
  await expectPicture(page, "01-front-page", page.locator(".hero"));
  await page.emulateMedia({ colorScheme: scheme(2) });
  await page.goto("/films/night-ferry");
  await expectPicture(page, "02-film", page.locator(".film-page"));
  await page.emulateMedia({ colorScheme: scheme(3) });
  await page.goto("/no-such-page");
  await expectPicture(page, "03-nothing-here");
});

test("screenshot of unnumbered places", async ({ request, newVisitor }) => {
  const anna = await newVisitor(look(9));
  await anna.visit(await showWithArea(request, "orchestra-of-rain"));
  await expect(anna.page.getByTestId("places-left").first()).not.toBeEmpty();
  await expectPicture(anna.page, "09-places-without-numbers");
});

// One show for all states: few shows look the same every week.
test("screenshots of a show from free seats to refund and waiting list", async ({ request, newVisitor }) => {
  test.setTimeout(180_000);
  const show = await claimShow(request, [["C", "6"], ["C", "7"]], SCREENSHOT_SHOW);
  const [c6, c7] = [show.seat("C", "6"), show.seat("C", "7")];
  const anna = await newVisitor(look(4));
  const hers = await anna.visit(show.id);
  await expectPicture(anna.page, "04-free-seats");
  await hers.hold(c6);
  await hers.hold(c7);
  await expectPicture(anna.page, "05-held-seats");
  await anna.page.emulateMedia({ colorScheme: scheme(6) });
  await hers.openCart();
  await press(anna.page.getByTestId("pay"));
  await expect(anna.page.locator("#buyer-email-error")).not.toBeEmpty();
  await expectPicture(anna.page, "06-form-with-mistakes");
  await buyAndGiveBack(anna);

  // A new page, because texts of the previous one were replaced.
  const eva = await newVisitor(look(7));
  const evas = await eva.visit(show.id);
  const ben = await newVisitor(look(7));
  const his = await ben.visit(show.id);
  await his.expectSeat(c7, "available");
  await ben.page.route("**/holds", async (route) => {
    await evas.hold(c7);
    await route.continue();
  }, { times: 1 });
  await his.pressSeat(c7);
  await expect(ben.page.getByTestId("accept-offer")).toBeVisible();
  await expectPicture(ben.page, "07-another-was-faster");
  await holdAllExcept(show);
  const last = await newVisitor(look(8));
  await last.visit(show.id);
  await expect(last.page.getByTestId("waiting-list")).toBeVisible();
  await expectPicture(last.page, "08-waiting-list");
});

async function buyAndGiveBack(anna: Visitor): Promise<void> {
  await anna.page.locator('input[name="name"]').fill("Anna");
  await anna.page.locator('input[name="email"]').fill("anna@example.org");
  await press(anna.page.getByTestId("pay"));
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
  await expect(anna.page.getByTestId("ticket-link")).toBeVisible();
  await anna.page.emulateMedia({ colorScheme: scheme(10) });
  await expectPicture(anna.page, "10-booking");
  const booking = bookingPath(anna.page);
  await anna.page.goto(`${booking}/ticket`);
  await expect(anna.page.getByTestId("kept")).not.toBeEmpty();
  await anna.page.emulateMedia({ colorScheme: scheme(11) });
  await expectPicture(anna.page, "11-tickets");
  await anna.page.goto(booking);
  await anna.page.emulateMedia({ colorScheme: scheme(12) });
  await press(anna.page.getByTestId("cancel-open"));
  await press(anna.page.getByTestId("cancel-confirm"));
  await expectBookingState(anna.page, "CANCELLED");
  await expect(anna.page.getByTestId("booking-state")).toHaveAttribute("data-money", "REFUNDED", { timeout: 20_000 });
  await expectPicture(anna.page, "12-money-back");
}
