-- Cancelling, refunds in parts, whole shows called off, and money that comes too late.

-- Money that goes back, a row a refund: 0 is of all that was left, from 1 of single seats. What a refund
-- was for is its amount and the fee that was kept.
CREATE TABLE refunds (
    booking_id   uuid NOT NULL REFERENCES bookings,
    number       integer NOT NULL CHECK (number >= 0),
    amount_minor bigint NOT NULL CHECK (amount_minor >= 0),
    fee_minor    bigint NOT NULL CHECK (fee_minor >= 0),
    state        text NOT NULL CHECK (state IN ('requested', 'settled')),
    requested_at timestamptz NOT NULL,
    settled_at   timestamptz,
    PRIMARY KEY (booking_id, number),
    CHECK ((state = 'settled') = (settled_at IS NOT NULL))
);

-- Seats that left a booking which kept others, as they were sold.
CREATE TABLE returned_seats (
    booking_id  uuid NOT NULL,
    number      integer NOT NULL CHECK (number >= 1),
    seat_no     integer NOT NULL,
    label       text NOT NULL,
    category    text NOT NULL,
    price_minor bigint NOT NULL CHECK (price_minor >= 0),
    PRIMARY KEY (booking_id, seat_no),
    FOREIGN KEY (booking_id, number) REFERENCES refunds
);

ALTER TABLE payments
    -- What the gateway took, where it is not what it was asked for.
    ADD COLUMN charged_minor bigint,
    -- The booking this money pays for instead, because it came too late for its own.
    ADD COLUMN moved_to uuid UNIQUE REFERENCES bookings;

-- Refunds and fees never exceed the charge, and what was charged is never changed once money went back.
CREATE FUNCTION refuse_refunds_above_charge() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    charged bigint;
    others  bigint;
BEGIN
    -- Two refunds of one booking queue up here.
    SELECT CASE WHEN moved_to IS NULL THEN coalesce(charged_minor, amount_minor) ELSE 0 END INTO charged
      FROM payments WHERE booking_id = NEW.booking_id FOR UPDATE;
    SELECT coalesce(sum(amount_minor + fee_minor), 0) INTO others
      FROM refunds WHERE booking_id = NEW.booking_id AND number <> NEW.number;
    IF coalesce(charged, 0) < others + NEW.amount_minor + NEW.fee_minor THEN
        RAISE EXCEPTION 'refunds of booking % would be % of a charge of %', NEW.booking_id,
            others + NEW.amount_minor + NEW.fee_minor, coalesce(charged, 0) USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER refunds_within_charge BEFORE INSERT OR UPDATE OF amount_minor, fee_minor ON refunds
    FOR EACH ROW EXECUTE FUNCTION refuse_refunds_above_charge();

-- A refund that was settled stays settled, and none is forgotten.
CREATE FUNCTION refuse_refund_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR OLD.state = 'settled' OR NEW.amount_minor <> OLD.amount_minor OR NEW.fee_minor <> OLD.fee_minor THEN
        RAISE EXCEPTION 'refund % of booking % is not to be changed', OLD.number, OLD.booking_id
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER refunds_settle_once BEFORE UPDATE OR DELETE ON refunds
    FOR EACH ROW EXECUTE FUNCTION refuse_refund_changes();

INSERT INTO refunds (booking_id, number, amount_minor, fee_minor, state, requested_at, settled_at)
SELECT booking_id, 0, refund_minor, 0, refund_state, updated_at,
       CASE WHEN refund_state = 'settled' THEN updated_at END
  FROM payments WHERE refund_state IS NOT NULL AND refund_minor BETWEEN 0 AND amount_minor;

-- A ticket of a cancelled seat: its code stays known, and opens no door.
ALTER TABLE tickets ADD COLUMN revoked_at timestamptz;

-- What buyers said about money that comes too late; nothing said, no row: the same seats if they are free.
CREATE TABLE late_wishes (
    booking_id uuid PRIMARY KEY REFERENCES bookings,
    if_late    text NOT NULL CHECK (if_late IN ('refund', 'same_seats', 'same_or_better'))
);

ALTER TABLE bookings DROP CONSTRAINT bookings_money_check;
ALTER TABLE bookings ADD CONSTRAINT bookings_money_check
    CHECK (money IN ('NONE', 'PENDING', 'PAID', 'FAILED', 'REFUNDING', 'REFUNDED', 'MOVED'));

ALTER TABLE outbox DROP CONSTRAINT outbox_effect_check;
ALTER TABLE outbox ADD CONSTRAINT outbox_effect_check
    CHECK (effect IN ('charge', 'void_payment', 'refund', 'refund_part', 'mark_booked', 'release_seats',
                      'release_part', 'send_ticket', 'send_notice', 'place_late'));
-- Which refund it is about.
ALTER TABLE outbox ADD COLUMN refund_number integer NOT NULL DEFAULT 0;
CREATE INDEX outbox_parked ON outbox (id) WHERE parked_why IS NOT NULL;

-- Shows that will not take place. Set first; then nothing more is sold, and what was sold is undone.
ALTER TABLE shows ADD COLUMN called_off boolean NOT NULL DEFAULT false;
CREATE TABLE show_cancellations (
    show_id           uuid PRIMARY KEY REFERENCES shows,
    reason            text NOT NULL,
    requested_at      timestamptz NOT NULL,
    holds_released_at timestamptz,                   -- nobody holds a seat of it in the lock store any more
    cancelled         integer NOT NULL DEFAULT 0,    -- bookings undone so far
    finished_at       timestamptz
);
CREATE INDEX show_cancellations_recent ON show_cancellations (requested_at);
CREATE INDEX show_cancellations_open ON show_cancellations (show_id) WHERE finished_at IS NULL;
CREATE INDEX bookings_sold_by_show ON bookings (show_id) WHERE state = 'CONFIRMED';

-- Nobody begins to pay for a show that was called off, whatever a server still believes.
CREATE FUNCTION refuse_called_off() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM shows WHERE id = NEW.show_id AND called_off) THEN
        RAISE EXCEPTION 'show % was called off', NEW.show_id USING ERRCODE = 'RL001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER bookings_of_shows_that_are_on BEFORE UPDATE ON bookings FOR EACH ROW
    WHEN (OLD.state = 'SEATS_LOCKED' AND NEW.state = 'PAYMENT_PENDING') EXECUTE FUNCTION refuse_called_off();
