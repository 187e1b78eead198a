// E-mail codes before checkout: the field appears in the form, and a wrong code loses nothing.
import { claimShow } from "../pages/catalogue.js";
import { waitForCode, mailedCodes } from "../pages/email-codes.js";
import { changeTerms } from "../pages/terms.js";
import { expectAccessible } from "../pages/accessibility.js";
import { expectBookingState, payWith } from "../pages/paying.js";
import { press } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

const CALM = { reducedMotion: "reduce" } as const;

test("a guest enters the code from the mail and pays", async ({ request, newVisitor }) => {
  test.setTimeout(90_000);
  const show = await claimShow(request);
  await changeTerms(request, show.id, { email_code: true });
  const anna = await newVisitor(CALM);
  const email = `anna-${show.id}@example.org`;
  const page = await anna.visit(show.id);
  const c7 = show.seat("C", "7");
  await page.hold(c7);
  await page.fillDetails("Anna", email);
  const field = anna.page.getByLabel("Code from our e-mail");
  await expect(field).toHaveCount(0);

  // By keyboard: Enter requests the code and focuses the field, Enter submits.
  await anna.page.locator('input[name="email"]').press("Enter");
  await expect(field).toBeFocused();
  await expect(field).toHaveAttribute("aria-describedby", /pay-code-hint/);
  await expect(anna.page.locator("#pay-code-hint")).toContainText(email);
  const code = await waitForCode(email);
  await expectAccessible(anna.page, "a code before checkout");

  const wrong = String((Number(code) + 1) % 1_000_000).padStart(6, "0");
  await field.press("Enter");
  await expect(anna.page.getByTestId("code-error")).toHaveText("Please type the six digits of the code.");
  await field.pressSequentially(wrong);
  await field.press("Enter");
  await expect(anna.page.getByTestId("code-error")).not.toBeEmpty();
  await expect(field).toHaveAttribute("aria-invalid", "true");
  await expect(field).toBeFocused();
  await page.expectSeat(c7, "mine");

  // A reload does not send a second code.
  await anna.page.reload();
  await page.expectSeat(c7, "mine");
  await page.openCart();
  await expect(anna.page.locator('input[name="email"]')).toHaveValue(email);
  await expect(field).toBeVisible();
  await anna.page.locator('input[name="name"]').fill("Anna");
  await field.fill(`${code.slice(0, 3)} ${code.slice(3)}`);
  await press(anna.page.getByTestId("pay"));
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
  expect(mailedCodes(email)).toHaveLength(1);
});

test("a new code can be requested, and another address needs its own code", async ({ request, anna }) => {
  const show = await claimShow(request);
  await changeTerms(request, show.id, { email_code: true });
  const [email, other] = [`anna-${show.id}@example.org`, `other-${show.id}@example.org`];
  const page = await anna.visit(show.id);
  await page.hold(show.seat("C", "7"));
  await page.fillDetails("Anna", email);
  await press(anna.page.getByTestId("pay"));
  const field = anna.page.getByLabel("Code from our e-mail");
  await expect(field).toBeVisible();
  const first = await waitForCode(email);
  const refusal = { type: "/docs/problems#too_many_attempts", title: "Too many attempts", status: 429, detail: "", code: "too_many_attempts" };
  await anna.page.route("**/email-code", (route) => route.fulfill({ status: 429, contentType: "application/problem+json", json: refusal }), { times: 1 });
  await press(anna.page.getByTestId("code-again"));
  await expect(page.cart.getByRole("alert").filter({ hasText: "Too many attempts" })).toBeVisible();
  await expect(field, "the typed code is not wrong").not.toHaveAttribute("aria-invalid", "true");
  await press(anna.page.getByTestId("code-again"));
  await expect(anna.page.getByTestId("code-news")).not.toBeEmpty();
  await waitForCode(email, [first]);
  await field.fill(first);
  await press(anna.page.getByTestId("pay"));
  await expect(anna.page.getByTestId("code-error")).not.toBeEmpty();

  await anna.page.locator('input[name="email"]').fill(other);
  await expect(field).toHaveCount(0);
  await press(anna.page.getByTestId("pay"));
  await expect(field).toBeVisible();
  await field.fill(await waitForCode(other));
  await press(anna.page.getByTestId("pay"));
  await expect(anna.page.locator("#pay")).toBeVisible();
});
