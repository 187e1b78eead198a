-- Tables of `server/selling`: bookings with their lines, history, claims and money, the outbox, waiting lists, and e-mail
-- codes.
--
-- booking_seats, booking_events, seat_claims, payments, outbox and tickets have no foreign key to bookings. Their rows are
-- written in the transaction that inserted or locked the booking, and bookings are never deleted. A sale writes thirty
-- rows; a look-up of the booking for each costs as much as writing them (docs/decisions/0011).
--
-- Fill factors: a sale writes two more versions of its booking and one more of each claim and payment. With room on the
-- page they need no new index entries (HOT), as long as no index has a column that changes during the sale. Written per
-- sale to the log: 4.1 records instead of 7.4 for four claims, 1.0 instead of 1.5 for the booking.

-- Bookings.

CREATE TABLE bookings (
    id           uuid PRIMARY KEY,
    reference    text NOT NULL UNIQUE,
    show_id      uuid NOT NULL REFERENCES shows,
    owner        text NOT NULL,
    hold_id      uuid NOT NULL UNIQUE,
    fence        bigint NOT NULL,
    channel      text NOT NULL DEFAULT 'online' CHECK (channel IN ('online', 'box_office')),
    state        text NOT NULL CHECK (state IN ('CREATED', 'SEATS_LOCKED', 'PAYMENT_PENDING', 'PAYMENT_SUCCEEDED',
                                                'CONFIRMED', 'CANCELLED', 'EXPIRED')),
    -- Equal for all states of a sale in progress, so it may be in an index.
    is_open      boolean NOT NULL GENERATED ALWAYS AS
                     (state IN ('CREATED', 'SEATS_LOCKED', 'PAYMENT_PENDING', 'PAYMENT_SUCCEEDED')) STORED,
    money        text NOT NULL CHECK (money IN ('NONE', 'PENDING', 'PAID', 'FAILED', 'REFUNDING', 'REFUNDED', 'MOVED')),
    version      integer NOT NULL DEFAULT 1,
    total_minor  bigint NOT NULL CHECK (total_minor >= 0),
    currency     char(3) NOT NULL,
    buyer_name   text NOT NULL,
    buyer_email  text NOT NULL,
    holder_name  text NOT NULL,
    holder_email text NOT NULL,
    expires_at   timestamptz NOT NULL,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL
) WITH (fillfactor = 45);
CREATE INDEX bookings_by_owner ON bookings (owner, created_at DESC);
-- For the reconciler. Open bookings are never more than the seats on sale.
CREATE INDEX bookings_open ON bookings (created_at) WHERE is_open;
-- For cancelling a show, and for reports.
CREATE INDEX bookings_over_by_show ON bookings (show_id) WHERE NOT is_open;
-- Guests' bookings, for the account that proves their address.
CREATE INDEX bookings_by_buyer_email ON bookings (lower(buyer_email COLLATE "C"));
COMMENT ON TABLE bookings IS 'An order of a buyer; a state machine (domain::booking).';
COMMENT ON COLUMN bookings.reference IS 'Short code for people.';
COMMENT ON COLUMN bookings.owner IS 'The visitor, hashed; queries are keyed by (id, owner).';
COMMENT ON COLUMN bookings.hold_id IS 'The hold it was made from.';
COMMENT ON COLUMN bookings.fence IS 'Fencing token of the hold.';
COMMENT ON COLUMN bookings.money IS 'MOVED: a late payment pays for another booking.';
COMMENT ON COLUMN bookings.version IS 'Every write repeats it; each transition increments it.';
COMMENT ON COLUMN bookings.total_minor IS 'Sum of the lines, minor units.';
COMMENT ON COLUMN bookings.holder_name IS 'The person who gets the tickets.';
COMMENT ON COLUMN bookings.expires_at IS 'Deadline of an open booking.';

CREATE TABLE booking_moves (
    from_state text NOT NULL,
    to_state   text NOT NULL,
    PRIMARY KEY (from_state, to_state)
);
INSERT INTO booking_moves (from_state, to_state) VALUES
    ('CREATED', 'SEATS_LOCKED'),
    ('CREATED', 'EXPIRED'),
    ('SEATS_LOCKED', 'PAYMENT_PENDING'),
    ('SEATS_LOCKED', 'EXPIRED'),
    ('SEATS_LOCKED', 'CANCELLED'),
    ('PAYMENT_PENDING', 'PAYMENT_SUCCEEDED'),
    ('PAYMENT_PENDING', 'CANCELLED'),
    ('PAYMENT_PENDING', 'EXPIRED'),
    ('PAYMENT_SUCCEEDED', 'CONFIRMED'),
    ('PAYMENT_SUCCEEDED', 'CANCELLED'),
    ('CONFIRMED', 'CANCELLED');
