-- A show that is moved to another screen of its theatre (docs/decisions/0042).

ALTER TABLE shows
    -- From an organiser's word until every seat is numbered along the other room: nobody begins to pay.
    ADD COLUMN is_moving boolean NOT NULL DEFAULT false,
    -- How often it was moved.
    ADD COLUMN times_moved smallint NOT NULL DEFAULT 0 CHECK (times_moved BETWEEN 0 AND 20);

CREATE TABLE show_moves (
    id           uuid PRIMARY KEY,
    show_id      uuid NOT NULL REFERENCES shows,
    from_screen  text NOT NULL REFERENCES screens,
    to_screen    text NOT NULL REFERENCES screens,
    from_layout  uuid NOT NULL REFERENCES layouts,
    to_layout    uuid NOT NULL REFERENCES layouts,
    prices       jsonb NOT NULL,                     -- of the show there: category name -> minor units
    reason       text NOT NULL,                      -- as buyers are told
    sales        text NOT NULL CHECK (sales IN ('planned', 'open', 'paused')),   -- as it was sold, and is again
    -- closing: open payments end. carried: everybody sits there, and replicas learn it. dropped: it was called off.
    state        text NOT NULL CHECK (state IN ('closing', 'carried', 'done', 'dropped')),
    same         integer NOT NULL DEFAULT 0,         -- bookings with the very places they had
    offered      integer NOT NULL DEFAULT 0,         -- bookings that were offered others
    refunded     integer NOT NULL DEFAULT 0,         -- bookings there was no place for
    answer_until timestamptz,                        -- for those that were offered others
    requested_at timestamptz NOT NULL,
    carried_at   timestamptz,
    finished_at  timestamptz,
    CHECK ((state IN ('carried', 'done')) = (carried_at IS NOT NULL)),
    CHECK ((state IN ('done', 'dropped')) = (finished_at IS NOT NULL))
);
CREATE UNIQUE INDEX show_moves_one_at_a_time ON show_moves (show_id) WHERE state IN ('closing', 'carried');
CREATE INDEX show_moves_by_show ON show_moves (show_id, requested_at DESC);
CREATE INDEX show_moves_to ON show_moves (to_screen) WHERE state = 'closing';

-- What the move of its show meant for a booking. Mails are told from here.
CREATE TABLE moved_bookings (
    move_id      uuid NOT NULL REFERENCES show_moves,
    booking_id   uuid NOT NULL REFERENCES bookings,
    -- offered: it has other places, which are its own until somebody says no or the time is over.
    state        text NOT NULL CHECK (state IN ('same', 'offered', 'taken', 'declined', 'lapsed')),
    before       text[] NOT NULL,                    -- its places in the first room, for people
    after        text[] NOT NULL,                    -- and in the second
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

-- The names of the seats of a show that was moved, in their order.
CREATE TABLE moved_rooms (
    show_id uuid PRIMARY KEY REFERENCES shows,
    labels  text[] NOT NULL
);

-- Nobody begins to pay for a show that was called off or is being moved, whatever a server still believes; and in one
-- that was moved, nobody for a seat that has another name than they were told.
CREATE OR REPLACE FUNCTION refuse_called_off() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    show record;
BEGIN
    SELECT called_off, is_moving, times_moved INTO show FROM shows WHERE id = NEW.show_id;
    IF show.called_off THEN
        RAISE EXCEPTION 'show % was called off', NEW.show_id USING ERRCODE = 'RL001';
    END IF;
    IF show.is_moving THEN
        RAISE EXCEPTION 'show % is being moved to another screen', NEW.show_id USING ERRCODE = 'RL002';
    END IF;
    IF show.times_moved > 0 AND (
        EXISTS (SELECT 1 FROM booking_seats seat JOIN moved_rooms room ON room.show_id = NEW.show_id
                WHERE seat.booking_id = NEW.id AND room.labels[seat.seat_no + 1] IS DISTINCT FROM seat.label)
        OR EXISTS (SELECT 1 FROM booking_places place
                   LEFT JOIN area_stock stock ON stock.show_id = NEW.show_id AND stock.area_no = place.area_no
                   WHERE place.booking_id = NEW.id AND stock.name IS DISTINCT FROM place.name)
    ) THEN
        RAISE EXCEPTION 'booking % names places of the room its show was in before', NEW.id USING ERRCODE = 'RL002';
    END IF;
    RETURN NEW;
END $$;

-- Other systems may be told of it.
ALTER TABLE webhook_endpoints DROP CONSTRAINT webhook_endpoints_events_check;
ALTER TABLE webhook_endpoints ADD CONSTRAINT webhook_endpoints_events_check
    CHECK (cardinality(events) > 0 AND events <@ ARRAY[
        'booking.confirmed', 'booking.cancelled', 'booking.refunded', 'show.cancelled', 'show.moved']);

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
