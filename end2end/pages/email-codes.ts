// E-mail codes before checkout, read from the mail by a buyer.
import { expect } from "@playwright/test";

import { mailsTo } from "./mailbox.js";

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
