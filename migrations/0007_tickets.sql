-- Tables of `server/tickets`.

CREATE TABLE tickets (
    booking_id uuid NOT NULL,
    seat_no    integer NOT NULL,
    code       text NOT NULL UNIQUE,
    issued_at  timestamptz NOT NULL,
    revoked_at timestamptz,
    PRIMARY KEY (booking_id, seat_no)
);
COMMENT ON TABLE tickets IS 'The ticket of a sold seat.';
COMMENT ON COLUMN tickets.code IS 'Content of the QR code: random, not guessable.';
COMMENT ON COLUMN tickets.revoked_at IS 'Time from which the door refuses the code.';

CREATE TABLE place_tickets (
    booking_id uuid NOT NULL REFERENCES bookings,
    area_no    smallint NOT NULL,
    number     integer NOT NULL CHECK (number > 0),
    code       text NOT NULL UNIQUE,
    issued_at  timestamptz NOT NULL,
    PRIMARY KEY (booking_id, area_no, number)
);
COMMENT ON TABLE place_tickets IS 'The ticket of a sold place in an area.';
COMMENT ON COLUMN place_tickets.number IS 'Number among the booking''s places in this area, from 1.';
COMMENT ON COLUMN place_tickets.code IS 'Content of the QR code: random, not guessable.';
