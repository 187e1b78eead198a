// Theatre staff. `cargo xtask test` creates a manager of all theatres per project, so that concurrent projects have
// separate tills.
import { randomUUID } from "node:crypto";

import { type APIRequestContext, expect, type Page, test } from "@playwright/test";

import { PASSWORD, signInByApi } from "./accounts.js";

/** The PIN of every manager. */
export const PIN = "274951";

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

/** Posts to the API with a new key, and returns the text of the answer with this status. */
export async function post(request: APIRequestContext, path: string, data: object, status: number): Promise<string> {
  const answer = await request.post(path, { headers: { "idempotency-key": randomUUID() }, data });
  expect(answer.status(), path).toBe(status);
  return answer.text();
}

/** Signs `request` in as the manager of this project, who has a PIN from then on. Returns the account. */
export async function signInAsManagerWithPin(request: APIRequestContext, theatre: string): Promise<string> {
  await signInByApi(request, managerEmail());
  const { id } = (await (await request.get("/api/v1/users/me")).json()) as { id: string };
  const desk = `/api/v1/theatres/${theatre}/box-office`;
  const managers = (await (await request.get(`${desk}/managers`)).json()) as { account: string }[];
  // Another story may have set it, and the server limits how often a PIN is set.
  if (!managers.some(({ account }) => account === id)) await post(request, `${desk}/pin`, { pin: PIN, password: PASSWORD }, 204);
  return id;
}
