// A show that asks guests for a code before checkout: the field appears in place, and nothing is lost by a wrong one.
import { claimShow } from "../pages/catalogue.js";
import { askForCodes, codeMailed, codesMailed } from "../pages/codes.js";
import { expectForEveryone } from "../pages/everyone.js";
import { bookingBecomes, payWith } from "../pages/paying.js";
import { press } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

const CALM = { reducedMotion: "reduce" } as const;

test("a guest types the code from the mail in place, and pays", async ({ request, newVisitor }) => {
  test.setTimeout(90_000);
  const show = await claimShow(request);
  await askForCodes(request, show.id);
  const anna = await newVisitor(CALM);
  const email = `anna-${show.id}@example.org`;
  const page = await anna.visit(show.id);
  const c7 = show.seat("C", "7");
  await page.hold(c7);
  await page.fillDetails("Anna", email);
  const field = anna.page.getByLabel("Code from our e-mail");
  await expect(field).toHaveCount(0);

  // All by keyboard: Enter asks, the focus is in the field, Enter goes on.
  await anna.page.locator('input[name="email"]').press("Enter");
  await expect(field).toBeFocused();
  await expect(field).toHaveAttribute("aria-describedby", /pay-code-hint/);
  await expect(anna.page.locator("#pay-code-hint")).toContainText(email);
  const code = await codeMailed(email);
  await expectForEveryone(anna.page, "a code before checkout");

  const wrong = String((Number(code) + 1) % 1_000_000).padStart(6, "0");
  await field.press("Enter");
  await expect(anna.page.getByTestId("code-error")).toHaveText("Please type the six digits of the code.");
  await field.pressSequentially(wrong);
  await field.press("Enter");
  await expect(anna.page.getByTestId("code-error")).not.toBeEmpty();
  await expect(field).toHaveAttribute("aria-invalid", "true");
  await expect(field).toBeFocused();
  await page.sees(c7, "mine");

  // A reload costs nobody a second code.
  await anna.page.reload();
  await page.sees(c7, "mine");
  await page.openCart();
  await expect(anna.page.locator('input[name="email"]')).toHaveValue(email);
  await expect(field).toBeVisible();
  await anna.page.locator('input[name="name"]').fill("Anna");
  await field.fill(`${code.slice(0, 3)} ${code.slice(3)}`);
  await press(anna.page.getByTestId("pay"));
  await payWith(anna.page, "paid");
  await bookingBecomes(anna.page, "CONFIRMED");
  expect(codesMailed(email)).toHaveLength(1);
});

test("another code can be asked for, and another address wants one of its own", async ({ request, anna }) => {
  const show = await claimShow(request);
  await askForCodes(request, show.id);
  const [email, other] = [`anna-${show.id}@example.org`, `other-${show.id}@example.org`];
  const page = await anna.visit(show.id);
  await page.hold(show.seat("C", "7"));
  await page.fillDetails("Anna", email);
  await press(anna.page.getByTestId("pay"));
  const field = anna.page.getByLabel("Code from our e-mail");
  await expect(field).toBeVisible();
  const first = await codeMailed(email);
  await press(anna.page.getByTestId("code-again"));
  await expect(anna.page.getByTestId("code-news")).not.toBeEmpty();
  await codeMailed(email, [first]);
  await field.fill(first);
  await press(anna.page.getByTestId("pay"));
  await expect(anna.page.getByTestId("code-error")).not.toBeEmpty();

  await anna.page.locator('input[name="email"]').fill(other);
  await expect(field).toHaveCount(0);
  await press(anna.page.getByTestId("pay"));
  await expect(field).toBeVisible();
  await field.fill(await codeMailed(other));
  await press(anna.page.getByTestId("pay"));
  await expect(anna.page.locator("#pay")).toBeVisible();
});
