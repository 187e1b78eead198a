// The waiting list of a sold-out show.
import { hideTab, showTab } from "../pages/tab-visibility.js";
import { claimShow } from "../pages/catalogue.js";
import { releaseHold, holdAllExcept } from "../pages/api-visitors.js";
import { messages } from "../pages/languages.js";
import { mailsTo } from "../pages/mailbox.js";
import { expectBookingState, payWith, readTickets } from "../pages/paying.js";
import { press } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";
import { pressTwice } from "../pages/waiting-room.js";

/** The page's polling interval in a background tab (`app/src/show_island/waiting_list.rs`), milliseconds. */
const POLL_HIDDEN_EVERY_MS = 30_000;

interface PlanView {
  categories: { name: string }[];
  sections: { rows: { label: string; first: number; category: number[] }[] }[];
}

test("released seats are offered to the first in line, then to the second", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [], { maxSeats: 100 });
  const visitors = await holdAllExcept(show);
  const hers = await anna.visit(show.id);
  const email = `anna-${show.id}@example.org`;

  // A missing address is reported in the form.
  await press(anna.page.getByTestId("waiting-join"));
  await expect(anna.page.getByTestId("waiting-list").getByRole("alert")).not.toBeEmpty();
  await expect(anna.page.locator("#waiting-email")).toBeFocused();
  await expect(anna.page.locator("#waiting-email")).toHaveAccessibleDescription("Please enter an e-mail address.");
  await anna.page.locator("#waiting-email").fill(email);
  await press(anna.page.getByTestId("waiting-list").getByRole("button", { name: "One more" }));
  await expect(anna.page.getByTestId("waiting-quantity")).toHaveText("2");
  await press(anna.page.getByTestId("waiting-join"));
  await expect(anna.page.getByTestId("waiting-place")).toContainText("You are next in line, waiting for 2 seats together");

  await ben.visit(show.id);
  await ben.page.locator("#waiting-email").fill("ben@example.org");
  await press(ben.page.getByTestId("waiting-join"));
  await expect(ben.page.getByTestId("waiting-place")).toContainText("One person is ahead of you, waiting for one seat");

  const [first] = visitors;
  if (!first) throw new Error("no visitor holds a seat");
  await releaseHold(first, show);
  await expect(anna.page.getByTestId("waiting-offer")).toBeVisible({ timeout: 20_000 });
  await expect(hers.heldSeats()).toHaveCount(2);
  await expect(() => expect(mailsTo(email).length).toBeGreaterThan(0)).toPass({ timeout: 10_000 });
  // Ben wants one seat, and eight more are free.
  await expect(ben.page.getByTestId("waiting-offer")).toBeVisible({ timeout: 20_000 });

  await hers.checkOut("Anna", email);
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
  expect(await readTickets(anna.page)).toHaveLength(2);
});

test("an ended offer is no longer shown", async ({ request, anna }) => {
  const show = await claimShow(request, [], { maxSeats: 100 });
  const [first] = await holdAllExcept(show);
  const hers = await anna.visit(show.id);
  await anna.page.locator("#waiting-email").fill("anna@example.org");
  await press(anna.page.getByTestId("waiting-join"));
  await expect(anna.page.getByTestId("waiting-place")).toBeVisible();
  if (!first) throw new Error("no visitor holds a seat");
  await releaseHold(first, show);
  const offer = anna.page.getByTestId("waiting-offer");
  await expect(offer).toBeVisible({ timeout: 20_000 });
  await expect(hers.heldSeats()).toHaveCount(1);

  // The offer is declined on another device: this page is notified about the hold and reloads the state.
  const path = `/api/v1/shows/${show.id}/waiting-list`;
  const left = await anna.page.request.delete(path, { headers: { "idempotency-key": `${show.id}-left` } });
  expect(left.status()).toBe(204);
  await expect(hers.heldSeats()).toHaveCount(0);
  await expect(offer).toHaveCount(0, { timeout: 20_000 });
});

