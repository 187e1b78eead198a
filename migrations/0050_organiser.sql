-- What organisers do: rooms, weeks of shows, prices, how shows are sold.

-- Rooms they brought. One that no screen ever had may go again.
CREATE TABLE theatre_layouts (
    layout_id    uuid PRIMARY KEY REFERENCES layouts,
    theatre_id   text NOT NULL REFERENCES theatres,
    remarks      jsonb NOT NULL,                     -- domain::layout::import::Finding
    imported_by  uuid NOT NULL REFERENCES accounts,
    imported_at  timestamptz NOT NULL,
    published_at timestamptz                         -- when a screen first had it
);
CREATE INDEX theatre_layouts_unpublished ON theatre_layouts (theatre_id, imported_at) WHERE published_at IS NULL;

-- Which room a screen had when. The last one is screens.layout_id; a screen without rows has had one room ever.
CREATE TABLE screen_layouts (
    screen_id    text NOT NULL REFERENCES screens,
    version      integer NOT NULL CHECK (version > 0),
    layout_id    uuid NOT NULL REFERENCES layouts,
    published_at timestamptz NOT NULL,
    PRIMARY KEY (screen_id, version)
);
CREATE TRIGGER screen_layouts_immutable BEFORE UPDATE OR DELETE ON screen_layouts
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- What a theatre asks for its seats.
CREATE TABLE theatre_tariffs (
    theatre_id text PRIMARY KEY REFERENCES theatres,
    tariff     jsonb NOT NULL,                       -- domain::pricing::Tariff
    version    integer NOT NULL DEFAULT 1,           -- every write repeats it
    updated_at timestamptz NOT NULL
);

ALTER TABLE shows
    -- planned: nobody sees it yet. paused: seen, and nobody takes seats.
    ADD COLUMN sales text NOT NULL DEFAULT 'open' CHECK (sales IN ('planned', 'open', 'paused')),
    -- Open, but not before this.
    ADD COLUMN sales_from timestamptz,
    -- Seats one person may have; none: as many as anywhere.
    ADD COLUMN per_person smallint CHECK (per_person BETWEEN 1 AND 10),
    -- Between its end and the next show.
    ADD COLUMN cleaning_minutes integer NOT NULL DEFAULT 0 CHECK (cleaning_minutes BETWEEN 0 AND 240),
    ADD COLUMN terms_version integer NOT NULL DEFAULT 1,   -- every write repeats it
    -- When how it is sold was last changed: replicas look for it.
    ADD COLUMN terms_at timestamptz;
CREATE INDEX shows_by_change ON shows (terms_at) WHERE terms_at IS NOT NULL;

-- A show that was called off leaves its time to another.
ALTER TABLE shows DROP CONSTRAINT shows_screen_id_starts_at_key;
CREATE UNIQUE INDEX shows_one_at_a_time ON shows (screen_id, starts_at) WHERE NOT called_off;

-- Seats are numbered along the room: another room under a seat that is being paid for or sold would make it another
-- seat, or none.
CREATE FUNCTION refuse_other_room() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM seat_claims WHERE show_id = NEW.id AND state <> 'released') THEN
        RAISE EXCEPTION 'show % has seats that are sold; it keeps its room', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER shows_keep_their_room BEFORE UPDATE OF layout_id ON shows FOR EACH ROW
    WHEN (NEW.layout_id <> OLD.layout_id) EXECUTE FUNCTION refuse_other_room();