COMMENT ON TABLE booking_moves IS 'An allowed transition of a booking, as in domain::booking::may_move, for reading.';

-- Repeats domain::booking::may_move; a test compares every pair. The transitions are part of the code, because a query
-- costs 47 µs per sale. A booking paid in time is sold in the same transaction: one update may make both transitions, and
-- then counts two versions. booking_events has both.
CREATE FUNCTION refuse_other_moves() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER bookings_move BEFORE UPDATE ON bookings FOR EACH ROW EXECUTE FUNCTION refuse_other_moves();

CREATE TABLE booking_seats (
    booking_id  uuid NOT NULL,
    seat_no     integer NOT NULL,
    label       text NOT NULL,
    category    text NOT NULL,
    price_minor bigint NOT NULL CHECK (price_minor >= 0),
    PRIMARY KEY (booking_id, seat_no)
);
COMMENT ON TABLE booking_seats IS 'A line of a booking: a seat with its price.';
COMMENT ON COLUMN booking_seats.seat_no IS 'Position in the show''s layout, from 0.';
COMMENT ON COLUMN booking_seats.price_minor IS 'Minor units.';

CREATE TABLE booking_places (
    booking_id  uuid NOT NULL REFERENCES bookings,
    area_no     smallint NOT NULL,
    quantity    integer NOT NULL CHECK (quantity > 0),
    name        text NOT NULL,
    category    text NOT NULL,
    price_minor bigint NOT NULL CHECK (price_minor >= 0),
    PRIMARY KEY (booking_id, area_no)
);
COMMENT ON TABLE booking_places IS 'A line of a booking: places in an area, with their price.';
COMMENT ON COLUMN booking_places.name IS 'Name of the area.';
COMMENT ON COLUMN booking_places.price_minor IS 'Of one place, minor units.';

CREATE TABLE booking_events (
    booking_id uuid NOT NULL,
    number     integer NOT NULL,
    event      text NOT NULL,
    from_state text,
    to_state   text NOT NULL,
    money      text NOT NULL,
    actor      text NOT NULL,
    reason     text NOT NULL,
    at         timestamptz NOT NULL,
    PRIMARY KEY (booking_id, number)
);
CREATE TRIGGER booking_events_immutable BEFORE UPDATE OR DELETE ON booking_events
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE booking_events IS 'A transition in the history of a booking; append-only.';
COMMENT ON COLUMN booking_events.number IS 'The booking''s version after the transition.';

-- Claims.

-- The primary key makes a second sale of a seat impossible, whatever the lock store answers. Four partitions by show:
-- vacuum, reindexing and copying handle a quarter of all seats ever sold at a time. Every statement names the show, so it
-- reads one partition. More partitions cost every sale more (docs/decisions/0051); one can be split later.
CREATE TABLE seat_claims (
    show_id    uuid NOT NULL,
    seat_no    integer NOT NULL,
    booking_id uuid NOT NULL,
    fence      bigint NOT NULL,
    state      text NOT NULL CHECK (state IN ('claimed', 'sold', 'released')),
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (show_id, seat_no)
) PARTITION BY HASH (show_id);
CREATE TABLE seat_claims_0 PARTITION OF seat_claims FOR VALUES WITH (MODULUS 4, REMAINDER 0) WITH (fillfactor = 45);
CREATE TABLE seat_claims_1 PARTITION OF seat_claims FOR VALUES WITH (MODULUS 4, REMAINDER 1) WITH (fillfactor = 45);
CREATE TABLE seat_claims_2 PARTITION OF seat_claims FOR VALUES WITH (MODULUS 4, REMAINDER 2) WITH (fillfactor = 45);
CREATE TABLE seat_claims_3 PARTITION OF seat_claims FOR VALUES WITH (MODULUS 4, REMAINDER 3) WITH (fillfactor = 45);
COMMENT ON TABLE seat_claims IS 'A claim: reserves a seat of a show for one booking.';
COMMENT ON COLUMN seat_claims.fence IS 'Fencing token of the hold; a claim replaces a released one with a lower fence only.';
COMMENT ON COLUMN seat_claims.expires_at IS 'Deadline of the booking''s payment.';

