-- Tables of `server/identity`: accounts, their sessions and grants, API keys, and the audit list.

-- The mailbox of an address, by which seat limits count: without case and without a tag after a plus. The same rule in
-- Rust: identity::accounts::person::mailbox.
CREATE FUNCTION mailbox(address text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN lower(regexp_replace(address, '^([^@+]+)\+[^@]*@', '\1@') COLLATE "C");

CREATE TABLE accounts (
    id              uuid PRIMARY KEY,
    email           text NOT NULL,
    name            text NOT NULL,
    password_hash   text NOT NULL,
    version         integer NOT NULL DEFAULT 1,
    email_proven_at timestamptz,
    closed_at       timestamptz,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL
);
-- Collation "C" lowers ASCII letters only, so two different mailboxes never compare as equal.
CREATE UNIQUE INDEX accounts_by_email ON accounts (lower(email COLLATE "C"));
-- Finds the account that a guest's address may belong to.
CREATE INDEX accounts_by_mailbox ON accounts (mailbox(email));
COMMENT ON TABLE accounts IS 'A registered person.';
COMMENT ON COLUMN accounts.email IS 'As typed; mails go to it. Compared in lower case.';
COMMENT ON COLUMN accounts.password_hash IS 'Argon2id, as a PHC string.';
COMMENT ON COLUMN accounts.version IS 'Every write repeats it.';
COMMENT ON COLUMN accounts.closed_at IS 'Time of closing; a closed account cannot sign in.';

CREATE TABLE account_visitors (
    owner      text PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts,
    joined_at  timestamptz NOT NULL
);
CREATE INDEX account_visitors_by_account ON account_visitors (account_id);
-- Every replica polls it for visitors that joined an account: it replays no more responses of theirs to guests.
CREATE INDEX account_visitors_by_time ON account_visitors (joined_at);
COMMENT ON TABLE account_visitors IS 'A visitor that an account owns, with its holds and bookings; the account never changes.';
COMMENT ON COLUMN account_visitors.owner IS 'The visitor, hashed, as in bookings.owner.';

CREATE TABLE sessions (
    id           uuid PRIMARY KEY,
    account_id   uuid NOT NULL REFERENCES accounts,
    kind         text NOT NULL CHECK (kind IN ('browser', 'token')),
    secret_hash  bytea UNIQUE,
    owner        text NOT NULL REFERENCES account_visitors,
    idle_ms      bigint NOT NULL CHECK (idle_ms > 0),
    created_at   timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    ended_at     timestamptz,
    CHECK ((kind = 'browser') = (secret_hash IS NOT NULL))
);
CREATE INDEX sessions_live ON sessions (account_id) WHERE ended_at IS NULL;
CREATE INDEX sessions_old ON sessions (expires_at);
COMMENT ON TABLE sessions IS 'A session of an account: a browser, or an API token.';
COMMENT ON COLUMN sessions.secret_hash IS 'Hash of the browser''s cookie; a token carries its id, signed.';
COMMENT ON COLUMN sessions.owner IS 'The visitor it acts as.';
COMMENT ON COLUMN sessions.idle_ms IS 'Maximum time without a request, ms.';
COMMENT ON COLUMN sessions.last_seen_at IS 'To the minute.';

CREATE TABLE account_links (
    token_hash bytea PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts,
    purpose    text NOT NULL CHECK (purpose IN ('reset', 'prove')),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at    timestamptz
);
CREATE INDEX account_links_by_account ON account_links (account_id);
CREATE INDEX account_links_old ON account_links (expires_at);
COMMENT ON TABLE account_links IS 'A single-use link in a mail; only the hash of its token is stored.';

-- The recipient and the text are decided when the mail is sent, so that a request takes equally long for an address
-- without an account.
CREATE TABLE account_mails (
    id         uuid PRIMARY KEY,
    kind       text NOT NULL CHECK (kind IN ('reset', 'prove', 'registered_again', 'password_changed')),
    email      text NOT NULL,
    run_after  timestamptz NOT NULL,
    tries      integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL
);
CREATE INDEX account_mails_due ON account_mails (run_after);
COMMENT ON TABLE account_mails IS 'A mail to an account that waits to be sent.';

CREATE TABLE staff_grants (
    account_id uuid NOT NULL REFERENCES accounts,
    theatre_id text NOT NULL REFERENCES theatres,
    role       text NOT NULL CHECK (role IN ('box_office', 'manager', 'organiser')),
    granted_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, theatre_id, role)
);
CREATE INDEX staff_grants_by_theatre ON staff_grants (theatre_id);
COMMENT ON TABLE staff_grants IS 'A role of an account in a theatre.';

CREATE TABLE manager_pins (
    account_id uuid PRIMARY KEY REFERENCES accounts,
    pin_hash   text NOT NULL,
    set_at     timestamptz NOT NULL
);
COMMENT ON TABLE manager_pins IS 'The PIN with which a manager approves a refund at another person''s till.';
COMMENT ON COLUMN manager_pins.pin_hash IS 'Argon2id, as a PHC string.';

CREATE TABLE api_keys (
    id           uuid PRIMARY KEY,
    theatre_id   text NOT NULL REFERENCES theatres,
    name         text NOT NULL,
    hint         text NOT NULL,
    secret_hash  bytea NOT NULL UNIQUE,
    reads_people boolean NOT NULL,
    made_by      uuid NOT NULL REFERENCES accounts,
    made_at      timestamptz NOT NULL,
    last_used_at timestamptz,
    revoked_at   timestamptz
);
CREATE INDEX api_keys_by_theatre ON api_keys (theatre_id, made_at);
COMMENT ON TABLE api_keys IS 'A key with which another system reads a theatre''s data.';
COMMENT ON COLUMN api_keys.hint IS 'First characters of the key.';
COMMENT ON COLUMN api_keys.secret_hash IS 'SHA-256 of the whole key: 256 random bits need no slow hash.';
COMMENT ON COLUMN api_keys.reads_people IS 'May read names and addresses.';
COMMENT ON COLUMN api_keys.last_used_at IS 'To the minute.';

CREATE TABLE audit_list (
    number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL,
    actor      uuid REFERENCES accounts,
    theatre_id text REFERENCES theatres,
    act        text NOT NULL,
    subject    text NOT NULL,
    reason     text NOT NULL
);
CREATE INDEX audit_list_by_theatre ON audit_list (theatre_id, number DESC);
CREATE TRIGGER audit_list_immutable BEFORE UPDATE OR DELETE ON audit_list
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_list_kept BEFORE TRUNCATE ON audit_list
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE audit_list IS 'An action of staff with its actor, time and reason; append-only.';
COMMENT ON COLUMN audit_list.actor IS 'Null: the command line of a server.';
COMMENT ON COLUMN audit_list.theatre_id IS 'Null: an action outside any theatre.';
COMMENT ON COLUMN audit_list.subject IS 'Kind and id of the object.';
