// The account pages and the links in account mails.
import { type APIRequestContext, expect, type Page } from "@playwright/test";

import { mailsTo } from "./mailbox.js";
import { press } from "./show.js";

export const PASSWORD = "correct horse battery";

/** Registers an account, which signs the browser in. */
export async function register(page: Page, name: string, email: string): Promise<void> {
  await page.goto("/register");
  await page.locator('input[name="name"]').fill(name);
  await page.locator('input[name="email"]').fill(email);
  await page.locator('input[name="password"]').fill(PASSWORD);
  await press(page.getByTestId("register"));
  await page.waitForURL(/\/account$/);
  await expect(page.getByTestId("account-name")).toHaveText(name);
}

/** Signs in and waits for the account page. */
export async function signIn(page: Page, email: string, password = PASSWORD): Promise<void> {
  await page.goto("/login");
  await page.locator('input[name="email"]').fill(email);
  await page.locator('input[name="password"]').fill(password);
  await press(page.getByTestId("sign-in"));
  await page.waitForURL(/\/account$/);
}

/** Signs in without a page. With a page's `request`, its browser is signed in. */
export async function signInByApi(request: APIRequestContext, email: string, server = ""): Promise<void> {
  const signedIn = await request.post(`${server}/api/v1/users/login`, { data: { email, password: PASSWORD } });
  expect(signedIn.status()).toBe(200);
}

/**
 * Waits for the mail with this subject to this address and returns the path of its link. The path begins with `start`, a
 * pattern, and ends with a key.
 */
export async function waitForMailedLink(subject: string, email: string, start = "\\S+\\?token="): Promise<string> {
  const link = new RegExp(`https?://[^/\\s]+(/${start}[0-9a-f]{64,})`);
  let path = "";
  await expect(() => {
    const mail = mailsTo(email).find((text) => text.includes(`Subject: ${subject}`)) ?? "";
    path = link.exec(mail.replace(/=\r?\n/g, "").replace(/=3D/g, "="))?.[1] ?? "";
    expect(path).not.toBe("");
  }).toPass({ timeout: 10_000 });
  return path;
}
