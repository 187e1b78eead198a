// Managers' pages of team roles and audit log, without JavaScript.
import { claimShow } from "../pages/catalogue.js";
import { expectAccessible, expectFitsPhone } from "../pages/accessibility.js";
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

  await page.setViewportSize({ width: 390, height: 844 });
  const hidden = () => page.locator(".reports-scroll").evaluate((table) => table.scrollWidth - table.clientWidth);
  await expect.poll(hidden, "a phone shows all of an entry").toBeLessThanOrEqual(0);
  const lines = await page.getByTestId("act").locator("time").evaluateAll((times) => times.map((time) => time.getClientRects().length));
  expect(new Set(lines), "a time is one line").toEqual(new Set([1]));
});

test("on a phone the navigation is one line of large targets with the current section in view", async ({ request, newVisitor }) => {
  const { page } = await newVisitor({ reducedMotion: "reduce" });
  const show = await claimShow(request, []);
  await signInAsManager(page);
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`/staff/${show.theatre}/theatre`);
  await expect(page.getByTestId("staff-theatre")).toHaveAttribute("aria-current", "page");
  await expect(page.getByTestId("staff-theatre")).toBeInViewport({ ratio: 0.9 });
  const boxes = await page.getByRole("navigation").locator("a[data-testid^=staff-]").evaluateAll((links) =>
    links.map((link) => link.getBoundingClientRect()).map(({ top, height }) => ({ top, height })),
  );
  expect(new Set(boxes.map(({ top }) => top)).size).toBe(1);
  expect(Math.min(...boxes.map(({ height }) => height))).toBeGreaterThanOrEqual(44);
  await expectFitsPhone(page, "the last section");
  await page.goto("/staff");
  await expectFitsPhone(page, "the entrance");
});