test("an offer is announced in the title of a background tab, and declining it shows no message", async ({ request, anna }) => {
  const show = await claimShow(request, [], { maxSeats: 100 });
  const [first] = await holdAllExcept(show);
  await anna.page.clock.install();
  const hers = await anna.visit(show.id);
  const list = anna.page.getByTestId("waiting-list");
  const title = await anna.page.title();
  await anna.page.locator("#waiting-email").fill("anna@example.org");
  await anna.page.locator("#waiting-email").press("Enter");
  await expect(anna.page.getByTestId("waiting-place")).toBeVisible();
  // Field and button are gone: the focus moves to the list.
  await expect(list).toBeFocused();

  await hideTab(anna.page);
  if (!first) throw new Error("no visitor holds a seat");
  await releaseHold(first, show);
  const stateOfEntry = async () => {
    const answer = await anna.page.request.get(`/api/v1/shows/${show.id}/waiting-list`);
    return ((await answer.json()) as { state: string }).state;
  };
  await expect.poll(stateOfEntry, { timeout: 20_000 }).toBe("OFFERED");
  await anna.page.clock.fastForward(POLL_HIDDEN_EVERY_MS);
  await expect(anna.page).toHaveTitle(`${messages("en")["wait.your_turn_short"]!} · ${title}`);
  // Good news is not shown as a refusal.
  await expect(anna.page.getByTestId("news")).toHaveText(messages("en")["wait.your_turn"]!);
  await showTab(anna.page);
  await expect(hers.heldSeats()).toHaveCount(1);
  await pressTwice(anna.page.getByTestId("waiting-leave"));
  await expect(hers.cartSeats).toHaveCount(0);
  await expect(anna.page.getByTestId("waiting-offer")).toHaveCount(0);
  await expect(hers.message).toBeEmpty();
  await expect(anna.page.getByTestId("ask-again")).toHaveCount(0);
  await expect(anna.page).toHaveTitle(title);
});

test("a visitor can leave the waiting list", async ({ request, anna }) => {
  const show = await claimShow(request, [], { maxSeats: 100 });
  await holdAllExcept(show);
  await anna.visit(show.id);
  await anna.page.locator("#waiting-email").fill("anna@example.org");
  await press(anna.page.getByTestId("waiting-join"));
  await pressTwice(anna.page.getByTestId("waiting-leave"));
  await expect(anna.page.getByTestId("waiting-place")).toHaveCount(0);
  await anna.page.reload();
  await expect(anna.page.getByTestId("waiting-join")).toBeVisible();
});

test("\"sold out\" is shown while no seat is free", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["B", "3"]], { maxSeats: 100 });
  const b3 = show.seat("B", "3");
  await holdAllExcept(show, [b3]);
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
  // The holder of the last seat sees no waiting list.
  await expect(anna.page.getByTestId("waiting-list")).toHaveCount(0);

  await hers.release(b3);
  await expect(cart).toContainText("Tap a seat");
  await expect(card).toContainText("Tap a seat");
  await expect(page.getByTestId("to-waiting-list")).toHaveCount(0);
  await expect(list).toHaveCount(0);
});

test("a free seat that the list cannot use is taken on the map, and a reserved one offers to join", async ({ request, anna, ben }) => {
  const show = await claimShow(request, [["B", "3"]], { maxSeats: 100 });
  const b3 = show.seat("B", "3");
  await holdAllExcept(show, [b3]);
  // Ben waits for two seats of its category, of which one is free.
  const plan = (await (await request.get(`/api/v1/shows/${show.id}/plan`)).json()) as PlanView;
  const row = plan.sections[0]?.rows.find((other) => other.label === "B");
  const category = plan.categories[row?.category[b3 - row.first] ?? -1]?.name;
  const joined = await ben.page.request.post(`/api/v1/shows/${show.id}/waiting-list`, {
    data: { quantity: 2, email: "ben@example.org", category },
    headers: { "idempotency-key": `${show.id}-join` },
  });
  expect(joined.status()).toBe(201);

  // In the second after a release, every seat of the category is reserved for the list.
  const hers = await anna.visit(show.id);
  const holds = `**/api/v1/shows/${show.id}/holds`;
  const problem = { type: "about:blank", title: "Others are waiting", status: 409, code: "waiting_list_first", detail: "They come first." };
  await anna.page.route(holds, (route) =>
    route.fulfill({ status: 409, contentType: "application/problem+json", body: JSON.stringify(problem) }),
  );
  await hers.pressSeat(b3);
  await expect(anna.page.getByTestId("waiting-list")).toContainText("Others are waiting");
  await expect(anna.page.getByTestId("waiting-join")).toBeVisible();
  await anna.page.unroute(holds);
  await hers.pressSeat(b3);
  await hers.expectSeat(b3, "mine");
});
