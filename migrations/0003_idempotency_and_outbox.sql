-- The answer to a key, written in the transaction of its effect (M5).
CREATE TABLE idempotency_keys (
    owner        text NOT NULL,                      -- a key belongs to one visitor
    key          text NOT NULL,
    request_hash bytea NOT NULL,                     -- method, path and canonical body
    state        text NOT NULL CHECK (state IN ('pending', 'completed')),
    status       smallint,
    body         bytea,
    expires_at   timestamptz NOT NULL,
    PRIMARY KEY (owner, key)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

-- Work that follows from a committed step; done at least once, in order within a booking.
CREATE TABLE outbox (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    booking_id uuid NOT NULL REFERENCES bookings,
    effect     text NOT NULL CHECK (effect IN ('charge', 'void_payment', 'refund', 'mark_booked', 'release_seats', 'send_ticket')),
    amount_minor bigint,                             -- of a refund
    attempts   integer NOT NULL DEFAULT 0,
    run_after  timestamptz NOT NULL,
    parked_why text,                                 -- set when a person must look
    created_at timestamptz NOT NULL
);
CREATE INDEX outbox_due ON outbox (run_after) WHERE parked_why IS NULL;
CREATE INDEX outbox_by_booking ON outbox (booking_id, id);
