// Codes before checkout: switched on as an organiser does, and read from the mail as a buyer does.
import { randomUUID } from "node:crypto";

import { type APIRequestContext, expect } from "@playwright/test";

import { PASSWORD } from "./accounts.js";
import { mailsTo } from "./mailbox.js";

interface OrganisedShow {
  terms: Record<string, unknown>;
  version: number;
}

/** Has a show ask guests for a code before they check out. */
export async function askForCodes(request: APIRequestContext, show: string): Promise<void> {
  // Staff have no phone: this manager is there for every size.
  const email = "manager-laptop@example.org";
  const signedIn = await request.post("/api/v1/users/login", { data: { email, password: PASSWORD } });
  expect(signedIn.status()).toBe(200);
  const found = (await (await request.get(`/api/v1/shows/${show}`)).json()) as { theatre: string };
  const path = `/api/v1/theatres/${found.theatre}/programme/${show}`;
  const { terms, version } = (await (await request.get(path)).json()) as OrganisedShow;
  const data = { terms: { ...terms, email_code: true }, version, reason: "Bots." };
  const changed = await request.post(`${path}/terms`, { data, headers: { "idempotency-key": randomUUID() } });
  expect(changed.status(), await changed.text()).toBe(200);
}

/** Codes mailed to this address, in no order. */
export function codesMailed(email: string): string[] {
  const mails = mailsTo(email).filter((mail) => mail.includes("Subject: Your code for checkout"));
  return mails.map((mail) => /^(\d{6})\r?$/m.exec(mail)?.[1] ?? "");
}

/** The code mailed to this address that is none of those, once it is there. */
export async function codeMailed(email: string, before: string[] = []): Promise<string> {
  let code = "";
  await expect(() => {
    code = codesMailed(email).find((mailed) => !before.includes(mailed)) ?? "";
    expect(code).toMatch(/^\d{6}$/);
  }).toPass({ timeout: 10_000 });
  return code;
}
