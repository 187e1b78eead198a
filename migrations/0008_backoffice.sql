-- Tables of `server/backoffice`: imported layouts, house seats, relocations, tills, the door, and outgoing webhooks.

-- Layouts and house seats.

CREATE TABLE theatre_layouts (
    layout_id    uuid PRIMARY KEY REFERENCES layouts,
    theatre_id   text NOT NULL REFERENCES theatres,
    remarks      jsonb NOT NULL,
    imported_by  uuid NOT NULL REFERENCES accounts,
    imported_at  timestamptz NOT NULL,
    published_at timestamptz
);
CREATE INDEX theatre_layouts_unpublished ON theatre_layouts (theatre_id, imported_at) WHERE published_at IS NULL;
COMMENT ON TABLE theatre_layouts IS 'A layout that a theatre''s staff imported; it may be deleted until a screen has it.';
COMMENT ON COLUMN theatre_layouts.remarks IS 'A list of domain::layout::import::Finding as JSON.';
COMMENT ON COLUMN theatre_layouts.published_at IS 'Time at which a screen first had it.';

-- By label, so that another layout of the screen finds the seats again; a label it lacks is kept without a number.
CREATE TABLE standing_house_seats (
    screen_id text NOT NULL REFERENCES screens,
    layout_id uuid NOT NULL REFERENCES layouts,
    label     text NOT NULL,
    seat_no   integer CHECK (seat_no >= 0),
    reason    text NOT NULL,
    kept_by   uuid NOT NULL REFERENCES accounts,
    kept_at   timestamptz NOT NULL,
    PRIMARY KEY (screen_id, layout_id, label)
);
CREATE UNIQUE INDEX standing_house_seats_once ON standing_house_seats (screen_id, layout_id, seat_no);
COMMENT ON TABLE standing_house_seats IS 'A house seat of every show planned on a screen, for one layout of the screen.';
COMMENT ON COLUMN standing_house_seats.label IS 'Unique in the layout.';
COMMENT ON COLUMN standing_house_seats.seat_no IS 'Null: the layout has no seat with this label.';

CREATE TABLE house_seats (
    show_id     uuid NOT NULL REFERENCES shows,
    seat_no     integer NOT NULL CHECK (seat_no >= 0),
    reason      text NOT NULL,
    kept_by     uuid NOT NULL REFERENCES accounts,
    kept_at     timestamptz NOT NULL,
    is_standing boolean NOT NULL DEFAULT false,
    PRIMARY KEY (show_id, seat_no)
);
COMMENT ON TABLE house_seats IS 'The reason for a house seat of a show; shows.blocked keeps it off sale.';
COMMENT ON COLUMN house_seats.is_standing IS 'It comes from standing_house_seats: a relocation replaces it by those of the other screen.';

CREATE TABLE caller_holds (
    hold_id    uuid PRIMARY KEY,
    theatre_id text NOT NULL REFERENCES theatres,
    show_id    uuid NOT NULL REFERENCES shows,
    owner      text NOT NULL,
    name       text NOT NULL,
    seats      integer[] NOT NULL CHECK (cardinality(seats) BETWEEN 1 AND 10),
    held_by    uuid NOT NULL REFERENCES accounts,
    held_at    timestamptz NOT NULL,
    until      timestamptz NOT NULL,
    ended_as   text CHECK (ended_as IN ('sold', 'released'))
);
CREATE INDEX caller_holds_open ON caller_holds (show_id, until) WHERE ended_as IS NULL;
COMMENT ON TABLE caller_holds IS 'A hold for a caller on the telephone; the lock store holds the seats.';
COMMENT ON COLUMN caller_holds.owner IS 'Owner of the hold in the lock store.';
COMMENT ON COLUMN caller_holds.name IS 'The caller''s name.';
COMMENT ON COLUMN caller_holds.held_by IS 'The seller.';

-- Relocations (docs/decisions/0042).