-- Where the planner does not know which partition a statement reads, it adds up the cost of all four, and compiles a list
-- of three hundred shows: 0.15 s for a query of 0.03 s. No statement of the server is long enough to gain from it.
DO $$
BEGIN
    EXECUTE format('ALTER DATABASE %I SET jit = off', current_database());
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'the owner of this database should run: ALTER DATABASE % SET jit = off', quote_ident(current_database());
END $$;

CREATE TABLE area_stock (
    show_id  uuid NOT NULL REFERENCES shows,
    area_no  smallint NOT NULL CHECK (area_no BETWEEN 0 AND 63),
    name     text NOT NULL,
    category text NOT NULL,
    capacity integer NOT NULL CHECK (capacity > 0),
    claimed  integer NOT NULL DEFAULT 0,
    sold     integer NOT NULL DEFAULT 0,
    version  bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (show_id, area_no),
    CHECK (claimed >= 0 AND sold >= 0 AND claimed + sold <= capacity)
);
CREATE TRIGGER area_stock_version BEFORE UPDATE ON area_stock FOR EACH ROW EXECUTE FUNCTION refuse_skipped_version();
COMMENT ON TABLE area_stock IS 'An area of a show: its capacity and the number of places taken.';
COMMENT ON COLUMN area_stock.category IS 'A name in shows.prices.';
COMMENT ON COLUMN area_stock.claimed IS 'Places that are being paid for.';
COMMENT ON COLUMN area_stock.version IS 'Every write repeats it.';

CREATE TABLE area_claims (
    booking_id uuid NOT NULL REFERENCES bookings,
    show_id    uuid NOT NULL,
    area_no    smallint NOT NULL,
    quantity   integer NOT NULL CHECK (quantity > 0),
    fence      bigint NOT NULL,
    state      text NOT NULL CHECK (state IN ('claimed', 'sold', 'released')),
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (booking_id, area_no),
    FOREIGN KEY (show_id, area_no) REFERENCES area_stock
);
CREATE INDEX area_claims_by_area ON area_claims (show_id, area_no, fence) WHERE state <> 'released';
COMMENT ON TABLE area_claims IS 'A claim on places of an area; those not released add up to area_stock.claimed and sold.';

-- Seats are numbered by position in the layout: under another layout, a claimed seat would be another seat or none.
CREATE FUNCTION refuse_other_room() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM seat_claims WHERE show_id = NEW.id AND state <> 'released') THEN
        RAISE EXCEPTION 'show % has seats that are sold; it keeps its room', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER shows_keep_their_room BEFORE UPDATE OF layout_id ON shows FOR EACH ROW
    WHEN (NEW.layout_id <> OLD.layout_id) EXECUTE FUNCTION refuse_other_room();

-- Payments.

