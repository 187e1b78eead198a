-- General admission: areas with a capacity instead of seats.

-- How many places an area of a show has, and how many are gone. Whoever changes a row repeats its version.
CREATE TABLE area_stock (
    show_id  uuid NOT NULL REFERENCES shows,
    area_no  smallint NOT NULL CHECK (area_no BETWEEN 0 AND 63),
    name     text NOT NULL,
    category text NOT NULL,                          -- a name in shows.prices
    capacity integer NOT NULL CHECK (capacity > 0),
    claimed  integer NOT NULL DEFAULT 0,             -- being paid for
    sold     integer NOT NULL DEFAULT 0,
    version  bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (show_id, area_no),
    CHECK (claimed >= 0 AND sold >= 0 AND claimed + sold <= capacity)
);
CREATE FUNCTION refuse_skipped_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.version <> OLD.version + 1 THEN
        RAISE EXCEPTION '% must step from version % to %', TG_TABLE_NAME, OLD.version, OLD.version + 1
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER area_stock_version BEFORE UPDATE ON area_stock FOR EACH ROW EXECUTE FUNCTION refuse_skipped_version();

CREATE TABLE booking_places (
    booking_id  uuid NOT NULL REFERENCES bookings,
    area_no     smallint NOT NULL,
    quantity    integer NOT NULL CHECK (quantity > 0),
    name        text NOT NULL,
    category    text NOT NULL,
    price_minor bigint NOT NULL CHECK (price_minor >= 0),   -- of one place
    PRIMARY KEY (booking_id, area_no)
);

-- What seat_claims are for seats; the rows that are not released add up to area_stock's claimed and sold.
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

-- One a place, like tickets of seats.
CREATE TABLE place_tickets (
    booking_id uuid NOT NULL REFERENCES bookings,
    area_no    smallint NOT NULL,
    number     integer NOT NULL CHECK (number > 0),   -- among the booking's places in this area, from 1
    code       text NOT NULL UNIQUE,
    issued_at  timestamptz NOT NULL,
    PRIMARY KEY (booking_id, area_no, number)
);

-- The waiting list of a show that is sold out.

-- A row for every show that anyone ever waited for: whoever makes offers for a show holds its lock.
CREATE TABLE waiting_lists (
    show_id   uuid PRIMARY KEY REFERENCES shows,
    looked_at timestamptz NOT NULL
);

CREATE TABLE waiting_list (
    id           uuid PRIMARY KEY,
    place        bigint GENERATED ALWAYS AS IDENTITY,   -- the order of the line
    show_id      uuid NOT NULL REFERENCES waiting_lists,
    owner        text NOT NULL,                         -- the visitor, hashed
    email        text NOT NULL,
    quantity     integer NOT NULL CHECK (quantity BETWEEN 1 AND 10),
    category     text,                                  -- a name in shows.prices; none: any
    state        text NOT NULL DEFAULT 'waiting'
                 CHECK (state IN ('waiting', 'offering', 'offered', 'taken', 'lapsed', 'left', 'over')),
    not_before   timestamptz NOT NULL,                  -- passed over until then
    offer_number integer NOT NULL DEFAULT 0,
    offer_hold   uuid UNIQUE,
    offer_seats  integer[] NOT NULL DEFAULT '{}',
    offer_area   smallint,                              -- in place of seats: so many places there
    offer_until  timestamptz,
    mailed       integer NOT NULL DEFAULT 0,            -- number of the last offer whose mail went out
    mail_tries   integer NOT NULL DEFAULT 0,
    mail_after   timestamptz NOT NULL,
    joined_at    timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    CHECK (state NOT IN ('offering', 'offered') OR offer_hold IS NOT NULL)
);
-- One live entry per person and show.
CREATE UNIQUE INDEX waiting_list_one_each ON waiting_list (show_id, owner) WHERE state IN ('waiting', 'offering', 'offered');
CREATE INDEX waiting_list_line ON waiting_list (show_id, place) WHERE state IN ('waiting', 'offering', 'offered');
CREATE INDEX waiting_list_open ON waiting_list (show_id) WHERE state IN ('waiting', 'offering');
CREATE INDEX waiting_list_offered ON waiting_list (offer_until) WHERE state = 'offered';
CREATE INDEX waiting_list_by_owner ON waiting_list (owner) WHERE state IN ('waiting', 'offering', 'offered');
