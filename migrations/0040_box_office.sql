-- The box office: what is sold at the counter, tills with every coin in them, house seats with their reasons, and the
-- PINs of managers.

-- Where a booking was made.
ALTER TABLE bookings ADD COLUMN channel text NOT NULL DEFAULT 'online' CHECK (channel IN ('online', 'box_office'));

-- A day of a theatre's tills, closed by a manager; numbered one after the other.
CREATE TABLE day_closes (
    theatre_id text NOT NULL REFERENCES theatres,
    number     integer NOT NULL CHECK (number >= 1),
    closed_by  uuid NOT NULL REFERENCES accounts,
    closed_at  timestamptz NOT NULL,
    reason     text NOT NULL,
    PRIMARY KEY (theatre_id, number)
);

-- A person's drawer in a theatre, from its float to its cash-up.
CREATE TABLE tills (
    id             uuid PRIMARY KEY,
    theatre_id     text NOT NULL REFERENCES theatres,
    account_id     uuid NOT NULL REFERENCES accounts,
    currency       char(3) NOT NULL,
    opened_at      timestamptz NOT NULL,
    closed_at      timestamptz,
    expected_minor bigint,                           -- cash that should have been in it
    counted_minor  bigint CHECK (counted_minor >= 0),
    day_close      integer,
    FOREIGN KEY (theatre_id, day_close) REFERENCES day_closes,
    CHECK ((closed_at IS NULL) = (counted_minor IS NULL) AND (closed_at IS NULL) = (expected_minor IS NULL)),
    CHECK (day_close IS NULL OR closed_at IS NOT NULL)
);
CREATE UNIQUE INDEX tills_one_open ON tills (theatre_id, account_id) WHERE closed_at IS NULL;
CREATE INDEX tills_of_the_day ON tills (theatre_id) WHERE day_close IS NULL;

-- A till is counted once and goes into one day; what was counted stays.
CREATE FUNCTION refuse_till_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.theatre_id <> OLD.theatre_id OR NEW.account_id <> OLD.account_id OR NEW.currency <> OLD.currency
       OR NEW.opened_at <> OLD.opened_at
       OR (OLD.closed_at IS NOT NULL AND (NEW.closed_at, NEW.expected_minor, NEW.counted_minor)
               IS DISTINCT FROM (OLD.closed_at, OLD.expected_minor, OLD.counted_minor))
       OR (OLD.day_close IS NOT NULL AND NEW.day_close IS DISTINCT FROM OLD.day_close) THEN
        RAISE EXCEPTION 'till % is not to be changed', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER tills_closed_once BEFORE UPDATE ON tills FOR EACH ROW EXECUTE FUNCTION refuse_till_changes();

-- The ledger: what came into a till and what went out of it, in minor units. Rows are added to an open till and never
-- touched again. The cash that is in it is the sum of its rows of cash.
CREATE TABLE till_rows (
    till_id      uuid NOT NULL REFERENCES tills,
    number       integer NOT NULL CHECK (number >= 1),
    kind         text NOT NULL CHECK (kind IN ('float', 'sale', 'refund', 'exchange', 'drop')),
    means        text NOT NULL CHECK (means IN ('cash', 'card', 'free')),
    amount_minor bigint NOT NULL,                    -- below zero: it went out
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

CREATE FUNCTION refuse_closed_till() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM tills WHERE id = NEW.till_id AND closed_at IS NOT NULL) THEN
        RAISE EXCEPTION 'till % was counted already', NEW.till_id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER till_rows_while_open BEFORE INSERT ON till_rows FOR EACH ROW EXECUTE FUNCTION refuse_closed_till();

-- Why the house keeps a seat, beside shows.blocked, which says that it does.
CREATE TABLE house_seats (
    show_id uuid NOT NULL REFERENCES shows,
    seat_no integer NOT NULL CHECK (seat_no >= 0),
    reason  text NOT NULL,
    kept_by uuid NOT NULL REFERENCES accounts,
    kept_at timestamptz NOT NULL,
    PRIMARY KEY (show_id, seat_no)
);

-- Seats held for somebody at the telephone, under their name. The lock store holds them; this is whose they are.
CREATE TABLE caller_holds (
    hold_id    uuid PRIMARY KEY,
    theatre_id text NOT NULL REFERENCES theatres,
    show_id    uuid NOT NULL REFERENCES shows,
    owner      text NOT NULL,                        -- whose the lock store says it is
    name       text NOT NULL,
    seats      integer[] NOT NULL CHECK (cardinality(seats) BETWEEN 1 AND 10),
    held_by    uuid NOT NULL REFERENCES accounts,
    held_at    timestamptz NOT NULL,
    until      timestamptz NOT NULL,
    ended_as   text CHECK (ended_as IN ('sold', 'released'))
);
CREATE INDEX caller_holds_open ON caller_holds (show_id, until) WHERE ended_as IS NULL;

-- A few digits by which a manager stands for a refund at somebody else's till. Hashed like passwords.
CREATE TABLE manager_pins (
    account_id uuid PRIMARY KEY REFERENCES accounts,
    pin_hash   text NOT NULL,
    set_at     timestamptz NOT NULL
);
