-- Tables of `server/admission`: waiting rooms, and flags of unusual visitors.

-- No row per waiting person: queue tickets carry their numbers, and Redis counts. It is rebuilt from these rows
-- (docs/decisions/0041).
CREATE TABLE waiting_rooms (
    id              uuid PRIMARY KEY,
    show_id         uuid NOT NULL REFERENCES shows,
    opens_at        timestamptz NOT NULL,
    per_second      integer NOT NULL CHECK (per_second BETWEEN 1 AND 1000),
    draw_key        bytea NOT NULL CHECK (octet_length(draw_key) = 32),
    drawn           bigint CHECK (drawn >= 0),
    reserved        bigint NOT NULL DEFAULT 0 CHECK (reserved >= 0),
    joined          bigint NOT NULL DEFAULT 0,
    called          bigint NOT NULL DEFAULT 0,
    inside          bigint NOT NULL DEFAULT 0,
    gaps            text NOT NULL DEFAULT '' CHECK (gaps ~ '^([0-9]+-[0-9]+(,[0-9]+-[0-9]+)*)?$'),
    switched_on_at  timestamptz NOT NULL,
    switched_off_at timestamptz,
    CHECK (drawn <= reserved)
);
CREATE UNIQUE INDEX waiting_rooms_on ON waiting_rooms (show_id) WHERE switched_off_at IS NULL;
COMMENT ON TABLE waiting_rooms IS 'A waiting room of a show, from the time it is switched on until it is switched off.';
COMMENT ON COLUMN waiting_rooms.id IS 'New each time the room is switched on, which invalidates older queue tickets.';
COMMENT ON COLUMN waiting_rooms.per_second IS 'People admitted per second.';
COMMENT ON COLUMN waiting_rooms.draw_key IS 'Seed of the draw: its hash is public before opening, the key after.';
COMMENT ON COLUMN waiting_rooms.drawn IS 'Number of people drawn; written once, at opening.';
COMMENT ON COLUMN waiting_rooms.reserved IS 'Exclusive upper bound of the numbers of issued queue tickets.';
COMMENT ON COLUMN waiting_rooms.joined IS 'Queue tickets issued, about a second old.';
COMMENT ON COLUMN waiting_rooms.called IS 'Places called, about a second old.';
COMMENT ON COLUMN waiting_rooms.inside IS 'People inside, about a second old.';
COMMENT ON COLUMN waiting_rooms.gaps IS 'Ranges `from-to`, end exclusive, of numbers that no or almost no ticket has, because Redis lost the count.';

-- Protects the published draw: another key, another number of people drawn, or a number issued twice would make it
-- another draw.
CREATE FUNCTION refuse_another_draw() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.draw_key <> OLD.draw_key OR NEW.show_id <> OLD.show_id OR NEW.drawn IS DISTINCT FROM COALESCE(OLD.drawn, NEW.drawn)
       OR NEW.reserved < OLD.reserved OR (OLD.drawn IS NOT NULL AND NEW.opens_at <> OLD.opens_at) THEN
        RAISE EXCEPTION 'the draw of waiting room % stands', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER waiting_rooms_draw BEFORE UPDATE ON waiting_rooms FOR EACH ROW EXECUTE FUNCTION refuse_another_draw();

CREATE TABLE unusual_flags (
    id           uuid PRIMARY KEY,
    show_id      uuid NOT NULL REFERENCES shows ON DELETE CASCADE,
    theatre_id   text NOT NULL REFERENCES theatres,
    kind         text NOT NULL CHECK (kind IN ('never_bought', 'many_visitors', 'timing', 'puzzles')),
    subject      text NOT NULL CHECK (subject IN ('visitor', 'address')),
    tag          text NOT NULL CHECK (tag ~ '^[0-9a-f]{16}$'),
    seen         bigint NOT NULL CHECK (seen > 0),
    since        timestamptz NOT NULL,
    last_at      timestamptz NOT NULL,
    dismissed_at timestamptz,
    dismissed_by uuid REFERENCES accounts,
    reason       text,
    UNIQUE (show_id, kind, subject, tag),
    CHECK ((dismissed_at IS NULL) = (dismissed_by IS NULL) AND (dismissed_at IS NULL) = (reason IS NULL))
);
CREATE INDEX unusual_flags_by_theatre ON unusual_flags (theatre_id, last_at);
CREATE INDEX unusual_flags_by_age ON unusual_flags (last_at);
COMMENT ON TABLE unusual_flags IS 'Unusual behaviour of a visitor or address in a show, for managers; no request is refused because of it.';
COMMENT ON COLUMN unusual_flags.tag IS 'Keyed digest of the visitor or address, per theatre; it identifies no person.';
COMMENT ON COLUMN unusual_flags.seen IS 'Number of holds, visitors, attempts or puzzles, by kind.';
COMMENT ON COLUMN unusual_flags.dismissed_at IS 'Time at which a manager dismissed it; later events are still counted, and not shown.';
COMMENT ON COLUMN unusual_flags.reason IS 'The manager''s reason for dismissing it.';
