-- Bots and fairness, per show and off by default: guests prove their address by a code before they check out, and one
-- card pays for so many seats at most.
ALTER TABLE shows
    ADD COLUMN email_code     boolean NOT NULL DEFAULT false,
    ADD COLUMN per_instrument smallint CHECK (per_instrument BETWEEN 1 AND 100);

-- A code on its way to a visitor, or entered by them: one for each visitor and address. The code follows from the id and
-- a secret that is not in here; what was typed is compared with a keyed digest, because six digits are soon tried.
CREATE TABLE email_codes (
    id          uuid PRIMARY KEY,                    -- another one for each code
    owner       text NOT NULL,                       -- the visitor
    email       text NOT NULL,                       -- in small letters
    mail_to     text NOT NULL,                       -- as it was typed
    language    text NOT NULL,
    code_digest text NOT NULL CHECK (code_digest ~ '^[0-9a-f]{64}$'),
    tries       smallint NOT NULL DEFAULT 0 CHECK (tries >= 0),
    expires_at  timestamptz NOT NULL,                -- of the code
    proven_at   timestamptz,                         -- when a code was entered; asking for another one leaves it
    mail_after  timestamptz,                         -- none: it went out
    UNIQUE (owner, email)
);
CREATE INDEX email_codes_to_send ON email_codes (mail_after) WHERE mail_after IS NOT NULL;
CREATE INDEX email_codes_by_age ON email_codes (expires_at);

-- What pays for a booking, of shows with such a cap only: a table of its own, so that no other sale writes or reads any
-- of it. No card's number, no token, not the gateway's name of the card: a keyed digest of that name.
CREATE TABLE payment_instruments (
    booking_id uuid PRIMARY KEY,
    show_id    uuid NOT NULL REFERENCES shows,
    instrument text NOT NULL CHECK (instrument ~ '^[0-9a-f]{64}$')
);
CREATE INDEX payment_instruments_by_show ON payment_instruments (show_id, instrument);