CREATE TABLE show_moves (
    id           uuid PRIMARY KEY,
    show_id      uuid NOT NULL REFERENCES shows,
    from_screen  text NOT NULL REFERENCES screens,
    to_screen    text NOT NULL REFERENCES screens,
    from_layout  uuid NOT NULL REFERENCES layouts,
    to_layout    uuid NOT NULL REFERENCES layouts,
    prices       jsonb NOT NULL,
    reason       text NOT NULL,
    sales        text NOT NULL CHECK (sales IN ('planned', 'open', 'paused')),
    state        text NOT NULL CHECK (state IN ('closing', 'carried', 'done', 'dropped')),
    same         integer NOT NULL DEFAULT 0,
    offered      integer NOT NULL DEFAULT 0,
    refunded     integer NOT NULL DEFAULT 0,
    answer_until timestamptz,
    requested_at timestamptz NOT NULL,
    carried_at   timestamptz,
    finished_at  timestamptz,
    CHECK ((state IN ('carried', 'done')) = (carried_at IS NOT NULL)),
    CHECK ((state IN ('done', 'dropped')) = (finished_at IS NOT NULL))
);
CREATE UNIQUE INDEX show_moves_one_at_a_time ON show_moves (show_id) WHERE state IN ('closing', 'carried');
CREATE INDEX show_moves_by_show ON show_moves (show_id, requested_at DESC);
CREATE INDEX show_moves_to ON show_moves (to_screen) WHERE state = 'closing';
COMMENT ON TABLE show_moves IS 'A relocation of a show to another screen of its theatre, with its progress.';
COMMENT ON COLUMN show_moves.prices IS 'Prices on the new screen: category name to minor units.';
COMMENT ON COLUMN show_moves.reason IS 'As buyers read it.';
COMMENT ON COLUMN show_moves.sales IS 'shows.sales before and after the relocation.';
COMMENT ON COLUMN show_moves.state IS
    'closing: open payments end. carried: all bookings are renumbered, and replicas reload the show. '
    'dropped: the show was called off.';
COMMENT ON COLUMN show_moves.same IS 'Number of bookings that keep their places.';
COMMENT ON COLUMN show_moves.offered IS 'Number of bookings that are offered other places.';
COMMENT ON COLUMN show_moves.refunded IS 'Number of bookings without a place.';
COMMENT ON COLUMN show_moves.answer_until IS 'Deadline of the offers.';

CREATE TABLE moved_bookings (
    move_id      uuid NOT NULL REFERENCES show_moves,
    booking_id   uuid NOT NULL REFERENCES bookings,
    state        text NOT NULL CHECK (state IN ('same', 'offered', 'taken', 'declined', 'lapsed')),
    before       text[] NOT NULL,
    after        text[] NOT NULL,
    answer_until timestamptz,
    answered_at  timestamptz,
    mailed_at    timestamptz,
    mail_tries   integer NOT NULL DEFAULT 0,
    mail_after   timestamptz NOT NULL,
    PRIMARY KEY (move_id, booking_id),
    CHECK ((state = 'same') = (answer_until IS NULL)),
    CHECK ((state IN ('same', 'offered')) = (answered_at IS NULL))
);
CREATE UNIQUE INDEX moved_bookings_one_offer ON moved_bookings (booking_id) WHERE state = 'offered';
CREATE INDEX moved_bookings_due ON moved_bookings (answer_until) WHERE state = 'offered';
CREATE INDEX moved_bookings_by_booking ON moved_bookings (booking_id);
CREATE INDEX moved_bookings_to_mail ON moved_bookings (mail_after) WHERE mailed_at IS NULL;
COMMENT ON TABLE moved_bookings IS 'The effect of a relocation on a booking; mails are sent from it.';
COMMENT ON COLUMN moved_bookings.state IS 'offered: it has other places, reserved until the buyer declines or the offer expires.';
COMMENT ON COLUMN moved_bookings.before IS 'Labels of its places on the first screen.';
COMMENT ON COLUMN moved_bookings.after IS 'Labels of its places on the second screen.';

CREATE TABLE moved_rooms (
    show_id uuid PRIMARY KEY REFERENCES shows,
    labels  text[] NOT NULL
);
COMMENT ON TABLE moved_rooms IS 'The seat labels of a relocated show.';
COMMENT ON COLUMN moved_rooms.labels IS 'In the order of seat numbers.';

