-- Tables of `server/catalogue`: the programme, the regions of shows, and the purges of a CDN. Text ids are slugs that
-- appear in addresses.

CREATE TABLE cities (
    id        text PRIMARY KEY,
    name      text NOT NULL,
    country   text NOT NULL,
    time_zone text NOT NULL
);
COMMENT ON TABLE cities IS 'A city with theatres.';
COMMENT ON COLUMN cities.country IS 'ISO 3166-1 alpha-2.';
COMMENT ON COLUMN cities.time_zone IS 'IANA name.';

CREATE TABLE theatres (
    id       text PRIMARY KEY,
    city_id  text NOT NULL REFERENCES cities,
    name     text NOT NULL,
    address  text NOT NULL,
    currency char(3) NOT NULL,
    version  integer NOT NULL DEFAULT 1,
    region   text CHECK (region ~ '^[a-z0-9][a-z0-9-]{0,30}$')
);
CREATE INDEX theatres_by_city ON theatres (city_id);
COMMENT ON TABLE theatres IS 'A theatre.';
COMMENT ON COLUMN theatres.currency IS 'ISO 4217.';
COMMENT ON COLUMN theatres.version IS 'Every write repeats it.';
COMMENT ON COLUMN theatres.region IS 'The region that sells its shows; null: the region of this database (decision 51).';

CREATE TABLE layouts (
    id         uuid PRIMARY KEY,
    name       text NOT NULL,
    plan       jsonb NOT NULL,
    seat_count integer NOT NULL CHECK (seat_count BETWEEN 0 AND 100000)
);
COMMENT ON TABLE layouts IS 'An immutable layout of an auditorium: seats are numbered by their position in it, so an edit makes a new row.';
COMMENT ON COLUMN layouts.plan IS 'domain::layout::Layout as JSON.';

CREATE TABLE screens (
    id         text PRIMARY KEY,
    theatre_id text NOT NULL REFERENCES theatres,
    name       text NOT NULL,
    layout_id  uuid NOT NULL REFERENCES layouts
);
CREATE INDEX screens_by_theatre ON screens (theatre_id);
COMMENT ON TABLE screens IS 'An auditorium of a theatre.';
COMMENT ON COLUMN screens.layout_id IS 'Layout of shows planned from now on.';

CREATE TABLE screen_layouts (
    screen_id    text NOT NULL REFERENCES screens,
    version      integer NOT NULL CHECK (version > 0),
    layout_id    uuid NOT NULL REFERENCES layouts,
    published_at timestamptz NOT NULL,
    PRIMARY KEY (screen_id, version)
);
CREATE TRIGGER screen_layouts_immutable BEFORE UPDATE OR DELETE ON screen_layouts
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE screen_layouts IS 'A layout that a screen has or had; a screen without rows has had one layout only.';

CREATE TABLE theatre_tariffs (
    theatre_id text PRIMARY KEY REFERENCES theatres,
    tariff     jsonb NOT NULL,
    version    integer NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL
);
COMMENT ON TABLE theatre_tariffs IS 'The tariff of a theatre: the prices of its seats.';
COMMENT ON COLUMN theatre_tariffs.tariff IS 'domain::pricing::Tariff as JSON.';
COMMENT ON COLUMN theatre_tariffs.version IS 'Every write repeats it.';

CREATE TABLE films (
    id              text PRIMARY KEY,
    title           text NOT NULL,
    tagline         text NOT NULL,
    synopsis        text NOT NULL,
    running_minutes integer NOT NULL CHECK (running_minutes > 0),
    rating          text NOT NULL,
    genre           text NOT NULL,
    hue             smallint NOT NULL CHECK (hue BETWEEN 0 AND 359)
);
COMMENT ON TABLE films IS 'A film or live event.';
COMMENT ON COLUMN films.hue IS 'Hue of the drawn poster, degrees.';

