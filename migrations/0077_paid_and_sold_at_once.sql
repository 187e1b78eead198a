-- A booking that is paid for in time is sold in the same transaction. Both steps may be written by one update, which
-- then counts two versions; the story of the booking (booking_events) has both. Every other move stays one step.
CREATE OR REPLACE FUNCTION refuse_other_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state = 'PAYMENT_PENDING' AND NEW.state = 'CONFIRMED' AND NEW.version = OLD.version + 2 THEN
        RETURN NEW;
    END IF;
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
