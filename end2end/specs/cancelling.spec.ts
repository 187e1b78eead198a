// Partial and full cancellation by the buyer, with fee, refund and history.
import { claimShow } from "../pages/catalogue.js";
import { expectBookingState, bookingPath, payWith, primaryButtons, readTickets } from "../pages/paying.js";
import { press } from "../pages/show.js";
import { hideTab, showTab } from "../pages/tab-visibility.js";
import { expect, test } from "../pages/visitors.js";

const TIME = /\d{1,2}:\d{2}/;

test("a seat, then the booking is cancelled: fee and refund are shown before, the history after", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"]]);
  const [c6, c7] = [show.seat("C", "6"), show.seat("C", "7")];
  const hers = await anna.visit(show.id);
  const his = await ben.visit(show.id);
  await hers.hold(c6);
  await hers.hold(c7);
  await hers.checkOut("Anna", "anna@example.org");
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
  const booking = bookingPath(anna.page);
  const sum = anna.page.getByTestId("cancel-sum");
  const story = anna.page.getByTestId("booking-story");

  // The page leads with the show; the history comes last.
  const tops = await Promise.all(
    [".show-block-film", ".booking-seats", "[data-testid=booking-story]"].map((part) => anna.page.locator(part).evaluate((box) => box.getBoundingClientRect().top)),
  );
  expect(tops).toEqual([...tops].sort((one, other) => one - other));

  // The confirmation can be dismissed.
  await expect(primaryButtons(anna.page)).toHaveAttribute("data-testid", "ticket-link");
  await press(anna.page.getByTestId("cancel-open"));
  await expect(primaryButtons(anna.page)).toHaveAttribute("data-testid", "cancel-confirm");
  await expect(sum).toHaveText(/^You get .+ back\. The fee is .+, 10 %\.$/);
  const wholeSum = await sum.innerText();
  await press(anna.page.getByRole("button", { name: "Keep my seats" }));
  await expect(sum).toBeHidden();
  await expect(primaryButtons(anna.page)).toHaveAttribute("data-testid", "ticket-link");

  await press(anna.page.getByTestId("cancel-open"));
  await press(anna.page.getByRole("checkbox", { name: /C6/ }));
  await expect(sum).not.toHaveText(wholeSum);
  await expect(anna.page.getByTestId("cancel-confirm")).toHaveText("Cancel 1 seat");
  await press(anna.page.getByTestId("cancel-confirm"));
  await expect(anna.page.locator(".booking-seats li")).toHaveCount(1);
  await expect(anna.page.locator(".booking-seats")).toContainText("C6");
  await expectBookingState(anna.page, "CONFIRMED");
  await expect(story.locator("li").last()).toContainText(TIME);
  await expect(anna.page.getByTestId("booking-fee")).toHaveText(/^C7: .+ back, .+ kept as a fee\.$/);
  await his.expectSeat(c7, "available");
  await his.expectSeat(c6, "booked");
  // The other ticket stays valid.
  const [code, ...others] = await readTickets(anna.page);
  expect(code).toMatch(/\|C6\|/);
  expect(others).toEqual([]);

  await anna.page.goto(booking);
  await press(anna.page.getByTestId("cancel-open"));
  await expect(anna.page.getByTestId("cancel-confirm")).toHaveText("Cancel the seat");
  await press(anna.page.getByTestId("cancel-confirm"));
  await expectBookingState(anna.page, "CANCELLED");
  await expect(anna.page.getByTestId("booking-state")).toHaveAttribute("data-money", "REFUNDED", { timeout: 20_000 });
  await expect(anna.page.getByTestId("booking-money")).toHaveText(/refunded, .+ kept as a fee\.$/);
  await expect(anna.page.getByTestId("cancel-open")).toHaveCount(0);
  await his.expectSeat(c6, "available");
  for (const line of await story.locator("li").all()) await expect(line.locator("time")).toHaveText(TIME);
  const answer = await anna.page.goto(`${booking}/ticket`);
  expect(new URL(answer?.url() ?? "").pathname).toBe(booking);
});

test("a tab that is shown again has the booking as another tab has changed it", async ({ request, anna }) => {
  const show = await claimShow(request);
  const hers = await anna.visit(show.id);
  await hers.hold(show.seat("C", "7"));
  await hers.checkOut("Anna", "anna@example.org");
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
  await hideTab(anna.page);
  const other = await anna.newTab();
  await other.page.goto(bookingPath(anna.page));
  await press(other.page.getByTestId("cancel-open"));
  await press(other.page.getByTestId("cancel-confirm"));
  await expectBookingState(other.page, "CANCELLED");
  await showTab(anna.page);
  await expectBookingState(anna.page, "CANCELLED");
});