-- True if a booking has a seat or area whose label differs from the show's present layout. For refuse_called_off in
-- 0006_selling.sql.
CREATE FUNCTION names_a_room_before(booking uuid, of_show uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM booking_seats seat JOIN moved_rooms room ON room.show_id = of_show
                   WHERE seat.booking_id = booking AND room.labels[seat.seat_no + 1] IS DISTINCT FROM seat.label)
        OR EXISTS (SELECT 1 FROM booking_places place
                   LEFT JOIN area_stock stock ON stock.show_id = of_show AND stock.area_no = place.area_no
                   WHERE place.booking_id = booking AND stock.name IS DISTINCT FROM place.name)
$$;

-- Tills.

CREATE TABLE day_closes (
    theatre_id text NOT NULL REFERENCES theatres,
    number     integer NOT NULL CHECK (number >= 1),
    closed_by  uuid NOT NULL REFERENCES accounts,
    closed_at  timestamptz NOT NULL,
    reason     text NOT NULL,
    PRIMARY KEY (theatre_id, number)
);
COMMENT ON TABLE day_closes IS 'A business day of a theatre''s tills, closed by a manager.';
COMMENT ON COLUMN day_closes.number IS 'Consecutive within the theatre.';

CREATE TABLE tills (
    id             uuid PRIMARY KEY,
    theatre_id     text NOT NULL REFERENCES theatres,
    account_id     uuid NOT NULL REFERENCES accounts,
    currency       char(3) NOT NULL,
    opened_at      timestamptz NOT NULL,
    closed_at      timestamptz,
    expected_minor bigint,
    counted_minor  bigint CHECK (counted_minor >= 0),
    counted_by     uuid REFERENCES accounts,
    counted_why    text,
    day_close      integer,
    FOREIGN KEY (theatre_id, day_close) REFERENCES day_closes,
    CHECK ((closed_at IS NULL) = (counted_minor IS NULL) AND (closed_at IS NULL) = (expected_minor IS NULL)),
    CHECK (day_close IS NULL OR closed_at IS NOT NULL),
    CONSTRAINT tills_counted_for CHECK (
        (counted_by IS NULL) = (counted_why IS NULL) AND (counted_by IS NULL OR closed_at IS NOT NULL)
    )
);
CREATE UNIQUE INDEX tills_one_open ON tills (theatre_id, account_id) WHERE closed_at IS NULL;
CREATE INDEX tills_of_the_day ON tills (theatre_id) WHERE day_close IS NULL;
-- A seller's last till: its page says if another person counted it.
CREATE INDEX tills_of_a_person ON tills (theatre_id, account_id, opened_at);
COMMENT ON TABLE tills IS 'The cash drawer of a seller in a theatre, from its float to its cash-up.';
COMMENT ON COLUMN tills.expected_minor IS 'Cash that should be in it at cash-up, minor units.';
COMMENT ON COLUMN tills.counted_minor IS 'Cash counted at cash-up, minor units.';
COMMENT ON COLUMN tills.counted_by IS 'The person who counted it in place of the seller; null: the seller.';
COMMENT ON COLUMN tills.counted_why IS 'The reason for counting it in place of the seller.';
COMMENT ON COLUMN tills.day_close IS 'day_closes.number; null: in the current day.';

-- A till is counted once and belongs to one day; the count does not change.
CREATE FUNCTION refuse_till_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.theatre_id <> OLD.theatre_id OR NEW.account_id <> OLD.account_id OR NEW.currency <> OLD.currency
       OR NEW.opened_at <> OLD.opened_at
       OR (OLD.closed_at IS NOT NULL
           AND (NEW.closed_at, NEW.expected_minor, NEW.counted_minor, NEW.counted_by, NEW.counted_why)
               IS DISTINCT FROM (OLD.closed_at, OLD.expected_minor, OLD.counted_minor, OLD.counted_by, OLD.counted_why))
       OR (OLD.day_close IS NOT NULL AND NEW.day_close IS DISTINCT FROM OLD.day_close) THEN
        RAISE EXCEPTION 'till % is not to be changed', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER tills_closed_once BEFORE UPDATE ON tills FOR EACH ROW EXECUTE FUNCTION refuse_till_changes();

