-- Who checks out and pays in one request is written as PAYMENT_PENDING at once: then there is no step from SEATS_LOCKED to
-- be asked whether its show is on. It is asked of all new bookings of a statement together, when their seats are written
-- and their shows are locked by the foreign key, FOR KEY SHARE. An update of a show does not wait for that lock, nor that
-- lock for the update: a transaction that calls a show off, or moves it, locks it FOR UPDATE first, and again before it relies
-- on having seen every booking. Then this sees the mark, or that transaction sees the booking.
CREATE FUNCTION names_a_room_before(booking uuid, of_show uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM booking_seats seat JOIN moved_rooms room ON room.show_id = of_show
                   WHERE seat.booking_id = booking AND room.labels[seat.seat_no + 1] IS DISTINCT FROM seat.label)
        OR EXISTS (SELECT 1 FROM booking_places place
                   LEFT JOIN area_stock stock ON stock.show_id = of_show AND stock.area_no = place.area_no
                   WHERE place.booking_id = booking AND stock.name IS DISTINCT FROM place.name)
$$;

-- The show is told beside the words: those who pay for others at the same moment are not held up by it.
CREATE FUNCTION raise_that_show_is_off(show uuid, called_off boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF called_off THEN
        RAISE EXCEPTION 'show % was called off', show USING ERRCODE = 'RL001', DETAIL = show::text;
    END IF;
    RAISE EXCEPTION 'show % is being moved to another screen', show USING ERRCODE = 'RL002', DETAIL = show::text;
END $$;

CREATE FUNCTION raise_that_booking_is_of_a_room_before(booking uuid, show uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'booking % names places of the room its show was in before', booking
        USING ERRCODE = 'RL002', DETAIL = show::text;
END $$;

CREATE OR REPLACE FUNCTION refuse_called_off() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    show record;
BEGIN
    SELECT called_off, is_moving, times_moved INTO show FROM shows WHERE id = NEW.show_id;
    IF show.called_off OR show.is_moving THEN
        PERFORM raise_that_show_is_off(NEW.show_id, show.called_off);
    END IF;
    IF show.times_moved > 0 AND names_a_room_before(NEW.id, NEW.show_id) THEN
        PERFORM raise_that_booking_is_of_a_room_before(NEW.id, NEW.show_id);
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION refuse_begun_in_shows_that_are_off() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    show record;
    booking uuid;
BEGIN
    FOR show IN SELECT id, called_off, is_moving FROM shows
                WHERE id IN (SELECT fresh.show_id FROM fresh WHERE fresh.state = 'PAYMENT_PENDING')
                  AND (called_off OR is_moving OR times_moved > 0) LOOP
        IF show.called_off OR show.is_moving THEN
            PERFORM raise_that_show_is_off(show.id, show.called_off);
        END IF;
        SELECT fresh.id INTO booking FROM fresh
        WHERE fresh.state = 'PAYMENT_PENDING' AND fresh.show_id = show.id AND names_a_room_before(fresh.id, show.id) LIMIT 1;
        IF FOUND THEN
            PERFORM raise_that_booking_is_of_a_room_before(booking, show.id);
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER bookings_begun_in_shows_that_are_on AFTER INSERT ON bookings
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION refuse_begun_in_shows_that_are_off();
