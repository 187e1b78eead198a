// The mails sent by the servers, a file each.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Returns the raw mails to this address. */
export function mailsTo(email: string): string[] {
  const folder = process.env.MAILBOX_DIR ?? "";
  const mails = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
  const texts = mails.map((file) => readFileSync(join(file.parentPath ?? file.path, file.name), "utf8"));
  return texts.filter((text) => new RegExp(`^To: .*${email}`, "m").test(text));
}
