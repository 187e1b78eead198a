// Flags of unusual activity: attempts of a program, dismissed by a manager with a reason.
import { randomUUID } from "node:crypto";

import { request as requests } from "@playwright/test";

import { claimShow, type Show } from "../pages/catalogue.js";
import { expectAccessible } from "../pages/accessibility.js";
import { press } from "../pages/show.js";
import { signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";

// Far above the threshold of the flag.
const TRIES = 60;

test("attempts of a program are flagged, and a manager dismisses the flag with a reason", async ({ request, newVisitor }) => {
  const { page } = await newVisitor({ reducedMotion: "reduce", javaScriptEnabled: false });
  const show = await claimShow(request, []);
  await signInAsManager(page);
  await tryAsAProgram(show);
  const address = `/staff/${show.theatre}/unusual`;
  const flag = page.locator(`[data-testid=unusual][data-kind=timing][data-show="${show.id}"]`);
  await expect
    .poll(async () => {
      await page.goto(address);
      return flag.count();
    })
    .toBe(1);
  await expect(page.getByTestId("staff-unusual")).toHaveAttribute("aria-current", "page");

  await press(flag.getByTestId("unusual-dismiss"));
  await flag.locator("input[name=reason]").fill("Our own test.");
  await press(flag.locator("button[type=submit]"));
  await expect(flag.getByTestId("unusual-dismissed")).toContainText("Our own test.");
});

test("the page of unusual activity is accessible", async ({ request, newVisitor }) => {
  const { page } = await newVisitor({ reducedMotion: "reduce" });
  const show = await claimShow(request, []);
  await signInAsManager(page);
  await tryAsAProgram(show);
  const flag = page.locator(`[data-testid=unusual][data-kind=timing][data-show="${show.id}"]`);
  await expect
    .poll(async () => {
      await page.goto(`/staff/${show.theatre}/unusual`);
      return flag.count();
    })
    .toBe(1);
  await expectAccessible(page, "unusual activity");
  await press(flag.getByTestId("unusual-dismiss"));
  await expectAccessible(page, "the dismissal form");
});

/** Sends many concurrent hold requests without a browser. */
async function tryAsAProgram(show: Show): Promise<void> {
  const program = await requests.newContext({ baseURL: process.env.BASE_URL });
  const take = async () => {
    const headers = { "idempotency-key": randomUUID() };
    return program.post(`/api/v1/shows/${show.id}/holds`, { headers, data: { seats: [0] } });
  };
  // The first answer sets the cookie, so that all requests count as one visitor.
  const first = await take();
  expect([201, 409, 423]).toContain(first.status());
  await Promise.all(Array.from({ length: TRIES }, take));
  await program.dispose();
}
