-- Payments that a gateway did not know when they were voided: a charge under way may still create one. They are voided again
-- after a minute, ten minutes, an hour and a day (bookings/money/unknown_voids.rs).
CREATE TABLE unknown_voids (
    booking_id uuid NOT NULL REFERENCES bookings,
    gateway    text NOT NULL,
    since      timestamptz NOT NULL,
    checks     smallint NOT NULL DEFAULT 0 CHECK (checks >= 0),  -- how often it was voided again
    check_at   timestamptz NOT NULL,                             -- when next; a lease while it is being voided
    PRIMARY KEY (booking_id, gateway)
);
CREATE INDEX unknown_voids_due ON unknown_voids (check_at);
