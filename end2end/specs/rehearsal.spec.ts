// A rehearsal of an on-sale: simulated visitors sell it out, and the page gives a verdict.
import type { Page } from "@playwright/test";

import { expectAccessible } from "../pages/accessibility.js";
import { claimShow } from "../pages/catalogue.js";
import { press } from "../pages/show.js";
import { signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";

// One rehearsal runs at a time.
test.describe.configure({ mode: "default" });

/** Starts a rehearsal with 200 visitors who arrive within these minutes. */
async function rehearse(page: Page, minutes: string): Promise<void> {
  await page.locator("#people").fill("200");
  await page.locator("#minutes").fill(minutes);
  await page.locator("#rehearsal-reason").fill("On sale on Friday.");
  await press(page.getByTestId("rehearse"));
}

test("an organiser stops a rehearsal with the button that keeps the focus while the figures change", async ({ request, newVisitor }) => {
  const { page } = await newVisitor({ reducedMotion: "reduce" });
  const show = await claimShow(request, [["C", "7"]], { maxSeats: 100 });
  await signInAsManager(page);
  await page.goto(`/staff/${show.theatre}/shows/${show.id}/rehearsal`);
  await rehearse(page, "1");
  const stop = page.getByTestId("rehearsal-stop");
  await expect(page.getByTestId("rehearsal-refresh")).toBeHidden();
  await stop.focus();
  // Another element, or another page, has no mark.
  await stop.evaluate((button) => button.setAttribute("data-marked", "true"));
  const arrived = page.getByTestId("rehearsal-arrived");
  for (let updates = 0; updates < 2; updates += 1) {
    const before = await arrived.innerText();
    await expect(arrived).not.toHaveText(before);
  }
  await expect(stop).toHaveAttribute("data-marked", "true");
  await expect(stop).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.locator('[data-testid="rehearsal-state"][data-state="stopped"]')).toBeVisible();
});

test("an organiser rehearses an on-sale until it is sold out, and deletes its figures", async ({ request, newVisitor, anna }) => {
  const { page } = await newVisitor({ reducedMotion: "reduce" });
  // A room with a wheelchair space and its companion seat, which no visitor is offered unasked.
  const show = await claimShow(request, [["C", "7"]], { maxSeats: 100, theatre: "lanterna-lisbon" });
  await signInAsManager(page);
  await page.goto(`/staff/${show.theatre}/shows/${show.id}`);
  await press(page.getByTestId("to-rehearsal"));
  await expectAccessible(page, "the form of a rehearsal");
  await rehearse(page, "0");

  // The page polls while the rehearsal runs.
  await expect(page.locator('[data-testid="rehearsal-state"][data-state="sold_out"]')).toBeVisible({ timeout: 60_000 });
  await expect(page.getByTestId("rehearsal-arrived")).toHaveText("200 of 200");
  await expect(page.getByTestId("rehearsal-advice")).toContainText("another show");
  await expectAccessible(page, "the verdict of a rehearsal");

  // The show itself has all of its seats.
  const seats = await anna.visit(show.id);
  await seats.hold(show.seat("C", "7"));

  await press(page.getByTestId("rehearsal-delete"));
  await expect(page.getByTestId("rehearsal-state")).toHaveCount(0);
});
