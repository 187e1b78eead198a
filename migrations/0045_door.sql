-- The door: who was let in with which ticket by which scan, and who should not have been.

-- A ticket lets in once. An admission that is undone stays as a row; of those that stand there is one a ticket.
CREATE TABLE door_admissions (
    id          uuid PRIMARY KEY,
    ticket_code text NOT NULL,                       -- of tickets or place_tickets
    theatre_id  text NOT NULL REFERENCES theatres,
    show_id     uuid NOT NULL REFERENCES shows,
    scan_id     uuid NOT NULL,                       -- the scan that let them in, as the device named it
    device      text NOT NULL,                       -- its name for people
    at          timestamptz NOT NULL,                -- when, by our clock
    recorded_at timestamptz NOT NULL,
    undone_at   timestamptz,
    undone_by   uuid REFERENCES accounts,
    CHECK ((undone_at IS NULL) = (undone_by IS NULL))
);
CREATE UNIQUE INDEX door_admissions_once ON door_admissions (ticket_code) WHERE undone_at IS NULL;
CREATE INDEX door_admissions_by_show ON door_admissions (show_id) WHERE undone_at IS NULL;
CREATE INDEX door_admissions_by_scan ON door_admissions (scan_id);

-- Every code that was looked at, a row a code of a scan: the door's own list of who did what.
CREATE TABLE door_scans (
    theatre_id  text NOT NULL REFERENCES theatres,
    scan_id     uuid NOT NULL,
    code        text NOT NULL CHECK (length(code) <= 26),    -- as read; there need be no such ticket
    show_id     uuid NOT NULL REFERENCES shows,      -- the show whose door it was
    device_id   uuid NOT NULL,
    device      text NOT NULL,
    account_id  uuid NOT NULL REFERENCES accounts,   -- who was signed in when it was written here
    at          timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL,
    offline     boolean NOT NULL,                    -- the device decided by its list, and told us later
    let_in      boolean NOT NULL,                    -- somebody came in by it, rightly or not
    outcome     text NOT NULL CHECK (outcome IN ('admitted', 'already_used', 'other_show', 'not_valid', 'unknown',
                                                 'forged', 'conflict')),
    PRIMARY KEY (theatre_id, scan_id, code),
    CHECK (let_in = (outcome IN ('admitted', 'conflict')))
);
CREATE INDEX door_scans_by_show ON door_scans (show_id, recorded_at);

-- Somebody was let in who should not have been. Written once, never changed.
CREATE TABLE door_conflicts (
    number       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    theatre_id   text NOT NULL REFERENCES theatres,
    show_id      uuid NOT NULL REFERENCES shows,
    ticket_code  text NOT NULL,
    seat         text,                               -- for people; none for what is no ticket
    why          text NOT NULL CHECK (why IN ('already_used', 'other_show', 'not_valid', 'unknown', 'forged')),
    scan_id      uuid NOT NULL,                      -- the one too many
    device       text NOT NULL,
    at           timestamptz NOT NULL,
    first_scan   uuid,                               -- the one before it
    first_device text,
    first_at     timestamptz,
    recorded_at  timestamptz NOT NULL,
    UNIQUE (scan_id, ticket_code),
    CHECK ((why = 'already_used') = (first_scan IS NOT NULL))
);
CREATE INDEX door_conflicts_by_show ON door_conflicts (show_id, number DESC);
CREATE TRIGGER door_conflicts_immutable BEFORE UPDATE OR DELETE ON door_conflicts
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- How many tickets of a show are good, how many people came with one, how many should not have come.
CREATE FUNCTION door_sold(show uuid) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT (SELECT count(*) FROM bookings JOIN tickets ON tickets.booking_id = bookings.id
            WHERE bookings.show_id = show AND NOT bookings.is_open AND bookings.state = 'CONFIRMED'
              AND tickets.revoked_at IS NULL)
         + (SELECT count(*) FROM bookings JOIN place_tickets ON place_tickets.booking_id = bookings.id
            WHERE bookings.show_id = show AND NOT bookings.is_open AND bookings.state = 'CONFIRMED')
$$;
CREATE FUNCTION door_admitted(show uuid) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT count(*) FROM door_admissions WHERE show_id = show AND undone_at IS NULL
$$;
CREATE FUNCTION door_conflicted(show uuid) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT count(*) FROM door_conflicts WHERE show_id = show
$$;
