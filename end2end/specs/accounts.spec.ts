// An account: registering, what one buys on every device, a guest's booking that joins, signing out everywhere.
import { linkMailed, PASSWORD, register, signIn } from "../pages/accounts.js";
import { claimShow } from "../pages/catalogue.js";
import { bookingBecomes, payWith } from "../pages/paying.js";
import { press } from "../pages/show.js";
import { expect, test } from "../pages/visitors.js";

const bookings = "my-booking";

test("what one buys while signed in is under my bookings on another browser", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const email = `anna-${show.id}@example.org`;
  await register(anna.page, "Anna Reyes", email);
  const page = await anna.visit(show.id);
  await page.hold(show.seat("C", "7"));
  await page.openCart();
  // Who is signed in need not type it again.
  await expect(anna.page.locator('input[name="name"]')).toHaveValue("Anna Reyes");
  await expect(anna.page.locator('input[name="email"]')).toHaveValue(email);
  await press(anna.page.getByTestId("pay"));
  await payWith(anna.page, "paid");
  await bookingBecomes(anna.page, "CONFIRMED");

  await signIn(ben.page, email);
  await expect(ben.page.getByTestId(bookings)).toHaveCount(1);
  await expect(ben.page.getByTestId(bookings)).toHaveAttribute("data-state", "CONFIRMED");
  await press(ben.page.getByTestId(bookings));
  await bookingBecomes(ben.page, "CONFIRMED");
});

test("a hold survives signing in, and a guest's booking comes along", async ({ request, anna }) => {
  const show = await claimShow(request, [["C", "6"], ["C", "7"]]);
  const email = `anna-${show.id}@example.org`;
  const setUp = await anna.context.browser()?.newContext();
  if (!setUp) throw new Error("no browser");
  await register(await setUp.newPage(), "Anna", email);
  await setUp.close();

  const page = await anna.visit(show.id);
  await page.hold(show.seat("C", "6"));
  await page.checkOut("Anna", "somebody@example.org");
  await payWith(anna.page, "paid");
  await bookingBecomes(anna.page, "CONFIRMED");
  const again = await anna.visit(show.id);
  await again.hold(show.seat("C", "7"));
  // In another tab, so that the one with the map stays open.
  const other = await anna.newTab();
  await signIn(other.page, email);
  await expect(other.page.getByTestId(bookings)).toHaveCount(1);
  await anna.page.reload();
  await again.sees(show.seat("C", "7"), "mine");
});

test("a guest's booking joins the account that confirms the address, and not before", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const email = `anna-${show.id}@example.org`;
  const page = await ben.visit(show.id);
  await page.hold(show.seat("C", "7"));
  await page.checkOut("Anna", email);
  await payWith(ben.page, "paid");
  await bookingBecomes(ben.page, "CONFIRMED");

  await register(anna.page, "Anna", email);
  await expect(anna.page.getByTestId(bookings)).toHaveCount(0);
  await anna.page.goto(await linkMailed("Please confirm your address", email));
  await press(anna.page.getByTestId("confirm-email"));
  await anna.page.waitForURL(/\/account\?notice=proven$/);
  await expect(anna.page.getByTestId(bookings)).toHaveCount(1);
  await expect(anna.page.getByTestId("prove")).toHaveCount(0);
});

test("the header says who is signed in, and nobody once signed out everywhere", async ({ request, anna, ben }) => {
  const show = await claimShow(request);
  const email = `anna-${show.id}@example.org`;
  const mark = (page: typeof anna.page) => page.getByTestId("account-mark");
  await anna.page.goto("/");
  await expect(mark(anna.page)).toHaveText("Account");
  await register(anna.page, "Anna Reyes", email);
  await signIn(ben.page, email);
  for (const visitor of [anna, ben]) {
    // A page that caches keep: only the browser adds the name.
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

test("a forgotten password is replaced by a link that works once", async ({ request, anna }) => {
  const show = await claimShow(request);
  const email = `anna-${show.id}@example.org`;
  await register(anna.page, "Anna", email);
  await press(anna.page.getByTestId("sign-out"));
  await anna.page.waitForURL((url) => url.pathname === "/");
  await anna.page.goto("/reset");
  await anna.page.locator('input[name="email"]').fill(email);
  await press(anna.page.getByTestId("ask-reset"));
  await expect(anna.page.getByTestId("reset-sent")).toBeVisible();
  const link = await linkMailed("A new password", email);
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
