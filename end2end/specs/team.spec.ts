// Who works at a theatre, as what, and what was done there: pages of managers, without a script.
import { claimShow } from "../pages/catalogue.js";
import { expectForEveryone } from "../pages/everyone.js";
import { press } from "../pages/show.js";
import { signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";

test("the pages of who works here and of what was done are for everyone", async ({ request, newVisitor }) => {
  const { page } = await newVisitor({ reducedMotion: "reduce" });
  const show = await claimShow(request, []);
  await signInAsManager(page);
  await page.goto(`/staff/${show.theatre}/team`);
  await expect(page.getByTestId("staff-team")).toHaveAttribute("aria-current", "page");
  await expect(page.getByTestId("team-person").first()).toBeVisible();
  await expectForEveryone(page, "who works here");

  await press(page.getByTestId("team-role").first());
  await expectForEveryone(page, "a role that may be taken away");
  await page.locator("#team-email").fill("nobody@example.org");
  await page.locator("#team-reason").fill("Starts on Monday.");
  await press(page.getByTestId("team-give"));
  await expect(page.getByTestId("team-trouble")).toContainText("Nobody has an account with this address.");
  // What was typed is still there.
  await expect(page.locator("#team-email")).toHaveValue("nobody@example.org");
  await expect(page.locator("#team-reason")).toHaveValue("Starts on Monday.");
  await expectForEveryone(page, "somebody without an account");

  await press(page.getByTestId("to-acts"));
  await expect(page.getByTestId("act").first()).toBeVisible();
  await expectForEveryone(page, "what was done");
});
