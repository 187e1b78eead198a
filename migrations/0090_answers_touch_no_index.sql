-- A key that is answered lives on for a day instead of five minutes, and an index had its end in it: storing the answer wrote
-- new entries into both indexes. What is set once, when the key is claimed, may be in an index: then Postgres keeps the
-- answered version on the page of the claim (HOT).
--
-- Meanings stay: a key is of use until expires_at, whoever wrote it. purge_at only says when that is worth asking; a row
-- that is of use all the same stays (docs/decisions/0060). The version before writes rows without it, counted from the
-- clock here, and looks for what has run out by reading the table, until its replicas are exchanged. Rows of before stay a
-- day longer than they are of use: nothing is rewritten.
SET LOCAL lock_timeout = '5s';
ALTER TABLE idempotency_keys ADD COLUMN purge_at timestamptz NOT NULL DEFAULT now() + interval '24 hours 5 minutes';
CREATE INDEX idempotency_keys_purge ON idempotency_keys (purge_at);
DROP INDEX idempotency_keys_expiry;
-- Room on a page for answers of about a kilobyte, where every other claim comes with its answer. New pages only.
ALTER TABLE idempotency_keys SET (fillfactor = 50);
