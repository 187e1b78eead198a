// Managers' pages of team roles and audit log, without JavaScript.
import { claimShow } from "../pages/catalogue.js";
import { expectAccessible } from "../pages/accessibility.js";
import { press } from "../pages/show.js";
import { signInAsManager } from "../pages/staff.js";
import { expect, test } from "../pages/visitors.js";

test("the pages of team and audit log are accessible", async ({ request, newVisitor }) => {
  const { page } = await newVisitor({ reducedMotion: "reduce" });
  const show = await claimShow(request, []);
  await signInAsManager(page);
  await page.goto(`/staff/${show.theatre}/team`);
  await expect(page.getByTestId("staff-team")).toHaveAttribute("aria-current", "page");
  await expect(page.getByTestId("team-person").first()).toBeVisible();
  await expectAccessible(page, "the team");

  await press(page.getByTestId("team-role").first());
  await expectAccessible(page, "a role that may be taken away");
  await page.locator("#team-email").fill("unknown@example.org");
  await page.locator("#team-reason").fill("Starts on Monday.");
  await press(page.getByTestId("team-give"));
  await expect(page.getByTestId("team-trouble")).toContainText("No account has this address.");
  // Typed values are kept.
  await expect(page.locator("#team-email")).toHaveValue("unknown@example.org");
  await expect(page.locator("#team-reason")).toHaveValue("Starts on Monday.");
  await expectAccessible(page, "an address without an account");

  await press(page.getByTestId("to-acts"));
  await expect(page.getByTestId("act").first()).toBeVisible();
  await expectAccessible(page, "the audit log");
});
