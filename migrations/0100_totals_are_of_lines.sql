-- The total of a booking is the sum of its lines: of its seats, and of its places by their number. Before a payment begins
-- the two may differ for a moment (CREATED, SEATS_LOCKED); from the step to PAYMENT_PENDING on they agree at the end of every
-- transaction, also of a booking that is over, in whatever order concurrent transactions write them.
--
-- Three ways lead there, and each is checked where it costs least:
--   1. A booking becomes PAYMENT_PENDING, by an update or as it is inserted: at the end of the statement, all bookings of
--      the statement in one query. Their lines are there by then: of an earlier statement, or of another part of the same
--      one.
--   2. Lines are added: likewise. No line is added to a booking that is paid for; those of new bookings find them in
--      CREATED or SEATS_LOCKED, or are part of the statement of 1.
--   3. A total changes, a line goes, or a line changes its price or number: when the transaction ends, row by row, for a
--      part that is cancelled does both in turn. It is rare. A show that moves renumbers its seats and changes no price,
--      which checks nothing.
-- A writer of lines of a booking that its transaction has not written waits for the booking's row: so the step to
-- PAYMENT_PENDING and a concurrent change of lines come one after the other, and the second sees the first.
-- The sum is written out three times: Postgres does not inline a function with sub-selects, and a call for each row is slower.
-- Rows of bookings and lines are looked up by their keys, however few there were when a connection planned this.

CREATE FUNCTION raise_that_total_is_not_of_lines(booking uuid, total bigint, lines numeric) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'booking % costs %, and its lines add up to %', booking, total, lines
        USING ERRCODE = 'check_violation', CONSTRAINT = 'booking_total_is_of_lines', DETAIL = booking::text;
END $$;

-- 1.
CREATE FUNCTION refuse_begun_beside_lines() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    wrong record;
BEGIN
    SELECT begun.* INTO wrong
    FROM (SELECT fresh.id, fresh.total_minor,
                 (SELECT coalesce(sum(price_minor), 0) FROM booking_seats WHERE booking_id = fresh.id)
                     + (SELECT coalesce(sum(price_minor * quantity), 0) FROM booking_places WHERE booking_id = fresh.id)
                     AS lines
          FROM fresh WHERE fresh.state = 'PAYMENT_PENDING') AS begun
    WHERE begun.lines <> begun.total_minor LIMIT 1;
    IF FOUND THEN
        PERFORM raise_that_total_is_not_of_lines(wrong.id, wrong.total_minor, wrong.lines);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER bookings_inserted_add_up AFTER INSERT ON bookings
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION refuse_begun_beside_lines();
CREATE TRIGGER bookings_begun_add_up AFTER UPDATE ON bookings
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION refuse_begun_beside_lines();

-- 2.
CREATE FUNCTION refuse_lines_beside_total() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    asked uuid[];
    wrong record;
BEGIN
    SELECT array_agg(id ORDER BY id) INTO asked FROM bookings
    WHERE id IN (SELECT booking_id FROM fresh)
      AND (state NOT IN ('CREATED', 'SEATS_LOCKED') OR xmin <> pg_current_xact_id()::xid);
    -- A checkout: its booking is the transaction's own, and no payment has begun.
    IF asked IS NULL THEN
        RETURN NULL;
    END IF;
    -- In a separate statement: the next one sees what was committed during the wait for the locks.
    PERFORM 1 FROM bookings WHERE id = ANY (asked) AND xmin <> pg_current_xact_id()::xid ORDER BY id FOR NO KEY UPDATE;
    SELECT paid.* INTO wrong
    FROM (SELECT booking.id, booking.total_minor,
                 (SELECT coalesce(sum(price_minor), 0) FROM booking_seats WHERE booking_id = booking.id)
                     + (SELECT coalesce(sum(price_minor * quantity), 0) FROM booking_places WHERE booking_id = booking.id)
                     AS lines
          FROM bookings booking WHERE booking.id = ANY (asked) AND booking.state NOT IN ('CREATED', 'SEATS_LOCKED')) AS paid
    WHERE paid.lines <> paid.total_minor LIMIT 1;
    IF FOUND THEN
        PERFORM raise_that_total_is_not_of_lines(wrong.id, wrong.total_minor, wrong.lines);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER booking_seats_add_up AFTER INSERT ON booking_seats
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION refuse_lines_beside_total();
CREATE TRIGGER booking_places_add_up AFTER INSERT ON booking_places
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION refuse_lines_beside_total();

-- 3.
CREATE FUNCTION refuse_total_beside_lines(booking uuid) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    wrong record;
BEGIN
    PERFORM 1 FROM bookings WHERE id = booking AND xmin <> pg_current_xact_id()::xid FOR NO KEY UPDATE;
    SELECT paid.* INTO wrong
    FROM (SELECT known.id, known.total_minor,
                 (SELECT coalesce(sum(price_minor), 0) FROM booking_seats WHERE booking_id = known.id)
                     + (SELECT coalesce(sum(price_minor * quantity), 0) FROM booking_places WHERE booking_id = known.id)
                     AS lines
          FROM bookings known WHERE known.id = booking AND known.state NOT IN ('CREATED', 'SEATS_LOCKED')) AS paid
    WHERE paid.lines <> paid.total_minor;
    IF FOUND THEN
        PERFORM raise_that_total_is_not_of_lines(wrong.id, wrong.total_minor, wrong.lines);
    END IF;
END $$;
CREATE FUNCTION refuse_changed_total() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM refuse_total_beside_lines(NEW.id);
    RETURN NULL;
END $$;
CREATE FUNCTION refuse_changed_lines() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM refuse_total_beside_lines(OLD.booking_id);
    IF TG_OP = 'UPDATE' AND NEW.booking_id <> OLD.booking_id THEN
        PERFORM refuse_total_beside_lines(NEW.booking_id);
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER bookings_total_adds_up AFTER UPDATE ON bookings DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.total_minor <> OLD.total_minor AND NEW.state NOT IN ('CREATED', 'SEATS_LOCKED'))
    EXECUTE FUNCTION refuse_changed_total();
-- Nothing of ours inserts a booking in a later state.
CREATE CONSTRAINT TRIGGER bookings_inserted_late_add_up AFTER INSERT ON bookings DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.state NOT IN ('CREATED', 'SEATS_LOCKED', 'PAYMENT_PENDING'))
    EXECUTE FUNCTION refuse_changed_total();
CREATE CONSTRAINT TRIGGER booking_seats_gone_add_up AFTER DELETE ON booking_seats DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    EXECUTE FUNCTION refuse_changed_lines();
CREATE CONSTRAINT TRIGGER booking_places_gone_add_up AFTER DELETE ON booking_places DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    EXECUTE FUNCTION refuse_changed_lines();
CREATE CONSTRAINT TRIGGER booking_seats_changed_add_up AFTER UPDATE ON booking_seats DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.price_minor <> OLD.price_minor OR NEW.booking_id <> OLD.booking_id)
    EXECUTE FUNCTION refuse_changed_lines();
CREATE CONSTRAINT TRIGGER booking_places_changed_add_up AFTER UPDATE ON booking_places DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.price_minor <> OLD.price_minor OR NEW.quantity <> OLD.quantity OR NEW.booking_id <> OLD.booking_id)
    EXECUTE FUNCTION refuse_changed_lines();
