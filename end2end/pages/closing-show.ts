// The show that begins within minutes: it is visible and its sales are closed.
import { createHash } from "node:crypto";

// RFC 9562, section 6.6: the URL namespace.
const NAMESPACE = Buffer.from("6ba7b8119dad11d180b400c04fd430c8", "hex");

/** Returns its id, derived from screen and start (UUID version 5). */
export function closingShow(): string {
  const hash = createHash("sha1").update(NAMESPACE).update(process.env.CLOSING_SHOW ?? "").digest().subarray(0, 16);
  hash.writeUInt8((hash.readUInt8(6) & 0x0f) | 0x50, 6);
  hash.writeUInt8((hash.readUInt8(8) & 0x3f) | 0x80, 8);
  return hash.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
