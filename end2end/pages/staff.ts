// People who work at a theatre. `cargo xtask test` makes a manager of all theatres for each project, so that two
// projects at once have tills of their own.
import { expect, type Page, test } from "@playwright/test";

import { PASSWORD, signIn } from "./accounts.js";

/** Signs in as the manager of this project, at another address of the server if one is given. */
export async function signInAsManager(page: Page, server = ""): Promise<void> {
  await signIn(page, `manager-${test.info().project.name}@example.org`, PASSWORD, server);
}

/** Opens the box office of a theatre. */
export async function openBoxOffice(page: Page, theatre: string): Promise<void> {
  await page.goto(`/staff/${theatre}/box-office`);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
}
