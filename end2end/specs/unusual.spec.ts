// What managers are shown as unusual: a program that tries for a seat as no person does, put aside with a reason.
import { randomUUID } from "node:crypto";

import { request as requests } from "@playwright/test";

import { claimShow, type Show } from "../pages/catalogue.js";
import { expectForEveryone } from "../pages/everyone.js";
import { press } from "../pages/show.js";
import { signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";

// Far more tries at once than it takes to be sure.
const TRIES = 60;

test("tries no person makes are shown to managers, who put them aside with a reason", async ({ request, newVisitor }) => {
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

test("the page of what is unusual is for everyone", async ({ request, newVisitor }) => {
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
  await expectForEveryone(page, "what is unusual");
  await press(flag.getByTestId("unusual-dismiss"));
  await expectForEveryone(page, "a reason to put it aside");
});

/** Somebody without a browser asks for a seat so many times at once. */
async function tryAsAProgram(show: Show): Promise<void> {
  const program = await requests.newContext({ baseURL: process.env.BASE_URL });
  const take = async () => {
    const headers = { "idempotency-key": randomUUID() };
    return program.post(`/api/v1/shows/${show.id}/holds`, { headers, data: { seats: [0] } });
  };
  // The first answer brings the cookie that makes all of them one visitor's.
  const first = await take();
  expect([201, 409, 423]).toContain(first.status());
  await Promise.all(Array.from({ length: TRIES }, take));
  await program.dispose();
}
