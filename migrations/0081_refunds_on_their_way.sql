-- Refunds a gateway has accepted and not sent yet. Its webhook settles them; now and then it is asked how they stand.
CREATE TABLE refund_waits (
    booking_id uuid NOT NULL,
    number     integer NOT NULL,
    since      timestamptz NOT NULL,
    look_at    timestamptz NOT NULL,
    PRIMARY KEY (booking_id, number),
    FOREIGN KEY (booking_id, number) REFERENCES refunds
);
CREATE INDEX refund_waits_due ON refund_waits (look_at);

-- Refunds a gateway could not send after all, each once, under the gateway's own id. What becomes of one is decided
-- by a person: it is parked in the outbox.
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
