-- Whoever begins to pay is asked whether their show is on. The names of seats matter only in a show that was moved to
-- another screen: with both questions in one condition, every sale asked the second as well.
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
    IF show.times_moved > 0 THEN
        IF EXISTS (SELECT 1 FROM booking_seats seat JOIN moved_rooms room ON room.show_id = NEW.show_id
                   WHERE seat.booking_id = NEW.id AND room.labels[seat.seat_no + 1] IS DISTINCT FROM seat.label)
           OR EXISTS (SELECT 1 FROM booking_places place
                      LEFT JOIN area_stock stock ON stock.show_id = NEW.show_id AND stock.area_no = place.area_no
                      WHERE place.booking_id = NEW.id AND stock.name IS DISTINCT FROM place.name) THEN
            RAISE EXCEPTION 'booking % names places of the room its show was in before', NEW.id USING ERRCODE = 'RL002';
        END IF;
    END IF;
    RETURN NEW;
END $$;
