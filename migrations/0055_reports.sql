-- What reports ask that nothing asked before.

-- Refunds by the day they reached their payers, and those that have not yet. Sales are found by their shows:
-- shows (screen_id, starts_at), then bookings_over_by_show, then the keys of what belongs to a booking, so that
-- reports cost a sale nothing.
CREATE INDEX refunds_by_settlement ON refunds (settled_at) WHERE state = 'settled';
CREATE INDEX refunds_under_way ON refunds (booking_id) WHERE state = 'requested';

-- Holds live in Redis and leave nothing behind; how many were granted is counted here, by the day on the clocks of
-- the show's theatre. Servers add what they counted every few seconds (server/src/reports/tally.rs).
CREATE TABLE hold_counts (
    show_id uuid NOT NULL REFERENCES shows,
    day     date NOT NULL,
    granted bigint NOT NULL CHECK (granted > 0),
    PRIMARY KEY (show_id, day)
);
