-- What is shown and where. Text ids are slugs that people see in addresses; shows have UUIDs.

CREATE TABLE cities (
    id        text PRIMARY KEY,
    name      text NOT NULL,
    country   text NOT NULL,            -- ISO 3166-1 alpha-2
    time_zone text NOT NULL             -- IANA name
);

CREATE TABLE theatres (
    id       text PRIMARY KEY,
    city_id  text NOT NULL REFERENCES cities,
    name     text NOT NULL,
    address  text NOT NULL,
    currency char(3) NOT NULL           -- ISO 4217
);
CREATE INDEX theatres_by_city ON theatres (city_id);

-- A room's seats are numbered along its layout, so a layout never changes: an edit makes a new one.
CREATE TABLE layouts (
    id         uuid PRIMARY KEY,
    name       text NOT NULL,
    plan       jsonb NOT NULL,          -- domain::layout::Layout
    seat_count integer NOT NULL CHECK (seat_count BETWEEN 1 AND 100000)
);

CREATE TABLE screens (
    id         text PRIMARY KEY,
    theatre_id text NOT NULL REFERENCES theatres,
    name       text NOT NULL,
    layout_id  uuid NOT NULL REFERENCES layouts
);
CREATE INDEX screens_by_theatre ON screens (theatre_id);

CREATE TABLE films (
    id              text PRIMARY KEY,
    title           text NOT NULL,
    tagline         text NOT NULL,
    synopsis        text NOT NULL,
    running_minutes integer NOT NULL CHECK (running_minutes > 0),
    rating          text NOT NULL,
    genre           text NOT NULL,
    hue             smallint NOT NULL CHECK (hue BETWEEN 0 AND 359)   -- of the poster we draw
);

CREATE TABLE shows (
    id         uuid PRIMARY KEY,
    screen_id  text NOT NULL REFERENCES screens,
    film_id    text NOT NULL REFERENCES films,
    layout_id  uuid NOT NULL REFERENCES layouts,     -- as sold, whatever the screen gets later
    starts_at  timestamptz NOT NULL,
    local_date date NOT NULL,                        -- in the theatre's zone, for the day strip
    language   text NOT NULL,
    format     text NOT NULL CHECK (format IN ('2D', '3D', 'IMAX', 'LIVE')),
    currency   char(3) NOT NULL,
    prices     jsonb NOT NULL,                       -- category name -> minor units, as computed by domain::pricing
    blocked    integer[] NOT NULL DEFAULT '{}',      -- house seats
    hold_ms    bigint NOT NULL DEFAULT 300000 CHECK (hold_ms BETWEEN 1000 AND 3600000),
    UNIQUE (screen_id, starts_at)
);
CREATE INDEX shows_by_day ON shows (local_date, screen_id);
CREATE INDEX shows_by_film ON shows (film_id, local_date);
