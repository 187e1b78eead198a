-- Keys that other systems of a theatre read with.
CREATE TABLE api_keys (
    id           uuid PRIMARY KEY,
    theatre_id   text NOT NULL REFERENCES theatres,
    name         text NOT NULL,
    hint         text NOT NULL,                      -- how it begins
    secret_hash  bytea NOT NULL UNIQUE,              -- SHA-256 of all of it: 256 random bits need no slow hash
    reads_people boolean NOT NULL,
    made_by      uuid NOT NULL REFERENCES accounts,
    made_at      timestamptz NOT NULL,
    last_used_at timestamptz,                        -- to the minute
    revoked_at   timestamptz
);
CREATE INDEX api_keys_by_theatre ON api_keys (theatre_id, made_at);
