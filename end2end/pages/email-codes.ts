// E-mail codes before checkout: enabled by an organiser, read from the mail by a buyer.
import { randomUUID } from "node:crypto";

import { type APIRequestContext, expect } from "@playwright/test";

import { signInByApi } from "./accounts.js";
import { mailsTo } from "./mailbox.js";

interface OrganisedShow {
  terms: Record<string, unknown>;
  version: number;
}

/** Enables e-mail codes for the guests of a show. */
export async function requireEmailCode(request: APIRequestContext, show: string): Promise<void> {
  // Every project uses this manager: there is none for the phone.
  await signInByApi(request, "manager-laptop@example.org");
  const found = (await (await request.get(`/api/v1/shows/${show}`)).json()) as { theatre: string };
  const path = `/api/v1/theatres/${found.theatre}/programme/${show}`;
  const { terms, version } = (await (await request.get(path)).json()) as OrganisedShow;
  const data = { terms: { ...terms, email_code: true }, version, reason: "Bots." };
  const changed = await request.post(`${path}/terms`, { data, headers: { "idempotency-key": randomUUID() } });
  expect(changed.status(), await changed.text()).toBe(200);
}

/** Returns the codes mailed to this address, unordered. */
export function mailedCodes(email: string): string[] {
  const mails = mailsTo(email).filter((mail) => mail.includes("Subject: Your code for checkout"));
  return mails.map((mail) => /^(\d{6})\r?$/m.exec(mail)?.[1] ?? "");
}

/** Waits for a code mailed to this address that is not in `before`. */
export async function waitForCode(email: string, before: string[] = []): Promise<string> {
  let code = "";
  await expect(() => {
    code = mailedCodes(email).find((mailed) => !before.includes(mailed)) ?? "";
    expect(code).toMatch(/^\d{6}$/);
  }).toPass({ timeout: 10_000 });
  return code;
}