CREATE TABLE till_rows (
    till_id      uuid NOT NULL REFERENCES tills,
    number       integer NOT NULL CHECK (number >= 1),
    kind         text NOT NULL CHECK (kind IN ('float', 'sale', 'refund', 'exchange', 'drop')),
    means        text NOT NULL CHECK (means IN ('cash', 'card', 'free')),
    amount_minor bigint NOT NULL,
    booking_id   uuid REFERENCES bookings,
    actor        uuid NOT NULL REFERENCES accounts,
    reason       text NOT NULL,
    at           timestamptz NOT NULL,
    PRIMARY KEY (till_id, number),
    CHECK (CASE kind WHEN 'refund' THEN amount_minor <= 0 WHEN 'drop' THEN amount_minor < 0
                     WHEN 'exchange' THEN true ELSE amount_minor >= 0 END),
    CHECK ((kind IN ('sale', 'refund', 'exchange')) = (booking_id IS NOT NULL)),
    CHECK (means = 'cash' OR kind IN ('sale', 'refund', 'exchange')),
    CHECK (means <> 'free' OR amount_minor = 0)
);
CREATE UNIQUE INDEX till_rows_one_float ON till_rows (till_id) WHERE kind = 'float';
CREATE UNIQUE INDEX till_rows_one_sale ON till_rows (booking_id) WHERE kind = 'sale';
CREATE INDEX till_rows_by_booking ON till_rows (booking_id);
CREATE TRIGGER till_rows_immutable BEFORE UPDATE OR DELETE ON till_rows FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER till_rows_kept BEFORE TRUNCATE ON till_rows FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE till_rows IS 'A row of a till''s ledger; append-only. The expected cash is the sum of the rows with cash.';
COMMENT ON COLUMN till_rows.amount_minor IS 'Minor units; negative: paid out.';

CREATE FUNCTION refuse_closed_till() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM tills WHERE id = NEW.till_id AND closed_at IS NOT NULL) THEN
        RAISE EXCEPTION 'till % was counted already', NEW.till_id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER till_rows_while_open BEFORE INSERT ON till_rows FOR EACH ROW EXECUTE FUNCTION refuse_closed_till();

-- The door.

CREATE TABLE door_admissions (
    id          uuid PRIMARY KEY,
    ticket_code text NOT NULL,
    theatre_id  text NOT NULL REFERENCES theatres,
    show_id     uuid NOT NULL REFERENCES shows,
    scan_id     uuid NOT NULL,
    device      text NOT NULL,
    at          timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL,
    undone_at   timestamptz,
    undone_by   uuid REFERENCES accounts,
    CHECK ((undone_at IS NULL) = (undone_by IS NULL))
);
-- A ticket admits once.
CREATE UNIQUE INDEX door_admissions_once ON door_admissions (ticket_code) WHERE undone_at IS NULL;
CREATE INDEX door_admissions_by_show ON door_admissions (show_id) WHERE undone_at IS NULL;
CREATE INDEX door_admissions_by_scan ON door_admissions (scan_id);
COMMENT ON TABLE door_admissions IS 'An admission with a ticket; an undone one keeps its row.';
COMMENT ON COLUMN door_admissions.ticket_code IS 'tickets.code or place_tickets.code.';
COMMENT ON COLUMN door_admissions.scan_id IS 'The device''s id of the scan.';
COMMENT ON COLUMN door_admissions.device IS 'Name of the device, for people.';
COMMENT ON COLUMN door_admissions.at IS 'Time of the scan by the server''s clock.';

