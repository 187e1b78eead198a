-- A booking may be charged at one of two gateways (docs/decisions/0008), and too many declined cards are a sign.

-- How often the gateway in `gateway` may have been asked for this money: the asker who submitted, and every one
-- after. Somebody who knows that their own question never left takes it back. Only with one open question, their
-- own, may an asker move the booking to another gateway.
ALTER TABLE payments ADD COLUMN asks smallint NOT NULL DEFAULT 1 CHECK (asks >= 0);

-- Gateways that bookings left because those were never asked. Each is told all the same never to charge.
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

-- Payments that a bank declined, by who tried. Kept for a while (bookings/declines.rs).
CREATE TABLE declined_payments (
    booking_id uuid PRIMARY KEY REFERENCES bookings,
    owner      text NOT NULL,
    email      text NOT NULL,                        -- in small letters
    at         timestamptz NOT NULL
);
CREATE INDEX declined_payments_by_owner ON declined_payments (owner, at);
CREATE INDEX declined_payments_by_email ON declined_payments (email, at);
CREATE INDEX declined_payments_by_age ON declined_payments (at);