CREATE TABLE payments (
    booking_id    uuid PRIMARY KEY,
    gateway       text NOT NULL,
    gateway_ref   text,
    pay_url       text,
    payment_token text,
    asks          smallint NOT NULL DEFAULT 1 CHECK (asks >= 0),
    state         text NOT NULL CHECK (state IN ('requested', 'pending', 'succeeded', 'failed', 'voided')),
    amount_minor  bigint NOT NULL,
    charged_minor bigint,
    currency      char(3) NOT NULL,
    moved_to      uuid UNIQUE REFERENCES bookings,
    refund_state  text CHECK (refund_state IN ('requested', 'settled')),
    refund_minor  bigint,
    updated_at    timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE payments IS 'The payment of a booking.';
COMMENT ON COLUMN payments.gateway_ref IS 'The gateway''s id of the payment, once it is known.';
COMMENT ON COLUMN payments.pay_url IS 'The gateway''s page for the payer, if it has one.';
COMMENT ON COLUMN payments.payment_token IS 'The buyer''s token for the gateway.';
COMMENT ON COLUMN payments.asks IS
    'Charge requests that may have reached the gateway; a request that was never sent is subtracted. '
    'A caller may switch the gateway only while its own request is the only one (decision 8).';
COMMENT ON COLUMN payments.amount_minor IS 'Requested amount, minor units.';
COMMENT ON COLUMN payments.charged_minor IS 'Charged amount where it differs from amount_minor, minor units.';
COMMENT ON COLUMN payments.moved_to IS 'The booking that this late payment pays for instead.';
COMMENT ON COLUMN payments.refund_state IS 'State of the latest refund; refunds has all of them.';
COMMENT ON COLUMN payments.refund_minor IS 'Amount of the latest refund, minor units.';

CREATE TABLE payment_switches (
    booking_id   uuid NOT NULL REFERENCES bookings,
    from_gateway text NOT NULL,
    to_gateway   text NOT NULL,
    why          text NOT NULL,
    at           timestamptz NOT NULL,
    settled_as   text CHECK (settled_as IN ('voided', 'never_asked', 'refunded')),
    settled_at   timestamptz,
    PRIMARY KEY (booking_id, from_gateway)
);
COMMENT ON TABLE payment_switches IS 'A change of a booking''s gateway before any charge; the first gateway is asked to void all the same.';
COMMENT ON COLUMN payment_switches.settled_as IS 'Outcome at the first gateway; null: not known yet.';

CREATE TABLE webhook_events (
    gateway     text NOT NULL,
    event_id    text NOT NULL,
    received_at timestamptz NOT NULL,
    outcome     text NOT NULL,
    PRIMARY KEY (gateway, event_id)
);
COMMENT ON TABLE webhook_events IS 'A webhook event of a gateway that was applied, so that a duplicate is not.';

CREATE TABLE payment_instruments (
    booking_id uuid PRIMARY KEY,
    show_id    uuid NOT NULL REFERENCES shows,
    instrument text NOT NULL CHECK (instrument ~ '^[0-9a-f]{64}$')
);
CREATE INDEX payment_instruments_by_show ON payment_instruments (show_id, instrument);
COMMENT ON TABLE payment_instruments IS 'The card that pays for a booking, for shows with a limit per card only; sales of other shows do not use it.';
COMMENT ON COLUMN payment_instruments.instrument IS 'Keyed digest of the gateway''s fingerprint: no card number, no token.';

CREATE TABLE declined_payments (
    booking_id uuid PRIMARY KEY REFERENCES bookings,
    owner      text NOT NULL,
    email      text NOT NULL,
    at         timestamptz NOT NULL,
    number     smallint NOT NULL DEFAULT 1 CHECK (number >= 1),
    kept_as    uuid UNIQUE,
    kept_until timestamptz,
    CONSTRAINT declined_payments_kept_until CHECK ((kept_as IS NULL) = (kept_until IS NULL))
);
CREATE INDEX declined_payments_by_owner ON declined_payments (owner, at);
CREATE INDEX declined_payments_by_email ON declined_payments (email, at);
CREATE INDEX declined_payments_by_age ON declined_payments (at);
COMMENT ON TABLE declined_payments IS 'A payment that a bank declined: many are a sign of fraud, and the hold continues for another card.';
COMMENT ON COLUMN declined_payments.email IS 'In lower case.';
COMMENT ON COLUMN declined_payments.number IS 'Number of the decline among those of its hold, from 1.';
COMMENT ON COLUMN declined_payments.kept_as IS 'Next id of the hold; null: the hold ended.';
COMMENT ON COLUMN declined_payments.kept_until IS 'Expiry of the hold under its next id.';

CREATE TABLE late_wishes (
    booking_id uuid PRIMARY KEY REFERENCES bookings,
    if_late    text NOT NULL CHECK (if_late IN ('refund', 'same_seats', 'same_or_better'))
);
COMMENT ON TABLE late_wishes IS 'The buyer''s preference for a late payment; without a row: same_seats.';

CREATE TABLE unknown_voids (
    booking_id uuid NOT NULL REFERENCES bookings,
    gateway    text NOT NULL,
    since      timestamptz NOT NULL,
    checks     smallint NOT NULL DEFAULT 0 CHECK (checks >= 0),
    check_at   timestamptz NOT NULL,
    PRIMARY KEY (booking_id, gateway)
);
CREATE INDEX unknown_voids_due ON unknown_voids (check_at);
COMMENT ON TABLE unknown_voids IS
    'A payment that its gateway did not know when it was voided: a charge in progress may still create it, '
    'so the void is repeated after a minute, ten minutes, an hour and a day.';
COMMENT ON COLUMN unknown_voids.checks IS 'Number of repeated voids.';
COMMENT ON COLUMN unknown_voids.check_at IS 'Time of the next void; a lease during a void.';

CREATE TABLE ledger_comparisons (
    gateway      text NOT NULL,
    day          date NOT NULL,
    planned_at   timestamptz NOT NULL,
    leased_until timestamptz NOT NULL,
    taken        integer NOT NULL DEFAULT 0 CHECK (taken >= 0),
    payments     bigint,
    finished_at  timestamptz,
    PRIMARY KEY (gateway, day),
    CHECK ((finished_at IS NULL) = (payments IS NULL))
);
CREATE INDEX ledger_comparisons_open ON ledger_comparisons (planned_at) WHERE finished_at IS NULL;
COMMENT ON TABLE ledger_comparisons IS 'The comparison of one day of a gateway''s ledger with payments.';
COMMENT ON COLUMN ledger_comparisons.day IS 'A day of UTC.';
COMMENT ON COLUMN ledger_comparisons.taken IS 'Fencing token of the lease.';
COMMENT ON COLUMN ledger_comparisons.payments IS 'Number of payments that the gateway listed.';

-- Refunds.

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
-- For reports: refunds by the day they reached their payers, and those that have not.
CREATE INDEX refunds_by_settlement ON refunds (settled_at) WHERE state = 'settled';
CREATE INDEX refunds_under_way ON refunds (booking_id) WHERE state = 'requested';
COMMENT ON TABLE refunds IS 'A refund of a booking, in whole or in part.';
COMMENT ON COLUMN refunds.number IS '0: of everything that was left. From 1: of single seats.';
COMMENT ON COLUMN refunds.amount_minor IS 'Returned to the payer, minor units.';
COMMENT ON COLUMN refunds.fee_minor IS 'Kept as a fee, minor units.';

-- Keeps the sum of refunds and fees within the charge.
CREATE FUNCTION refuse_refunds_above_charge() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    charged bigint;
    others  bigint;
BEGIN
    -- Concurrent refunds of one booking wait for each other here.
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

-- Keeps amounts, settled refunds and all rows as they are.
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
COMMENT ON TABLE returned_seats IS 'A seat that left a booking which kept others, as it was sold.';
COMMENT ON COLUMN returned_seats.number IS 'The refund of the seat.';
COMMENT ON COLUMN returned_seats.price_minor IS 'Minor units.';

CREATE TABLE refund_waits (
    booking_id uuid NOT NULL,
    number     integer NOT NULL,
    since      timestamptz NOT NULL,
    look_at    timestamptz NOT NULL,
    PRIMARY KEY (booking_id, number),
    FOREIGN KEY (booking_id, number) REFERENCES refunds
);
CREATE INDEX refund_waits_due ON refund_waits (look_at);
COMMENT ON TABLE refund_waits IS 'A refund that its gateway has accepted and not sent; a webhook settles it (decision 59).';
COMMENT ON COLUMN refund_waits.look_at IS 'Time at which the gateway is asked for its state, in case the webhook was lost.';

CREATE TABLE refund_failures (
    gateway    text NOT NULL,
    refund_ref text NOT NULL,
    booking_id uuid NOT NULL REFERENCES bookings,
    number     integer NOT NULL CHECK (number >= 0),
    why        text NOT NULL,
    told_at    timestamptz NOT NULL,
    PRIMARY KEY (gateway, refund_ref)
);
CREATE INDEX refund_failures_of_a_booking ON refund_failures (booking_id, number);
COMMENT ON TABLE refund_failures IS 'A refund that its gateway accepted and could not send; each is parked in the outbox once, for a person.';
COMMENT ON COLUMN refund_failures.refund_ref IS 'The gateway''s id of the refund.';
COMMENT ON COLUMN refund_failures.told_at IS 'Time of the gateway''s report.';

-- Shows that are called off, and seats that are withdrawn.

CREATE TABLE show_cancellations (
    show_id           uuid PRIMARY KEY REFERENCES shows,
    reason            text NOT NULL,
    requested_at      timestamptz NOT NULL,
    holds_released_at timestamptz,
    cancelled         integer NOT NULL DEFAULT 0,
    finished_at       timestamptz
);
CREATE INDEX show_cancellations_recent ON show_cancellations (requested_at);
CREATE INDEX show_cancellations_open ON show_cancellations (show_id) WHERE finished_at IS NULL;
COMMENT ON TABLE show_cancellations IS 'Progress of calling a show off: shows.called_off stops sales, then every booking is cancelled.';
COMMENT ON COLUMN show_cancellations.holds_released_at IS 'Time from which the lock store has no hold of the show.';
COMMENT ON COLUMN show_cancellations.cancelled IS 'Bookings cancelled so far.';

CREATE TABLE seat_withdrawals (
    show_id      uuid NOT NULL REFERENCES shows,
    seat_no      integer NOT NULL CHECK (seat_no >= 0),
    layout_id    uuid NOT NULL REFERENCES layouts,
    reason       text NOT NULL,
    requested_at timestamptz NOT NULL,
    look_at      timestamptz NOT NULL,
    finished_at  timestamptz,
    PRIMARY KEY (show_id, seat_no)
);
CREATE INDEX seat_withdrawals_due ON seat_withdrawals (look_at) WHERE finished_at IS NULL;
COMMENT ON TABLE seat_withdrawals IS
    'A defective seat that is withdrawn from a show until its booking is cancelled; shows.blocked keeps it off sale.';
COMMENT ON COLUMN seat_withdrawals.layout_id IS 'Layout of the number: in another one it is another seat.';
COMMENT ON COLUMN seat_withdrawals.look_at IS 'Time of the next check; a lease during a check.';

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

-- Refuses a payment in a show that is called off or being relocated, even if the server's copy of the show is stale; and,
-- in a relocated show, for a seat whose label has changed. names_a_room_before is defined with the relocations of
-- 0008_backoffice.sql. Each check is a separate condition, so that a sale in a show without relocations makes one query.
CREATE FUNCTION refuse_called_off() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER bookings_of_shows_that_are_on BEFORE UPDATE ON bookings FOR EACH ROW
    WHEN (OLD.state = 'SEATS_LOCKED' AND NEW.state = 'PAYMENT_PENDING') EXECUTE FUNCTION refuse_called_off();

-- A checkout with payment in one request inserts the booking as PAYMENT_PENDING. This checks all new bookings of a
-- statement together, after their lines are written. The error's DETAIL names the show, so that payments for other shows
-- of the batch continue.
--
-- The bookings' foreign key locks their shows FOR KEY SHARE, which does not conflict with an update of a show. So a
-- transaction that marks a show as called off or moving locks it FOR UPDATE, before the mark or before it relies on having
-- seen every booking. Then either this trigger sees the mark, or that transaction sees the booking.
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
COMMENT ON TRIGGER bookings_begun_in_shows_that_are_on ON bookings IS
    'Ordered against a mark on the show only by a lock FOR UPDATE on it, before the mark or before bookings are searched.';

-- Totals (docs/decisions/0064).
--
-- The total of a booking is the sum of its lines. In CREATED and SEATS_LOCKED the two may differ for a moment; from
-- PAYMENT_PENDING on they agree at the end of every transaction, in whatever order concurrent transactions write them.
-- Three kinds of change are checked, each where it costs least:
--   1. A booking becomes PAYMENT_PENDING, by update or insert: at the end of the statement, all bookings of the statement
--      in one query. An earlier statement, or another part of the same one, has written their lines.
--   2. Lines are added: likewise. No code adds a line to a booking that is paid for; lines of new bookings find them in
--      CREATED or SEATS_LOCKED, or are part of the statement of 1.
--   3. A total changes, a line is deleted, or a line changes its price or quantity: deferred to the end of the transaction,
--      per row, because cancelling a part changes both in turn. It is rare. A relocation renumbers seats without changing a
--      price, which triggers no check.
-- A writer of lines that has not written the booking in its transaction waits for the booking's row lock. So the
-- transition to PAYMENT_PENDING and a concurrent change of lines are ordered, and the second sees the first.
-- The sum is written out three times: Postgres does not inline a function with sub-selects, and a call per row is slower.
-- The planner settings make the functions look rows up by key even if a connection planned them on small tables.

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
    -- A checkout: this transaction wrote the booking, and no payment has begun.
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
-- The server inserts no booking in a later state.
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

-- Effects.

-- The key begins with the booking: effects are found, ordered and deleted by booking. Only a parked effect is found by its
-- id alone.
CREATE TABLE outbox (
    id            bigint GENERATED ALWAYS AS IDENTITY,
    booking_id    uuid NOT NULL,
    effect        text NOT NULL CHECK (effect IN ('charge', 'void_payment', 'void_left', 'refund', 'refund_part', 'mark_booked',
                                                  'release_seats', 'release_part', 'send_ticket', 'send_notice', 'place_late')),
    amount_minor  bigint,
    refund_number integer NOT NULL DEFAULT 0,
    attempts      integer NOT NULL DEFAULT 0,
    run_after     timestamptz NOT NULL,
    parked_why    text,
    created_at    timestamptz NOT NULL,
    PRIMARY KEY (booking_id, id)
);
CREATE INDEX outbox_due ON outbox (run_after) WHERE parked_why IS NULL;
CREATE INDEX outbox_parked ON outbox (id) WHERE parked_why IS NOT NULL;
COMMENT ON TABLE outbox IS 'An effect of a committed transition; done at least once, in order within a booking.';
COMMENT ON COLUMN outbox.effect IS 'void_left: voids at a gateway that the booking has left.';
COMMENT ON COLUMN outbox.amount_minor IS 'Of a refund, minor units.';
COMMENT ON COLUMN outbox.refund_number IS 'refunds.number, for effects about a refund.';
COMMENT ON COLUMN outbox.run_after IS 'Time of the next attempt; a lease while a relay has it.';
COMMENT ON COLUMN outbox.parked_why IS 'Set when the effect failed finally and waits for a person.';

-- Ids are from the outbox' sequence, because one list has both: what waits for a person.
CREATE TABLE ledger_differences (
    id          bigint PRIMARY KEY DEFAULT nextval(pg_get_serial_sequence('outbox', 'id')),
    gateway     text NOT NULL,
    payment_ref text NOT NULL,
    booking_id  uuid NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('unknown_booking', 'charged_unpaid', 'charged_differs',
                                              'refunded_there', 'refunded_here', 'missing_there')),
    here_minor  bigint NOT NULL,
    there_minor bigint NOT NULL,
    currency    char(3) NOT NULL,
    found_at    timestamptz NOT NULL,
    check_at    timestamptz,
    settled_at  timestamptz,
    UNIQUE (gateway, payment_ref, kind, here_minor, there_minor)
);
CREATE INDEX ledger_differences_open ON ledger_differences (booking_id) WHERE settled_at IS NULL;
COMMENT ON TABLE ledger_differences IS 'A difference between a gateway''s ledger and payments, recorded once; a person decides about it.';
COMMENT ON COLUMN ledger_differences.payment_ref IS 'The gateway''s id of the payment, or the booking''s id.';
COMMENT ON COLUMN ledger_differences.booking_id IS 'As the gateway has it; the booking may not exist.';
COMMENT ON COLUMN ledger_differences.here_minor IS 'Amount in this database, minor units.';
COMMENT ON COLUMN ledger_differences.there_minor IS 'Amount at the gateway, minor units.';
COMMENT ON COLUMN ledger_differences.check_at IS 'Time of another comparison that a person requested; a lease during it.';

