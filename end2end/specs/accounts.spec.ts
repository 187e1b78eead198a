// Accounts: registration, bookings on every device, linking of guest bookings, sign-out everywhere, password reset.
import { waitForMailedLink, PASSWORD, register, signIn } from "../pages/accounts.js";
import { claimShow } from "../pages/catalogue.js";
import { expectBookingState, payWith } from "../pages/paying.js";
import { press } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

const bookings = "my-booking";

test("a signed-in buyer's booking is listed in another browser", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const email = `anna-${show.id}@example.org`;
  await register(anna.page, "Anna Reyes", email);
  const page = await anna.visit(show.id);
  await page.hold(show.seat("C", "7"));
  await page.openCart();
  // The form is prefilled from the account.
  await expect(anna.page.locator('input[name="name"]')).toHaveValue("Anna Reyes");
  await expect(anna.page.locator('input[name="email"]')).toHaveValue(email);
  await press(anna.page.getByTestId("pay"));
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");

  await signIn(ben.page, email);
  await expect(ben.page.getByTestId(bookings)).toHaveCount(1);
  await expect(ben.page.getByTestId(bookings)).toHaveAttribute("data-state", "CONFIRMED");
  await press(ben.page.getByTestId(bookings));
  await expectBookingState(ben.page, "CONFIRMED");
});

test("a hold survives sign-in, and the guest's booking moves to the account", async ({ request, anna }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"]]);
  const email = `anna-${show.id}@example.org`;
  const setUp = await anna.context.browser()?.newContext();
  if (!setUp) throw new Error("no browser");
  await register(await setUp.newPage(), "Anna", email);
  await setUp.close();

  const page = await anna.visit(show.id);
  await page.hold(show.seat("C", "6"));
  await page.checkOut("Anna", "guest@example.org");
  await payWith(anna.page, "paid");
  await expectBookingState(anna.page, "CONFIRMED");
  const again = await anna.visit(show.id);
  await again.hold(show.seat("C", "7"));
  // Sign in in another tab, so that the map stays open.
  const other = await anna.newTab();
  await signIn(other.page, email);
  await expect(other.page.getByTestId(bookings)).toHaveCount(1);
  await anna.page.reload();
  await again.expectSeat(show.seat("C", "7"), "mine");
});

test("a guest who signs in during checkout returns to the show and the hold", async ({ request, anna, newVisitor }) => {
  const show = await claimShow(request);
  const email = `anna-${show.id}@example.org`;
  await register((await newVisitor()).page, "Anna", email);
  const hers = await anna.visit(show.id);
  await hers.hold(show.seat("C", "7"));
  await press(anna.page.getByTestId("account-mark"));
  await anna.page.locator('input[name="email"]').fill(email);
  await anna.page.locator('input[name="password"]').fill(PASSWORD);
  await press(anna.page.getByTestId("sign-in"));
  await anna.page.waitForURL(new RegExp(`/shows/${show.id}$`));
  await hers.expectSeat(show.seat("C", "7"), "mine");
  await expect(anna.page.getByTestId("account-mark")).toHaveText("Anna");
});

test("a guest's booking is linked to an account only after the address is confirmed", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const email = `anna-${show.id}@example.org`;
  const page = await ben.visit(show.id);
  await page.hold(show.seat("C", "7"));
  await page.checkOut("Anna", email);
  await payWith(ben.page, "paid");
  await expectBookingState(ben.page, "CONFIRMED");

  await register(anna.page, "Anna", email);
  await expect(anna.page.getByTestId(bookings)).toHaveCount(0);
  await anna.page.goto(await waitForMailedLink("Please confirm your address", email));
  await press(anna.page.getByTestId("confirm-email"));
  await anna.page.waitForURL(/\/account\?notice=proven$/);
  await expect(anna.page.getByTestId(bookings)).toHaveCount(1);
  await expect(anna.page.getByTestId("prove")).toHaveCount(0);
});

test("the header shows the account name until sign-out everywhere", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const email = `anna-${show.id}@example.org`;
  const mark = (page: typeof anna.page) => page.getByTestId("account-mark");
  await anna.page.goto("/");
  await expect(mark(anna.page)).toHaveText("Account");
  await register(anna.page, "Anna Reyes", email);
  await signIn(ben.page, email);
  for (const visitor of [anna, ben]) {
    // The page is cacheable: the name is added in the browser.
    await visitor.page.goto("/");
    await expect(mark(visitor.page)).toHaveText("Anna Reyes");
  }
  await press(mark(anna.page));
  await press(anna.page.getByTestId("sign-out-everywhere"));
  await expect(anna.page.getByTestId("account-notice")).toBeVisible();
  await ben.page.goto("/account");
  await expect(ben.page).toHaveURL(/\/login\?/);
  await ben.page.goto("/");
  await expect(mark(ben.page)).toHaveText("Account");
});

test("a password reset link works once", async ({ request, anna }) => {
  const show = await claimShow(request);
  const email = `anna-${show.id}@example.org`;
  await register(anna.page, "Anna", email);
  await press(anna.page.getByTestId("sign-out"));
  await anna.page.waitForURL((url) => url.pathname === "/");
  await anna.page.goto("/reset");
  await anna.page.locator('input[name="email"]').fill(email);
  await press(anna.page.getByTestId("ask-reset"));
  await expect(anna.page.getByTestId("reset-sent")).toBeVisible();
  const link = await waitForMailedLink("A new password", email);
  for (const goesWell of [true, false]) {
    await anna.page.goto(link);
    await anna.page.locator('input[name="password"]').fill("another good password");
    await press(anna.page.getByTestId("set-password"));
    if (goesWell) await anna.page.waitForURL(/\/login\?notice=password-reset$/);
    else await expect(anna.page.getByTestId("account-trouble")).toBeVisible();
  }
  await anna.page.goto("/login");
  await anna.page.locator('input[name="email"]').fill(email);
  await anna.page.locator('input[name="password"]').fill(PASSWORD);
  await press(anna.page.getByTestId("sign-in"));
  await expect(anna.page.getByTestId("account-trouble")).toBeVisible();
  await signIn(anna.page, email, "another good password");
});