CREATE TABLE door_scans (
    theatre_id  text NOT NULL REFERENCES theatres,
    scan_id     uuid NOT NULL,
    code        text NOT NULL CHECK (length(code) <= 26),
    show_id     uuid NOT NULL REFERENCES shows,
    device_id   uuid NOT NULL,
    device      text NOT NULL,
    account_id  uuid NOT NULL REFERENCES accounts,
    at          timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL,
    offline     boolean NOT NULL,
    let_in      boolean NOT NULL,
    outcome     text NOT NULL CHECK (outcome IN ('admitted', 'already_used', 'other_show', 'not_valid', 'unknown',
                                                 'forged', 'conflict')),
    PRIMARY KEY (theatre_id, scan_id, code),
    CHECK (let_in = (outcome IN ('admitted', 'conflict')))
);
CREATE INDEX door_scans_by_show ON door_scans (show_id, recorded_at);
COMMENT ON TABLE door_scans IS 'A code of a scan at the door, with its outcome.';
COMMENT ON COLUMN door_scans.code IS 'As read; no such ticket need exist.';
COMMENT ON COLUMN door_scans.show_id IS 'The show of the door.';
COMMENT ON COLUMN door_scans.account_id IS 'The account that sent the scan.';
COMMENT ON COLUMN door_scans.offline IS 'The device decided by its offline list and reported later.';
COMMENT ON COLUMN door_scans.let_in IS 'A person entered, rightly or not.';

CREATE TABLE door_conflicts (
    number       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    theatre_id   text NOT NULL REFERENCES theatres,
    show_id      uuid NOT NULL REFERENCES shows,
    ticket_code  text NOT NULL,
    seat         text,
    why          text NOT NULL CHECK (why IN ('already_used', 'other_show', 'not_valid', 'unknown', 'forged')),
    scan_id      uuid NOT NULL,
    device       text NOT NULL,
    at           timestamptz NOT NULL,
    first_scan   uuid,
    first_device text,
    first_at     timestamptz,
    recorded_at  timestamptz NOT NULL,
    UNIQUE (scan_id, ticket_code),
    CHECK ((why = 'already_used') = (first_scan IS NOT NULL))
);
CREATE INDEX door_conflicts_by_show ON door_conflicts (show_id, number DESC);
CREATE TRIGGER door_conflicts_immutable BEFORE UPDATE OR DELETE ON door_conflicts
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE door_conflicts IS 'An entry that the door should have refused; append-only.';
COMMENT ON COLUMN door_conflicts.seat IS 'Label of the seat; null: the code is no ticket.';
COMMENT ON COLUMN door_conflicts.scan_id IS 'The scan that should have been refused.';
COMMENT ON COLUMN door_conflicts.first_scan IS 'The earlier scan of the same code.';

-- Valid tickets of a show, people admitted, and people who entered wrongly.
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

-- Outgoing webhooks. Triggers write the messages in the transaction of the event, so that no code path can omit one.

CREATE TABLE webhook_endpoints (
    id         uuid PRIMARY KEY,
    theatre_id text NOT NULL REFERENCES theatres,
    url        text NOT NULL,
    events     text[] NOT NULL CHECK (cardinality(events) > 0 AND events <@ ARRAY[
                   'booking.confirmed', 'booking.cancelled', 'booking.refunded', 'show.cancelled', 'show.moved']),
    secret     text NOT NULL,
    old_secret text,
    old_until  timestamptz,
    state      text NOT NULL CHECK (state IN ('on', 'off', 'failed', 'removed')),
    failures   integer NOT NULL DEFAULT 0,
    notice     text,
    version    integer NOT NULL DEFAULT 1,
    made_at    timestamptz NOT NULL,
    CHECK ((old_secret IS NULL) = (old_until IS NULL)),
    CHECK ((state = 'failed') = (notice IS NOT NULL))
);
CREATE INDEX webhook_endpoints_by_theatre ON webhook_endpoints (theatre_id, made_at) WHERE state <> 'removed';
CREATE TRIGGER webhook_endpoints_version BEFORE UPDATE OF state, secret, old_secret ON webhook_endpoints
    FOR EACH ROW EXECUTE FUNCTION refuse_skipped_version();
