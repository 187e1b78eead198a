// Theatre staff. `cargo xtask test` creates a manager of all theatres per project, so that concurrent projects have
// separate tills.
import { expect, type Page, test } from "@playwright/test";

import { signInByApi } from "./accounts.js";

/** Returns the address of the manager of this project. */
export function managerEmail(): string {
  return `manager-${test.info().project.name}@example.org`;
}

/** Signs in as the manager of this project, at `server` if it is given. `accounts.spec.ts` tests the form. */
export async function signInAsManager(page: Page, server = ""): Promise<void> {
  await signInByApi(page.request, managerEmail(), server);
}

/** Opens the box office of a theatre. */
export async function openBoxOffice(page: Page, theatre: string): Promise<void> {
  await page.goto(`/staff/${theatre}/box-office`);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
}
