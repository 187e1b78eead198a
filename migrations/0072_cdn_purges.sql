-- What a CDN in front of us is told: that what it keeps of a theatre, a film, a show or a city is not so any more
-- (docs/decisions/0050).

-- Whether anybody tells it. A server that does says so here once in an hour; without one nothing is written down.
CREATE TABLE cdn (
    there      boolean PRIMARY KEY DEFAULT true CHECK (there),
    told_until timestamptz NOT NULL
);

-- A tag that is to be purged: once at once, and once more when no answer of before can be given any more.
CREATE TABLE cdn_purges (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tag        text NOT NULL,                        -- as pages carry it: server/src/cdn/tags.rs
    round      smallint NOT NULL DEFAULT 1 CHECK (round IN (1, 2)),
    tries      integer NOT NULL DEFAULT 0,           -- of this round
    run_after  timestamptz NOT NULL DEFAULT now(),
    due_at     timestamptz NOT NULL DEFAULT now(),   -- when this round was to be told first
    parked_why text,                                 -- set when a person must look
    wanted_at  timestamptz NOT NULL DEFAULT now(),
    wanted_by  xid8 NOT NULL DEFAULT pg_current_xact_id(),
    -- Once in a transaction, however many shows it plans. Nobody waits here for another transaction's row.
    CONSTRAINT cdn_purges_once UNIQUE (wanted_by, tag, wanted_at)
);
CREATE INDEX cdn_purges_due ON cdn_purges (run_after) WHERE parked_why IS NULL;

-- Every page that shows more than a few things has the tag `lists`, so every change is one of it.
CREATE FUNCTION want_purge(VARIADIC tags text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM cdn WHERE told_until > now()) THEN
        RETURN;
    END IF;
    INSERT INTO cdn_purges (tag)
    SELECT DISTINCT wanted FROM unnest(tags || 'lists'::text) AS wanted WHERE wanted IS NOT NULL
    ON CONFLICT ON CONSTRAINT cdn_purges_once DO NOTHING;
END $$;

-- Written by the database itself, in the transaction of the change: no way to change a show can forget it. House seats
-- are left out, as sold ones are: how many are left grows old with its page.
CREATE FUNCTION purge_show() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    place record;
BEGIN
    SELECT theatre.id, theatre.city_id INTO place
    FROM screens screen JOIN theatres theatre ON theatre.id = screen.theatre_id WHERE screen.id = NEW.screen_id;
    PERFORM want_purge('film-' || NEW.film_id, 'theatre-' || place.id, 'city-' || place.city_id);
    -- A new one is on no page of its own yet.
    IF TG_OP = 'UPDATE' THEN
        PERFORM want_purge('show-' || NEW.id, 'film-' || OLD.film_id);
    END IF;
    RETURN NULL;
END $$;
-- Nobody has seen one that is only planned.
CREATE TRIGGER shows_purged_new AFTER INSERT ON shows FOR EACH ROW
    WHEN (NEW.sales <> 'planned') EXECUTE FUNCTION purge_show();
CREATE TRIGGER shows_purged AFTER UPDATE OF screen_id, film_id, layout_id, starts_at, local_date, language, format,
        currency, prices, hold_ms, sales, sales_from, per_person, called_off ON shows FOR EACH ROW
    WHEN ((OLD.sales <> 'planned' OR NEW.sales <> 'planned')
          AND (OLD.screen_id, OLD.film_id, OLD.layout_id, OLD.starts_at, OLD.local_date, OLD.language, OLD.format,
               OLD.currency, OLD.prices, OLD.hold_ms, OLD.sales, OLD.sales_from, OLD.per_person, OLD.called_off)
              IS DISTINCT FROM
              (NEW.screen_id, NEW.film_id, NEW.layout_id, NEW.starts_at, NEW.local_date, NEW.language, NEW.format,
               NEW.currency, NEW.prices, NEW.hold_ms, NEW.sales, NEW.sales_from, NEW.per_person, NEW.called_off))
    EXECUTE FUNCTION purge_show();

CREATE FUNCTION purge_theatre() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM want_purge('theatre-' || NEW.id, 'city-' || NEW.city_id);
    IF TG_OP = 'UPDATE' AND OLD.city_id <> NEW.city_id THEN
        PERFORM want_purge('city-' || OLD.city_id);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER theatres_purged_new AFTER INSERT ON theatres FOR EACH ROW EXECUTE FUNCTION purge_theatre();
CREATE TRIGGER theatres_purged AFTER UPDATE OF city_id, name, address ON theatres FOR EACH ROW
    WHEN ((OLD.city_id, OLD.name, OLD.address) IS DISTINCT FROM (NEW.city_id, NEW.name, NEW.address))
    EXECUTE FUNCTION purge_theatre();

-- Pages of theatres say which city they are in, and have no tag of it: else each change of a show would purge them all.
CREATE FUNCTION purge_city() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM want_purge('city-' || NEW.id);
    PERFORM want_purge('theatre-' || theatre.id) FROM theatres theatre WHERE theatre.city_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER cities_purged_new AFTER INSERT ON cities FOR EACH ROW EXECUTE FUNCTION purge_city();
CREATE TRIGGER cities_purged AFTER UPDATE OF name, country, time_zone ON cities FOR EACH ROW
    WHEN ((OLD.name, OLD.country, OLD.time_zone) IS DISTINCT FROM (NEW.name, NEW.country, NEW.time_zone))
    EXECUTE FUNCTION purge_city();

-- How many screens there are, and what they are called.
CREATE FUNCTION purge_screen() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM want_purge('theatre-' || theatre.id, 'city-' || theatre.city_id)
    FROM theatres theatre WHERE theatre.id = NEW.theatre_id;
    IF TG_OP = 'UPDATE' THEN
        PERFORM want_purge(VARIADIC array_agg(DISTINCT tag))
        FROM shows show CROSS JOIN LATERAL (VALUES ('show-' || show.id), ('film-' || show.film_id)) AS shown (tag)
        WHERE show.screen_id = NEW.id AND show.starts_at > now() HAVING count(*) > 0;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER screens_purged_new AFTER INSERT ON screens FOR EACH ROW EXECUTE FUNCTION purge_screen();
CREATE TRIGGER screens_purged AFTER UPDATE OF name ON screens FOR EACH ROW
    WHEN (OLD.name IS DISTINCT FROM NEW.name) EXECUTE FUNCTION purge_screen();

-- A new film is shown nowhere yet.
CREATE FUNCTION purge_film() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM want_purge('film-' || NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER films_purged AFTER UPDATE ON films FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION purge_film();