CREATE TABLE shows (
    id               uuid PRIMARY KEY,
    screen_id        text NOT NULL REFERENCES screens,
    film_id          text NOT NULL REFERENCES films,
    layout_id        uuid NOT NULL REFERENCES layouts,
    starts_at        timestamptz NOT NULL,
    local_date       date NOT NULL,
    cleaning_minutes integer NOT NULL DEFAULT 0 CHECK (cleaning_minutes BETWEEN 0 AND 240),
    language         text NOT NULL,
    format           text NOT NULL CHECK (format IN ('2D', '3D', 'IMAX', 'LIVE')),
    currency         char(3) NOT NULL,
    prices           jsonb NOT NULL,
    blocked          integer[] NOT NULL DEFAULT '{}',
    sales            text NOT NULL DEFAULT 'open' CHECK (sales IN ('planned', 'open', 'paused')),
    sales_from       timestamptz,
    hold_ms          bigint NOT NULL DEFAULT 300000 CHECK (hold_ms BETWEEN 1000 AND 3600000),
    flash_sale       boolean NOT NULL DEFAULT false,
    per_person       smallint CHECK (per_person BETWEEN 1 AND 10),
    email_code       boolean NOT NULL DEFAULT false,
    per_instrument   smallint CHECK (per_instrument BETWEEN 1 AND 100),
    terms_version    integer NOT NULL DEFAULT 1,
    terms_at         timestamptz,
    called_off       boolean NOT NULL DEFAULT false,
    is_moving        boolean NOT NULL DEFAULT false,
    times_moved      smallint NOT NULL DEFAULT 0 CHECK (times_moved BETWEEN 0 AND 20)
);
-- A called-off show frees its time for another one.
CREATE UNIQUE INDEX shows_one_at_a_time ON shows (screen_id, starts_at) WHERE NOT called_off;
CREATE INDEX shows_by_day ON shows (local_date, screen_id);
CREATE INDEX shows_by_film ON shows (film_id, local_date);
CREATE INDEX shows_by_change ON shows (terms_at) WHERE terms_at IS NOT NULL;
COMMENT ON TABLE shows IS 'A show with its prices and terms.';
COMMENT ON COLUMN shows.layout_id IS 'Layout it is sold with; a new layout of the screen does not change it.';
COMMENT ON COLUMN shows.local_date IS 'Date of starts_at in the theatre''s time zone, for lists by day.';
COMMENT ON COLUMN shows.cleaning_minutes IS 'Minutes between its end and the next show.';
COMMENT ON COLUMN shows.prices IS 'Category name to minor units, computed by domain::pricing.';
COMMENT ON COLUMN shows.blocked IS 'Numbers of house seats and withdrawn seats.';
COMMENT ON COLUMN shows.sales IS 'planned: hidden. paused: visible, and no seats are sold.';
COMMENT ON COLUMN shows.sales_from IS 'Start of sales of an open show; null: at once.';
COMMENT ON COLUMN shows.hold_ms IS 'Length of a hold, ms.';
COMMENT ON COLUMN shows.flash_sale IS 'On-sale day: holds last domain::seats::FLASH_HOLD_MS and cannot be extended.';
COMMENT ON COLUMN shows.per_person IS 'Maximum number of seats per person; null: the general limit.';
COMMENT ON COLUMN shows.email_code IS 'Guests prove their address by a code before checkout.';
COMMENT ON COLUMN shows.per_instrument IS 'Maximum number of seats per card; null: no limit.';
COMMENT ON COLUMN shows.terms_version IS 'Every write of the terms repeats it.';
COMMENT ON COLUMN shows.terms_at IS 'Time of the last change of the terms; replicas poll for it.';
COMMENT ON COLUMN shows.called_off IS
    'The show will not take place. Only under a lock FOR UPDATE on the show are all bookings that began before visible.';
COMMENT ON COLUMN shows.is_moving IS
    'Set from the request of a relocation until every seat is renumbered; no payment begins. '
    'Only under a lock FOR UPDATE on the show are all bookings that began before visible.';
COMMENT ON COLUMN shows.times_moved IS 'Number of relocations.';

