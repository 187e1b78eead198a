// A show is full: one waits in line, and gets what somebody lets go.
import { lookAway, lookBack } from "../pages/another-tab.js";
import { claimShow } from "../pages/catalogue.js";
import { letGo, takeTheRest } from "../pages/crowd.js";
import { messages } from "../pages/languages.js";
import { mailsTo } from "../pages/mailbox.js";
import { bookingBecomes, payWith, readTickets } from "../pages/paying.js";
import { press } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

test("the first in line gets what comes back, the second keeps their place", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [], { mostSeats: 100 });
  const strangers = await takeTheRest(show);
  const hers = await anna.visit(show.id);
  const email = `anna-${show.id}@example.org`;

  // An address that is none is said so, in place.
  await press(anna.page.getByTestId("waiting-join"));
  await expect(anna.page.getByTestId("waiting-list").getByRole("alert")).not.toBeEmpty();
  await anna.page.locator("#waiting-email").fill(email);
  await press(anna.page.getByTestId("waiting-list").getByRole("button", { name: "One more" }));
  await expect(anna.page.getByTestId("waiting-quantity")).toHaveText("2");
  await press(anna.page.getByTestId("waiting-join"));
  await expect(anna.page.getByTestId("waiting-place")).toContainText("You are next in line, waiting for 2 seats together");

  await ben.visit(show.id);
  await ben.page.locator("#waiting-email").fill("ben@example.org");
  await press(ben.page.getByTestId("waiting-join"));
  await expect(ben.page.getByTestId("waiting-place")).toContainText("One person is before you, waiting for one seat");

  const [first] = strangers;
  if (!first) throw new Error("nobody holds anything");
  await letGo(first, show);
  await expect(anna.page.getByTestId("waiting-offer")).toBeVisible({ timeout: 20_000 });
  await expect(hers.held()).toHaveCount(2);
  await expect(() => expect(mailsTo(email).length).toBeGreaterThan(0)).toPass({ timeout: 10_000 });
  // Ben wants one, and there are eight more.
  await expect(ben.page.getByTestId("waiting-offer")).toBeVisible({ timeout: 20_000 });

  await hers.checkOut("Anna", email);
  await payWith(anna.page, "paid");
  await bookingBecomes(anna.page, "CONFIRMED");
  expect(await readTickets(anna.page)).toHaveLength(2);
});

test("an offer that is over is not called one's turn any longer", async ({ request, anna }) => {
  const show = await claimShow(request, [], { mostSeats: 100 });
  const [first] = await takeTheRest(show);
  const hers = await anna.visit(show.id);
  await anna.page.locator("#waiting-email").fill("anna@example.org");
  await press(anna.page.getByTestId("waiting-join"));
  await expect(anna.page.getByTestId("waiting-place")).toBeVisible();
  if (!first) throw new Error("nobody holds anything");
  await letGo(first, show);
  const offer = anna.page.getByTestId("waiting-offer");
  await expect(offer).toBeVisible({ timeout: 20_000 });
  await expect(hers.held()).toHaveCount(1);

  // She lets it go on another device of hers: this page hears of the hold, and asks what that means.
  const path = `/api/v1/shows/${show.id}/waiting-list`;
  const left = await anna.page.request.delete(path, { headers: { "idempotency-key": `${show.id}-left` } });
  expect(left.status()).toBe(204);
  await expect(hers.held()).toHaveCount(0);
  await expect(offer).toHaveCount(0, { timeout: 20_000 });
});

test("who looks at another tab is told in the title, and nothing is to be explained to who lets the offer go", async ({ request, anna }) => {
  test.setTimeout(120_000);
  const show = await claimShow(request, [], { mostSeats: 100 });
  const [first] = await takeTheRest(show);
  const hers = await anna.visit(show.id);
  const list = anna.page.getByTestId("waiting-list");
  const title = await anna.page.title();
  await anna.page.locator("#waiting-email").fill("anna@example.org");
  await anna.page.locator("#waiting-email").press("Enter");
  await expect(anna.page.getByTestId("waiting-place")).toBeVisible();
  // The field and the button are gone: the keyboard goes on where they were.
  await expect(list).toBeFocused();

  await lookAway(anna.page);
  if (!first) throw new Error("nobody holds anything");
  await letGo(first, show);
  await expect(anna.page).toHaveTitle(`${messages("en")["wait.your_turn_short"]!} · ${title}`, { timeout: 60_000 });
  await lookBack(anna.page);
  await expect(hers.held()).toHaveCount(1);
  await press(anna.page.getByTestId("waiting-leave"));
  await expect(hers.cartSeats).toHaveCount(0);
  await expect(anna.page.getByTestId("waiting-offer")).toHaveCount(0);
  await expect(hers.message).toBeEmpty();
  await expect(anna.page.getByTestId("ask-again")).toHaveCount(0);
  await expect(anna.page).toHaveTitle(title);
});

test("who does not want to wait any longer leaves the line", async ({ request, anna }) => {
  const show = await claimShow(request, [], { mostSeats: 100 });
  await takeTheRest(show);
  await anna.visit(show.id);
  await anna.page.locator("#waiting-email").fill("anna@example.org");
  await press(anna.page.getByTestId("waiting-join"));
  await press(anna.page.getByTestId("waiting-leave"));
  await expect(anna.page.getByTestId("waiting-place")).toHaveCount(0);
  await anna.page.reload();
  await expect(anna.page.getByTestId("waiting-join")).toBeVisible();
});

test("that a show is sold out is said when its last seat goes, and not any more when one comes back", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["B", "3"]], { mostSeats: 100 });
  const b3 = show.seat("B", "3");
  await takeTheRest(show, [b3]);
  const hers = await anna.visit(show.id);
  await ben.visit(show.id);
  const page = ben.page;
  const [cart, card, list] = [page.getByTestId("cart-empty"), page.getByTestId("seat-card"), page.getByTestId("waiting-list")];
  await expect(cart).toContainText("Tap a seat");
  await expect(card).toContainText("Tap a seat");
  await expect(list).toHaveCount(0);

  await hers.hold(b3);
  await expect(cart).toContainText("Sold out for now");
  await expect(card).toContainText("Sold out for now");
  await expect(page.getByTestId("other-times")).toHaveAttribute("href", /^\/films\//);
  await press(page.getByTestId("to-waiting-list"));
  await expect(list).toBeFocused();
  // Whose seat the last one is need not wait for any.
  await expect(anna.page.getByTestId("waiting-list")).toHaveCount(0);

  await hers.letGo(b3);
  await expect(cart).toContainText("Tap a seat");
  await expect(card).toContainText("Tap a seat");
  await expect(page.getByTestId("to-waiting-list")).toHaveCount(0);
  await expect(list).toHaveCount(0);
});
