-- Waiting rooms: which shows are entered through one. No row per person: tickets carry their numbers, and what
-- counts is in Redis. These rows are what it is rebuilt from.
CREATE TABLE waiting_rooms (
    id              uuid PRIMARY KEY,                -- a new one each time it is switched on: old tickets end
    show_id         uuid NOT NULL REFERENCES shows,
    opens_at        timestamptz NOT NULL,
    per_second      integer NOT NULL CHECK (per_second BETWEEN 1 AND 1000),
    draw_key        bytea NOT NULL CHECK (octet_length(draw_key) = 32),   -- told after opening, its hash before
    drawn           bigint CHECK (drawn >= 0),       -- how many were drawn; written once, at opening
    reserved        bigint NOT NULL DEFAULT 0 CHECK (reserved >= 0),      -- no ticket has this number or a higher one
    joined          bigint NOT NULL DEFAULT 0,       -- tickets given out, as of about a second ago
    called          bigint NOT NULL DEFAULT 0,       -- places called, likewise
    inside          bigint NOT NULL DEFAULT 0,       -- people inside, likewise
    -- Numbers that are nobody's, or nearly, since Redis forgot how many were given out: `from-to`, the last not included.
    gaps            text NOT NULL DEFAULT '' CHECK (gaps ~ '^([0-9]+-[0-9]+(,[0-9]+-[0-9]+)*)?$'),
    switched_on_at  timestamptz NOT NULL,
    switched_off_at timestamptz,
    CHECK (drawn <= reserved)
);
CREATE UNIQUE INDEX waiting_rooms_on ON waiting_rooms (show_id) WHERE switched_off_at IS NULL;

-- What was promised stays: another key, another number of people drawn, or a number given out again would be another
-- draw.
CREATE FUNCTION refuse_another_draw() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.draw_key <> OLD.draw_key OR NEW.show_id <> OLD.show_id OR NEW.drawn IS DISTINCT FROM COALESCE(OLD.drawn, NEW.drawn)
       OR NEW.reserved < OLD.reserved OR (OLD.drawn IS NOT NULL AND NEW.opens_at <> OLD.opens_at) THEN
        RAISE EXCEPTION 'the draw of waiting room % stands', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER waiting_rooms_draw BEFORE UPDATE ON waiting_rooms FOR EACH ROW EXECUTE FUNCTION refuse_another_draw();
