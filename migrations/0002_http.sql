-- Tables of `server/http`: stored responses of idempotent requests.

-- An index on expires_at would cost each stored response an entry in every index, because the response extends the life
-- of its key. purge_at is set once, at the claim, so Postgres keeps the answered version on the page of the claim (HOT).
-- The fill factor leaves room for it: a response has about one kilobyte.
CREATE TABLE idempotency_keys (
    owner        text NOT NULL,
    key          text NOT NULL,
    request_hash bytea NOT NULL,
    state        text NOT NULL CHECK (state IN ('pending', 'completed')),
    status       smallint,
    body         bytea,
    expires_at   timestamptz NOT NULL,
    purge_at     timestamptz NOT NULL DEFAULT now() + interval '24 hours 5 minutes',
    PRIMARY KEY (owner, key)
) WITH (fillfactor = 50);
CREATE INDEX idempotency_keys_purge ON idempotency_keys (purge_at);
COMMENT ON TABLE idempotency_keys IS 'An idempotency key of a visitor with its response, written in the transaction of the effect.';
COMMENT ON COLUMN idempotency_keys.owner IS 'The visitor, hashed, as in bookings.owner.';
COMMENT ON COLUMN idempotency_keys.request_hash IS 'Digest of the method, the path and the canonical body.';
COMMENT ON COLUMN idempotency_keys.status IS 'HTTP status of the response; null while pending.';
COMMENT ON COLUMN idempotency_keys.body IS 'Body of the response; null while pending.';
COMMENT ON COLUMN idempotency_keys.expires_at IS 'End of the key''s validity. It alone decides whether a row is deleted (decision 60).';
COMMENT ON COLUMN idempotency_keys.purge_at IS 'Time from which the purge examines the row.';