COMMENT ON TABLE webhook_endpoints IS 'An endpoint of another system that receives a theatre''s events.';
COMMENT ON COLUMN webhook_endpoints.secret IS 'Signs messages, so it cannot be stored as a hash.';
COMMENT ON COLUMN webhook_endpoints.old_secret IS 'Signs as well, until old_until.';
COMMENT ON COLUMN webhook_endpoints.failures IS 'Consecutive failed deliveries.';
COMMENT ON COLUMN webhook_endpoints.notice IS 'The reason for which the server switched it off.';
COMMENT ON COLUMN webhook_endpoints.version IS 'Every write of its state or secrets repeats it.';

CREATE TABLE webhook_messages (
    id          uuid PRIMARY KEY,
    theatre_id  text NOT NULL,
    event       text NOT NULL,
    subject     text NOT NULL,
    body        text NOT NULL,
    happened_at timestamptz NOT NULL
);
CREATE INDEX webhook_messages_by_age ON webhook_messages (happened_at);
COMMENT ON TABLE webhook_messages IS 'A message about an event, one for all endpoints; it never changes and names no person.';
COMMENT ON COLUMN webhook_messages.subject IS 'A booking''s reference or a show''s id, for people.';
COMMENT ON COLUMN webhook_messages.body IS 'JSON, byte for byte as signed and sent.';

-- No foreign keys: their checks would lock the endpoint's row, which every sale shares. Messages are deleted only with their
-- deliveries, and endpoints never. The fill factor leaves room for two more versions of each delivery.
CREATE TABLE webhook_deliveries (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message_id   uuid NOT NULL,
    endpoint_id  uuid NOT NULL,
    state        text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'failed')),
    tries        integer NOT NULL DEFAULT 0,
    run_after    timestamptz NOT NULL,
    tried_at     timestamptz,
    last_status  integer,
    last_trouble text
) WITH (fillfactor = 70);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, run_after) WHERE state = 'waiting';
CREATE INDEX webhook_deliveries_by_endpoint ON webhook_deliveries (endpoint_id, id DESC);
CREATE INDEX webhook_deliveries_by_message ON webhook_deliveries (message_id);
COMMENT ON TABLE webhook_deliveries IS 'The delivery of a message to an endpoint.';
COMMENT ON COLUMN webhook_deliveries.run_after IS 'Time of the next attempt; a lease while a replica sends it.';
COMMENT ON COLUMN webhook_deliveries.last_status IS 'HTTP status of the last attempt; null: no response.';
COMMENT ON COLUMN webhook_deliveries.last_trouble IS 'Error of the last attempt.';

-- Writes a message and its deliveries, if an endpoint subscribes to the event.
CREATE FUNCTION tell_endpoints(of_theatre text, of_event text, about text, facts jsonb, at timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    message uuid := gen_random_uuid();
BEGIN
    IF NOT EXISTS (SELECT 1 FROM webhook_endpoints
                   WHERE theatre_id = of_theatre AND state IN ('on', 'failed') AND of_event = ANY (events)) THEN
        RETURN;
    END IF;
    INSERT INTO webhook_messages (id, theatre_id, event, subject, body, happened_at)
    VALUES (message, of_theatre, of_event, about,
            (jsonb_build_object('id', message, 'event', of_event, 'theatre', of_theatre,
                                'happened_at', to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) || facts)::text,
            at);
    INSERT INTO webhook_deliveries (message_id, endpoint_id, run_after)
    SELECT message, id, at FROM webhook_endpoints
    WHERE theatre_id = of_theatre AND state IN ('on', 'failed') AND of_event = ANY (events)
    ORDER BY id;
END $$;

-- Every transition of a booking is a row of booking_events, so none is missed here. Without an endpoint it costs one query
-- per statement. The planner settings make it look rows up by key even if a connection planned it on small tables: a
-- connection keeps that plan for hours of sales.
CREATE FUNCTION tell_booking_moves() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    moved record;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM webhook_endpoints WHERE state IN ('on', 'failed')) THEN
        RETURN NULL;
    END IF;
    FOR moved IN
        SELECT CASE WHEN event.to_state = 'CONFIRMED' AND event.event NOT LIKE 'part_%' THEN 'booking.confirmed'
                    ELSE 'booking.cancelled' END AS event,
               screen.theatre_id, booking.id, booking.reference, booking.show_id, booking.total_minor,
               booking.currency::text AS currency, event.number, event.to_state, event.at
        FROM fresh event
        JOIN bookings booking ON booking.id = event.booking_id
        JOIN shows show ON show.id = booking.show_id
        JOIN screens screen ON screen.id = show.screen_id
        WHERE (event.to_state = 'CONFIRMED' AND event.from_state IS DISTINCT FROM 'CONFIRMED')
           OR (event.to_state = 'CANCELLED' AND event.from_state = 'CONFIRMED')
           OR (event.event LIKE 'part_cancelled_by_%' AND event.from_state = 'CONFIRMED')
        ORDER BY booking.id, event.number
    LOOP
        PERFORM tell_endpoints(moved.theatre_id, moved.event, moved.reference, jsonb_build_object('booking',
            jsonb_build_object('id', moved.id, 'reference', moved.reference, 'show', moved.show_id,
                'state', moved.to_state, 'version', moved.number,
                'total', jsonb_build_object('minor', moved.total_minor, 'currency', moved.currency))), moved.at);
    END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER booking_events_told AFTER INSERT ON booking_events
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION tell_booking_moves();