-- Normalises a text for search: without accents and case, with fractions written out (33⅓ as 33 1/3), and with letters
-- that Unicode does not decompose (ø, đ, ı) replaced by those on common keyboards. Immutable, because it depends on its
-- argument only.
CREATE FUNCTION search_text(value text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS $$
    SELECT replace(replace(replace(replace(
               translate(
                   lower(regexp_replace(
                       normalize(regexp_replace(value, '([¼½¾⅐-⅞])', ' \1', 'g'), NFKD),
                       '[\u0300-\u036f]', '', 'g')),
                   'ıłøđðħŧ⁄’‘', 'iloddht/'),
               'æ', 'ae'), 'œ', 'oe'), 'ß', 'ss'), 'þ', 'th')
$$;

-- Regions. Each has a separate database with its own theatres, films and shows (docs/decisions/0051).

-- Seats of a theatre's shows are held and sold in its region; a second region would sell them again.
CREATE FUNCTION refuse_other_region() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'theatre % is of region %; it stays there', OLD.id, OLD.region USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER theatres_keep_their_region BEFORE UPDATE OF region ON theatres FOR EACH ROW
    WHEN (OLD.region IS NOT NULL AND NEW.region IS DISTINCT FROM OLD.region) EXECUTE FUNCTION refuse_other_region();

CREATE TABLE show_regions (
    show_id uuid PRIMARY KEY,
    region  text NOT NULL
);
COMMENT ON TABLE show_regions IS 'The region of a show, for redirects only: own shows, and shows of other regions by logical replication.';

CREATE FUNCTION note_region_of_show() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO show_regions (show_id, region)
    SELECT NEW.id, theatre.region FROM screens screen JOIN theatres theatre ON theatre.id = screen.theatre_id
    WHERE screen.id = NEW.screen_id AND theatre.region IS NOT NULL
    ON CONFLICT (show_id) DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER shows_note_their_region AFTER INSERT ON shows FOR EACH ROW EXECUTE FUNCTION note_region_of_show();

CREATE FUNCTION note_region_of_shows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO show_regions (show_id, region)
    SELECT show.id, NEW.region FROM shows show JOIN screens screen ON screen.id = show.screen_id
    WHERE screen.theatre_id = NEW.id
    ON CONFLICT (show_id) DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER theatres_note_their_region AFTER UPDATE OF region ON theatres FOR EACH ROW
    WHEN (OLD.region IS NULL AND NEW.region IS NOT NULL) EXECUTE FUNCTION note_region_of_shows();

-- Purges of a CDN (docs/decisions/0050). Triggers record them in the transaction of the change, so that no code path can
-- omit one. House seats and sold seats are left out: the number of seats left expires with its page.

CREATE TABLE cdn (
    there      boolean PRIMARY KEY DEFAULT true CHECK (there),
    told_until timestamptz NOT NULL
);
COMMENT ON TABLE cdn IS 'The one row that says a CDN is configured. Servers renew it every hour; without it no purge is recorded.';
COMMENT ON COLUMN cdn.told_until IS 'End of the record''s validity.';

CREATE TABLE cdn_purges (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tag        text NOT NULL,
    round      smallint NOT NULL DEFAULT 1 CHECK (round IN (1, 2)),
    tries      integer NOT NULL DEFAULT 0,
    run_after  timestamptz NOT NULL DEFAULT now(),
    due_at     timestamptz NOT NULL DEFAULT now(),
    parked_why text,
    wanted_at  timestamptz NOT NULL DEFAULT now(),
    wanted_by  xid8 NOT NULL DEFAULT pg_current_xact_id(),
    -- One row per transaction, however many shows it plans. The transaction id in it keeps transactions from waiting for
    -- each other's rows.
    CONSTRAINT cdn_purges_once UNIQUE (wanted_by, tag, wanted_at)
);
CREATE INDEX cdn_purges_due ON cdn_purges (run_after) WHERE parked_why IS NULL;
COMMENT ON TABLE cdn_purges IS 'A tag to purge from the CDN: after the commit, and again when no older response can be cached any more.';
COMMENT ON COLUMN cdn_purges.tag IS 'As in the Cache-Tag header of pages (http::cache_tags).';
COMMENT ON COLUMN cdn_purges.tries IS 'Attempts of this round.';
COMMENT ON COLUMN cdn_purges.run_after IS 'Time of the next attempt; a lease while a relay has it.';
COMMENT ON COLUMN cdn_purges.due_at IS 'Time at which this round was due first.';
COMMENT ON COLUMN cdn_purges.parked_why IS 'Set when the purge failed finally and waits for a person.';
COMMENT ON COLUMN cdn_purges.wanted_by IS 'The transaction of the change.';

-- Every page that shows more than a few things has the tag `lists`, so every change purges it.
CREATE FUNCTION want_purge(VARIADIC tags text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM cdn WHERE told_until > now()) THEN
        RETURN;
    END IF;
    INSERT INTO cdn_purges (tag)
    SELECT DISTINCT wanted FROM unnest(tags || 'lists'::text) AS wanted WHERE wanted IS NOT NULL
    ON CONFLICT ON CONSTRAINT cdn_purges_once DO NOTHING;
END $$;

CREATE FUNCTION purge_show() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    place record;
BEGIN
    SELECT theatre.id, theatre.city_id INTO place
    FROM screens screen JOIN theatres theatre ON theatre.id = screen.theatre_id WHERE screen.id = NEW.screen_id;
    PERFORM want_purge('film-' || NEW.film_id, 'theatre-' || place.id, 'city-' || place.city_id);
    -- No page of a new show is cached.
    IF TG_OP = 'UPDATE' THEN
        PERFORM want_purge('show-' || NEW.id, 'film-' || OLD.film_id);
    END IF;
    RETURN NULL;
END $$;
-- No page shows a planned show.
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

-- Pages of theatres name their city without having its tag: with it each change of a show would purge them all.
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

-- Pages show the number of screens of a theatre and their names.
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

-- A new film has no shows and so no page.
CREATE FUNCTION purge_film() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM want_purge('film-' || NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER films_purged AFTER UPDATE ON films FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION purge_film();
