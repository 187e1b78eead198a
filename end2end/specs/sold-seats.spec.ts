// The buyer checks in the browser that each seat was sold once.
import { createHash } from "node:crypto";

import type { APIRequestContext, Locator } from "@playwright/test";

import { claimShow } from "../pages/catalogue.js";
import { bookingPath, expectBookingState, payWith } from "../pages/paying.js";
import { press } from "../pages/show.js";
import { expect, test, type Visitor } from "../pages/visitors.js";

const LISTS = "**/api/v1/shows/*/sold-seats";
/** Time in which the page has read the list a second time, milliseconds: it waits three seconds before. */
const SECOND_READING_MS = 15_000;

interface Check {
  button: Locator;
  result: Locator;
  seats: Locator;
  /** The line of a seat in the public list, as docs/api.md describes it. */
  line(label: string): string;
  /** The public list. */
  list(): Promise<string>;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

/** Anna buys C6 and C7, the only seats sold of their show. */
async function buy(request: APIRequestContext, anna: Visitor): Promise<Check> {
  const show = await claimShow(request, [["C", "6"], ["C", "7"]]);
  const hers = await anna.visit(show.id);
  await hers.hold(show.seat("C", "6"));
  await hers.hold(show.seat("C", "7"));
  await hers.checkOut("Anna", "anna@example.org");
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
  const booking = bookingPath(anna.page).split("/").at(-1) ?? "";
  const result = anna.page.getByTestId("sold-once-result");
  return {
    button: anna.page.getByTestId("sold-once-check"),
    result,
    seats: result.getByRole("listitem"),
    line: (label) => `${label}\t${digest(`rowlock sold seat\n${show.id}\n${label}\n${booking}`)}\n`,
    list: async () => (await request.get(`/api/v1/shows/${show.id}/sold-seats`)).text(),
  };
}

test("after a purchase each seat is listed once, for this booking", async ({ request, anna }) => {
  const { button, result, seats, line, list } = await buy(request, anna);
  await expect(button).toHaveText("Check my seats");
  await expect(result).toBeEmpty();
  await press(button);
  await expect(result).toContainText("Each of your seats was sold once, to you.", { timeout: SECOND_READING_MS });
  await expect(seats).toHaveText(["C6 listed once, for this booking", "C7 listed once, for this booking"]);
  await expect(button).toHaveText("Check again");
  // The page says what anyone finds in the list.
  for (const label of ["C6", "C7"]) expect(await list()).toContain(line(label));
  const shown = (await anna.page.getByTestId("sold-once-digest").innerText()).replaceAll(" ", "");
  expect(shown).toBe(digest(await list()));
  const link = await anna.page.getByTestId("sold-once-list").getAttribute("href");
  expect(await (await request.get(link ?? "")).text()).toContain(line("C7"));
});

test("a list that does not match the booking is reported", async ({ request, anna }) => {
  const { button, result, seats, line } = await buy(request, anna);
  const [c6, c7] = [line("C6"), line("C7")];
  const other = `C7\t${digest("another booking")}\n`;
  for (const { list, sentence, seat } of [
    { list: c6 + other, sentence: "The list does not match this booking.", seat: "C7 listed for another booking" },
    { list: c6 + c7 + other, sentence: "The list does not match this booking.", seat: "C7 listed more than once" },
    { list: c6, sentence: "Please check again in a moment.", seat: "C7 not listed yet" },
  ]) {
    await anna.page.route(LISTS, (route) => route.fulfill({ contentType: "text/plain; charset=utf-8", body: list }));
    await press(button);
    await expect(result).toContainText(sentence, { timeout: SECOND_READING_MS });
    await expect(result).toContainText("contact the cinema");
    await expect(seats).toHaveText(["C6 listed once, for this booking", seat]);
    await anna.page.unroute(LISTS);
  }
});

test("a list that cannot be read is reported, and the check can be repeated", async ({ request, anna }) => {
  const { button, result, seats } = await buy(request, anna);
  anna.allowNetworkErrors();
  await anna.page.route(LISTS, (route) => route.abort());
  await press(button);
  await expect(result).toHaveText("We could not load the list. Please check your connection, then try again.");
  await anna.page.unroute(LISTS);
  // A network that asks for a sign-in answers everything with its own page.
  await anna.page.route(LISTS, (route) => route.fulfill({ contentType: "text/html", body: "<html>Sign in</html>" }));
  const answered = anna.page.waitForResponse(LISTS);
  await press(button);
  await answered;
  await expect(button).toHaveAttribute("aria-disabled", "false");
  await expect(result).toContainText("We could not load the list.");
  await expect(seats).toHaveCount(0);
  await anna.page.unroute(LISTS);
  await press(button);
  await expect(seats).toHaveCount(2, { timeout: SECOND_READING_MS });
  await expect(result).toContainText("Each of your seats was sold once, to you.");
});