CREATE FUNCTION tell_refund() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    booked record;
BEGIN
    SELECT screen.theatre_id, booking.reference, booking.show_id, booking.state, booking.version,
           booking.currency::text AS currency INTO booked
    FROM bookings booking
    JOIN shows show ON show.id = booking.show_id
    JOIN screens screen ON screen.id = show.screen_id
    WHERE booking.id = NEW.booking_id;
    PERFORM tell_endpoints(booked.theatre_id, 'booking.refunded', booked.reference, jsonb_build_object(
        'booking', jsonb_build_object('id', NEW.booking_id, 'reference', booked.reference, 'show', booked.show_id,
            'state', booked.state, 'version', booked.version),
        'refund', jsonb_build_object('number', NEW.number,
            'amount', jsonb_build_object('minor', NEW.amount_minor, 'currency', booked.currency),
            'fee', jsonb_build_object('minor', NEW.fee_minor, 'currency', booked.currency))), NEW.settled_at);
    RETURN NULL;
END $$;
CREATE TRIGGER refunds_told AFTER UPDATE OF state ON refunds FOR EACH ROW
    WHEN (OLD.state = 'requested' AND NEW.state = 'settled') EXECUTE FUNCTION tell_refund();

CREATE FUNCTION tell_called_off() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    of_theatre text;
BEGIN
    SELECT screen.theatre_id INTO of_theatre
    FROM shows show JOIN screens screen ON screen.id = show.screen_id WHERE show.id = NEW.show_id;
    PERFORM tell_endpoints(of_theatre, 'show.cancelled', NEW.show_id::text,
        jsonb_build_object('show', jsonb_build_object('id', NEW.show_id, 'reason', NEW.reason)), NEW.requested_at);
    RETURN NULL;
END $$;
CREATE TRIGGER show_cancellations_told AFTER INSERT ON show_cancellations
    FOR EACH ROW EXECUTE FUNCTION tell_called_off();

CREATE FUNCTION tell_moved() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    of_theatre text;
BEGIN
    SELECT theatre_id INTO of_theatre FROM screens WHERE id = NEW.to_screen;
    PERFORM tell_endpoints(of_theatre, 'show.moved', NEW.show_id::text, jsonb_build_object('show', jsonb_build_object(
        'id', NEW.show_id, 'from_screen', NEW.from_screen, 'to_screen', NEW.to_screen, 'reason', NEW.reason,
        'same', NEW.same, 'offered', NEW.offered, 'refunded', NEW.refunded)), NEW.carried_at);
    RETURN NULL;
END $$;
CREATE TRIGGER show_moves_told AFTER UPDATE OF state ON show_moves FOR EACH ROW
    WHEN (OLD.state = 'closing' AND NEW.state = 'carried') EXECUTE FUNCTION tell_moved();