-- Waiting lists.

CREATE TABLE waiting_lists (
    show_id   uuid PRIMARY KEY REFERENCES shows,
    looked_at timestamptz NOT NULL
);
COMMENT ON TABLE waiting_lists IS 'A show with a waiting list; its row lock serialises the offers of the show.';
COMMENT ON COLUMN waiting_lists.looked_at IS 'Time of the last search for seats to offer.';

CREATE TABLE waiting_list (
    id           uuid PRIMARY KEY,
    place        bigint GENERATED ALWAYS AS IDENTITY,
    show_id      uuid NOT NULL REFERENCES waiting_lists,
    owner        text NOT NULL,
    email        text NOT NULL,
    quantity     integer NOT NULL CHECK (quantity BETWEEN 1 AND 10),
    category     text,
    state        text NOT NULL DEFAULT 'waiting'
                 CHECK (state IN ('waiting', 'offering', 'offered', 'taken', 'lapsed', 'left', 'over')),
    not_before   timestamptz NOT NULL,
    offer_number integer NOT NULL DEFAULT 0,
    offer_hold   uuid UNIQUE,
    offer_seats  integer[] NOT NULL DEFAULT '{}',
    offer_area   smallint,
    offer_until  timestamptz,
    mailed       integer NOT NULL DEFAULT 0,
    mail_tries   integer NOT NULL DEFAULT 0,
    mail_after   timestamptz NOT NULL,
    joined_at    timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    CHECK (state NOT IN ('offering', 'offered') OR offer_hold IS NOT NULL)
);
CREATE UNIQUE INDEX waiting_list_one_each ON waiting_list (show_id, owner) WHERE state IN ('waiting', 'offering', 'offered');
CREATE INDEX waiting_list_line ON waiting_list (show_id, place) WHERE state IN ('waiting', 'offering', 'offered');
CREATE INDEX waiting_list_open ON waiting_list (show_id) WHERE state IN ('waiting', 'offering');
CREATE INDEX waiting_list_offered ON waiting_list (offer_until) WHERE state = 'offered';
CREATE INDEX waiting_list_by_owner ON waiting_list (owner) WHERE state IN ('waiting', 'offering', 'offered');
COMMENT ON TABLE waiting_list IS 'An entry of a visitor in the waiting list of a show, with its current offer.';
COMMENT ON COLUMN waiting_list.place IS 'Order in the list; gaps are normal.';
COMMENT ON COLUMN waiting_list.owner IS 'The visitor, hashed, as in bookings.owner.';
COMMENT ON COLUMN waiting_list.category IS 'A name in shows.prices; null: any.';
COMMENT ON COLUMN waiting_list.not_before IS 'No offer is made before this time.';
COMMENT ON COLUMN waiting_list.offer_number IS 'Number of offers so far.';
COMMENT ON COLUMN waiting_list.offer_hold IS 'The hold of the offer.';
COMMENT ON COLUMN waiting_list.offer_area IS 'Area of an offer of places in place of seats.';
COMMENT ON COLUMN waiting_list.mailed IS 'Number of the last offer that was mailed.';

