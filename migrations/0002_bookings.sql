-- Bookings, their money, and the claims that make a second sale of a seat impossible.

CREATE TABLE bookings (
    id           uuid PRIMARY KEY,
    reference    text NOT NULL UNIQUE,
    show_id      uuid NOT NULL REFERENCES shows,
    owner        text NOT NULL,                      -- the visitor, hashed; queries are keyed by (id, owner)
    hold_id      uuid NOT NULL UNIQUE,
    fence        bigint NOT NULL,
    state        text NOT NULL,
    money        text NOT NULL,
    version      integer NOT NULL DEFAULT 1,
    total_minor  bigint NOT NULL CHECK (total_minor >= 0),
    currency     char(3) NOT NULL,
    buyer_name   text NOT NULL,
    buyer_email  text NOT NULL,
    holder_name  text NOT NULL,
    holder_email text NOT NULL,
    expires_at   timestamptz NOT NULL,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    CHECK (state IN ('CREATED', 'SEATS_LOCKED', 'PAYMENT_PENDING', 'PAYMENT_SUCCEEDED', 'CONFIRMED', 'CANCELLED', 'EXPIRED')),
    CHECK (money IN ('NONE', 'PENDING', 'PAID', 'FAILED', 'REFUNDING', 'REFUNDED'))
);
CREATE INDEX bookings_by_owner ON bookings (owner, created_at DESC);
CREATE INDEX bookings_due ON bookings (expires_at)
    WHERE state IN ('CREATED', 'SEATS_LOCKED', 'PAYMENT_PENDING', 'PAYMENT_SUCCEEDED');

CREATE TABLE booking_seats (
    booking_id  uuid NOT NULL REFERENCES bookings,
    seat_no     integer NOT NULL,
    label       text NOT NULL,
    category    text NOT NULL,
    price_minor bigint NOT NULL CHECK (price_minor >= 0),
    PRIMARY KEY (booking_id, seat_no)
);

-- domain::booking::may_move, once more. A test compares the two.
CREATE TABLE booking_moves (
    from_state text NOT NULL,
    to_state   text NOT NULL,
    PRIMARY KEY (from_state, to_state)
);
INSERT INTO booking_moves VALUES
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

CREATE FUNCTION refuse_other_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state <> OLD.state
       AND NOT EXISTS (SELECT 1 FROM booking_moves WHERE from_state = OLD.state AND to_state = NEW.state) THEN
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

-- Who, when, why: one row a move, never changed.
CREATE TABLE booking_events (
    booking_id uuid NOT NULL REFERENCES bookings,
    number     integer NOT NULL,                     -- the booking's version after the move
    event      text NOT NULL,
    from_state text,
    to_state   text NOT NULL,
    money      text NOT NULL,
    actor      text NOT NULL,
    reason     text NOT NULL,
    at         timestamptz NOT NULL,
    PRIMARY KEY (booking_id, number)
);
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% rows are immutable', TG_TABLE_NAME USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER booking_events_immutable BEFORE UPDATE OR DELETE ON booking_events
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- The last line: one live claim per (show, seat), whatever Redis says.
CREATE TABLE seat_claims (
    show_id    uuid NOT NULL REFERENCES shows,
    seat_no    integer NOT NULL,
    booking_id uuid NOT NULL REFERENCES bookings,
    fence      bigint NOT NULL,
    state      text NOT NULL CHECK (state IN ('claimed', 'sold', 'released')),
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (show_id, seat_no)
);
CREATE INDEX seat_claims_by_booking ON seat_claims (booking_id);

CREATE TABLE payments (
    booking_id     uuid PRIMARY KEY REFERENCES bookings,
    gateway        text NOT NULL,
    gateway_ref    text,                             -- the gateway's own id, once it told us
    pay_url        text,
    state          text NOT NULL CHECK (state IN ('requested', 'pending', 'succeeded', 'failed', 'voided')),
    amount_minor   bigint NOT NULL,
    currency       char(3) NOT NULL,
    payment_token  text,
    refund_state   text CHECK (refund_state IN ('requested', 'settled')),
    refund_minor   bigint,
    updated_at     timestamptz NOT NULL
);

-- A gateway's event is applied once.
CREATE TABLE webhook_events (
    gateway    text NOT NULL,
    event_id   text NOT NULL,
    received_at timestamptz NOT NULL,
    outcome    text NOT NULL,
    PRIMARY KEY (gateway, event_id)
);

CREATE TABLE tickets (
    booking_id uuid NOT NULL REFERENCES bookings,
    seat_no    integer NOT NULL,
    code       text NOT NULL UNIQUE,                 -- what the QR code carries: random, not guessable
    issued_at  timestamptz NOT NULL,
    PRIMARY KEY (booking_id, seat_no)
);
