-- Defective seats that were taken out of sale in a show, until their bookings are undone and the map has them off sale
-- (bookings/cancel/withdrawals.rs). shows.blocked keeps them off sale after that.
CREATE TABLE seat_withdrawals (
    show_id      uuid NOT NULL REFERENCES shows,
    seat_no      integer NOT NULL CHECK (seat_no >= 0),
    layout_id    uuid NOT NULL REFERENCES layouts,               -- in another room the number is another seat
    reason       text NOT NULL,
    requested_at timestamptz NOT NULL,
    look_at      timestamptz NOT NULL,                           -- a lease while a replica looks
    finished_at  timestamptz,
    PRIMARY KEY (show_id, seat_no)
);
CREATE INDEX seat_withdrawals_due ON seat_withdrawals (look_at) WHERE finished_at IS NULL;
