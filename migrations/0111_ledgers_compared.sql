-- Once a day the ledger of each gateway is compared with payments (bookings/ledger/).
CREATE TABLE ledger_comparisons (
    gateway      text NOT NULL,
    day          date NOT NULL,                                  -- of UTC
    planned_at   timestamptz NOT NULL,
    leased_until timestamptz NOT NULL,
    taken        integer NOT NULL DEFAULT 0 CHECK (taken >= 0),  -- fencing token of the lease
    payments     bigint,                                         -- how many the gateway listed
    finished_at  timestamptz,
    PRIMARY KEY (gateway, day),
    CHECK ((finished_at IS NULL) = (payments IS NULL))
);
CREATE INDEX ledger_comparisons_open ON ledger_comparisons (planned_at) WHERE finished_at IS NULL;

-- Differences, each once; a person decides about it. Ids are from the sequence of the outbox: the list of what waits for a
-- person has both.
CREATE TABLE ledger_differences (
    id          bigint PRIMARY KEY DEFAULT nextval(pg_get_serial_sequence('outbox', 'id')),
    gateway     text NOT NULL,
    payment_ref text NOT NULL,                                   -- the gateway's own id, or the booking's
    booking_id  uuid NOT NULL,                                   -- as the gateway has it; it may not be here
    kind        text NOT NULL CHECK (kind IN ('unknown_booking', 'charged_unpaid', 'charged_differs',
                                              'refunded_there', 'refunded_here', 'missing_there')),
    here_minor  bigint NOT NULL,
    there_minor bigint NOT NULL,
    currency    char(3) NOT NULL,
    found_at    timestamptz NOT NULL,
    check_at    timestamptz,                                     -- a person wants it compared again; then a lease
    settled_at  timestamptz,
    UNIQUE (gateway, payment_ref, kind, here_minor, there_minor)
);
CREATE INDEX ledger_differences_open ON ledger_differences (booking_id) WHERE settled_at IS NULL;
