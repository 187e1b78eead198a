-- What other systems of a theatre are told, and how that went.

CREATE TABLE webhook_endpoints (
    id         uuid PRIMARY KEY,
    theatre_id text NOT NULL REFERENCES theatres,
    url        text NOT NULL,
    events     text[] NOT NULL CHECK (cardinality(events) > 0 AND events <@ ARRAY[
                   'booking.confirmed', 'booking.cancelled', 'booking.refunded', 'show.cancelled']),
    secret     text NOT NULL,                        -- signs, so it cannot be a hash
    old_secret text,                                 -- signs as well…
    old_until  timestamptz,                          -- …until then
    state      text NOT NULL CHECK (state IN ('on', 'off', 'failed', 'removed')),
    failures   integer NOT NULL DEFAULT 0,           -- in a row
    notice     text,                                 -- why it was switched off by itself
    version    integer NOT NULL DEFAULT 1,
    made_at    timestamptz NOT NULL,
    CHECK ((old_secret IS NULL) = (old_until IS NULL)),
    CHECK ((state = 'failed') = (notice IS NOT NULL))
);
CREATE INDEX webhook_endpoints_by_theatre ON webhook_endpoints (theatre_id, made_at) WHERE state <> 'removed';
CREATE TRIGGER webhook_endpoints_version BEFORE UPDATE OF state, secret, old_secret ON webhook_endpoints
    FOR EACH ROW EXECUTE FUNCTION refuse_skipped_version();

-- What is told, in the words in which it is told: written in the transaction in which it happened, once for all
-- endpoints that listen, and never changed. Nobody's name is in it; whoever may know reads the booking.
CREATE TABLE webhook_messages (
    id          uuid PRIMARY KEY,
    theatre_id  text NOT NULL,
    event       text NOT NULL,
    subject     text NOT NULL,                       -- for people: a booking's reference, a show's id
    body        text NOT NULL,                       -- JSON, as its bytes are signed and sent
    happened_at timestamptz NOT NULL
);
CREATE INDEX webhook_messages_by_age ON webhook_messages (happened_at);

-- Without foreign keys: checking them, every sale would lock the one row of the endpoint, which all of them share.
-- Messages are deleted with their deliveries only, and endpoints never. Room is left in its pages, as a delivery is
-- written twice more.
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

-- Writes a message and its deliveries, where anybody listens.
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

-- Every move of a booking is a row of its story, whoever wrote it and however many at a time: so none can be
-- forgotten here. One look per statement while nobody listens at all. What moved is looked up by key, whatever the
-- planner knew of these tables when a connection first came here: it keeps that plan, and sells for hours with it.
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