CREATE TABLE email_codes (
    id          uuid PRIMARY KEY,
    owner       text NOT NULL,
    email       text NOT NULL,
    mail_to     text NOT NULL,
    language    text NOT NULL,
    code_digest text NOT NULL CHECK (code_digest ~ '^[0-9a-f]{64}$'),
    tries       smallint NOT NULL DEFAULT 0 CHECK (tries >= 0),
    expires_at  timestamptz NOT NULL,
    proven_at   timestamptz,
    mail_after  timestamptz,
    UNIQUE (owner, email)
);
CREATE INDEX email_codes_to_send ON email_codes (mail_after) WHERE mail_after IS NOT NULL;
CREATE INDEX email_codes_by_age ON email_codes (expires_at);
COMMENT ON TABLE email_codes IS 'The latest code by which a visitor proves an address before checkout, sent or entered.';
COMMENT ON COLUMN email_codes.id IS 'New for each code. The code is derived from it and a secret outside the database.';
COMMENT ON COLUMN email_codes.owner IS 'The visitor, hashed, as in bookings.owner.';
COMMENT ON COLUMN email_codes.email IS 'In lower case.';
COMMENT ON COLUMN email_codes.mail_to IS 'As typed.';
COMMENT ON COLUMN email_codes.code_digest IS 'Keyed digest: a plain hash of six digits is soon guessed.';
COMMENT ON COLUMN email_codes.expires_at IS 'Expiry of the code.';
COMMENT ON COLUMN email_codes.proven_at IS 'Time at which a code was entered; a request for another code keeps it.';
COMMENT ON COLUMN email_codes.mail_after IS 'Time of the next attempt to send it; null: sent.';

CREATE TABLE hold_counts (
    show_id uuid NOT NULL REFERENCES shows,
    day     date NOT NULL,
    granted bigint NOT NULL CHECK (granted > 0),
    PRIMARY KEY (show_id, day)
);
COMMENT ON TABLE hold_counts IS 'The number of holds granted for a show on a day; holds themselves live in the lock store only.';
COMMENT ON COLUMN hold_counts.day IS 'A day in the theatre''s time zone.';
COMMENT ON COLUMN hold_counts.granted IS 'Servers add to it every few seconds.';
