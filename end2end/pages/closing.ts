// The show that begins in a moment: it can be seen, and no longer be booked.
import { createHash } from "node:crypto";

// RFC 9562, section 6.6: the namespace of addresses.
const NAMESPACE = Buffer.from("6ba7b8119dad11d180b400c04fd430c8", "hex");

/** Its id, which follows from where and when it is (UUID version 5). */
export function closingShow(): string {
  const hash = createHash("sha1").update(NAMESPACE).update(process.env.CLOSING_SHOW ?? "").digest().subarray(0, 16);
  hash.writeUInt8((hash.readUInt8(6) & 0x0f) | 0x50, 6);
  hash.writeUInt8((hash.readUInt8(8) & 0x3f) | 0x80, 8);
  return hash.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
