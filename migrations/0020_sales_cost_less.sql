-- A sale writes thirty rows. What guarded them row by row cost as much as writing them
-- (docs/decisions/0011-sales-are-committed-together.md).

-- Rows of a booking are written in the transaction that inserted or locked the booking, and bookings are
-- never deleted: asking for each of twenty-six rows whether its booking is there has one answer.
ALTER TABLE booking_seats DROP CONSTRAINT booking_seats_booking_id_fkey;
ALTER TABLE booking_events DROP CONSTRAINT booking_events_booking_id_fkey;
ALTER TABLE seat_claims DROP CONSTRAINT seat_claims_booking_id_fkey, DROP CONSTRAINT seat_claims_show_id_fkey;
ALTER TABLE payments DROP CONSTRAINT payments_booking_id_fkey;
ALTER TABLE tickets DROP CONSTRAINT tickets_booking_id_fkey;
ALTER TABLE outbox DROP CONSTRAINT outbox_booking_id_fkey;

-- The same table of moves (domain::booking::may_move; a test compares every pair), without a query for each.
CREATE OR REPLACE FUNCTION refuse_other_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state <> OLD.state AND (OLD.state || ' ' || NEW.state) NOT IN (
        'CREATED SEATS_LOCKED', 'CREATED EXPIRED',
        'SEATS_LOCKED PAYMENT_PENDING', 'SEATS_LOCKED EXPIRED', 'SEATS_LOCKED CANCELLED',
        'PAYMENT_PENDING PAYMENT_SUCCEEDED', 'PAYMENT_PENDING CANCELLED', 'PAYMENT_PENDING EXPIRED',
        'PAYMENT_SUCCEEDED CONFIRMED', 'PAYMENT_SUCCEEDED CANCELLED',
        'CONFIRMED CANCELLED'
    ) THEN
        RAISE EXCEPTION 'booking % may not move from % to %', OLD.id, OLD.state, NEW.state
            USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.version <> OLD.version + 1 THEN
        RAISE EXCEPTION 'booking % must step from version % to %', OLD.id, OLD.version, OLD.version + 1
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

-- Claims and payments are updated once, soon after they were written. With room beside them the new row
-- needs no new entries in the indexes.
ALTER TABLE seat_claims SET (fillfactor = 50);
ALTER TABLE payments SET (fillfactor = 50);
-- Nobody asks for the claims of a booking but by their show and seats.
DROP INDEX seat_claims_by_booking;
