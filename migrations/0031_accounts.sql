-- Accounts, their sessions, who works where, and the list of who did what.

-- Addresses are compared by lower(… COLLATE "C"): ASCII letters alone lose their case, so that no two
-- mailboxes of the world are taken for one. What is mailed goes to the address as it is stored.
CREATE TABLE accounts (
    id              uuid PRIMARY KEY,
    email           text NOT NULL,
    name            text NOT NULL,
    password_hash   text NOT NULL,                   -- Argon2id, as a PHC string
    version         integer NOT NULL DEFAULT 1,      -- every write repeats it
    email_proven_at timestamptz,
    closed_at       timestamptz,                     -- nobody signs in any more
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL
);
CREATE UNIQUE INDEX accounts_by_email ON accounts (lower(email COLLATE "C"));

-- A visitor who signed in: their holds and bookings are the account's from then on, and no other's ever.
CREATE TABLE account_visitors (
    owner      text PRIMARY KEY,                     -- as in bookings.owner
    account_id uuid NOT NULL REFERENCES accounts,
    joined_at  timestamptz NOT NULL
);
CREATE INDEX account_visitors_by_account ON account_visitors (account_id);

-- Guests' bookings, for the account that proves their address.
CREATE INDEX bookings_by_buyer_email ON bookings (lower(buyer_email COLLATE "C"));

CREATE TABLE sessions (
    id           uuid PRIMARY KEY,
    account_id   uuid NOT NULL REFERENCES accounts,
    kind         text NOT NULL CHECK (kind IN ('browser', 'token')),
    secret_hash  bytea UNIQUE,                       -- of the cookie; a token carries the id, signed
    owner        text NOT NULL REFERENCES account_visitors,   -- the visitor it acts as
    idle_ms      bigint NOT NULL CHECK (idle_ms > 0),
    created_at   timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,               -- to the minute
    expires_at   timestamptz NOT NULL,
    ended_at     timestamptz,
    CHECK ((kind = 'browser') = (secret_hash IS NOT NULL))
);
CREATE INDEX sessions_live ON sessions (account_id) WHERE ended_at IS NULL;
CREATE INDEX sessions_old ON sessions (expires_at);

-- Links in mails: single use, and only their hashes.
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

-- Mails to be sent. What one says, and whether there is anybody to send it to, is decided when it is sent:
-- asking for one takes as long for an address nobody has.
CREATE TABLE account_mails (
    id         uuid PRIMARY KEY,
    kind       text NOT NULL CHECK (kind IN ('reset', 'prove', 'registered_again', 'password_changed')),
    email      text NOT NULL,
    run_after  timestamptz NOT NULL,
    tries      integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL
);
CREATE INDEX account_mails_due ON account_mails (run_after);

-- Who works where, as what.
CREATE TABLE staff_grants (
    account_id uuid NOT NULL REFERENCES accounts,
    theatre_id text NOT NULL REFERENCES theatres,
    role       text NOT NULL CHECK (role IN ('box_office', 'manager', 'organiser')),
    granted_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, theatre_id, role)
);
CREATE INDEX staff_grants_by_theatre ON staff_grants (theatre_id);

-- Who did what, when and why. Rows are added and never touched again.
CREATE TABLE audit_list (
    number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL,
    actor      uuid REFERENCES accounts,             -- none: somebody at the server's command line
    theatre_id text REFERENCES theatres,             -- none: of no theatre
    act        text NOT NULL,
    subject    text NOT NULL,                        -- what it was done to: a kind and an id
    reason     text NOT NULL
);
CREATE INDEX audit_list_by_theatre ON audit_list (theatre_id, number DESC);
CREATE TRIGGER audit_list_immutable BEFORE UPDATE OR DELETE ON audit_list
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_list_kept BEFORE TRUNCATE ON audit_list
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
