-- Claims grow with every seat that was ever sold. They are kept in four parts by show, so that what cares for a table as a
-- whole (vacuum, an index built anew, a copy) has a quarter of them at a time. Every statement names the show, and reads
-- and writes the part of that show only. Four: each more costs every sale (docs/decisions/0051); a part can be divided.
--
-- Nobody claims a seat while the rows are carried over, four to ten seconds for a million. If a long transaction is in the
-- way, this fails after five seconds and changes nothing, rather than holding up every sale behind it.
SET LOCAL lock_timeout = '5s';
-- All that is changed below, before anything is carried over, in the order in which others take them.
LOCK TABLE theatres IN ACCESS EXCLUSIVE MODE;
LOCK TABLE shows IN SHARE ROW EXCLUSIVE MODE;
LOCK TABLE seat_claims IN ACCESS EXCLUSIVE MODE;

ALTER TABLE seat_claims RENAME TO seat_claims_whole;
ALTER TABLE seat_claims_whole RENAME CONSTRAINT seat_claims_pkey TO seat_claims_whole_pkey;
ALTER TABLE seat_claims_whole RENAME CONSTRAINT seat_claims_state_check TO seat_claims_whole_state_check;

CREATE TABLE seat_claims (
    show_id    uuid NOT NULL,
    seat_no    integer NOT NULL,
    booking_id uuid NOT NULL,
    fence      bigint NOT NULL,
    state      text NOT NULL CHECK (state IN ('claimed', 'sold', 'released')),
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (show_id, seat_no)
) PARTITION BY HASH (show_id);
-- Room on a page, as in 0070.
CREATE TABLE seat_claims_0 PARTITION OF seat_claims FOR VALUES WITH (MODULUS 4, REMAINDER 0) WITH (fillfactor = 45);
CREATE TABLE seat_claims_1 PARTITION OF seat_claims FOR VALUES WITH (MODULUS 4, REMAINDER 1) WITH (fillfactor = 45);
CREATE TABLE seat_claims_2 PARTITION OF seat_claims FOR VALUES WITH (MODULUS 4, REMAINDER 2) WITH (fillfactor = 45);
CREATE TABLE seat_claims_3 PARTITION OF seat_claims FOR VALUES WITH (MODULUS 4, REMAINDER 3) WITH (fillfactor = 45);

INSERT INTO seat_claims (show_id, seat_no, booking_id, fence, state, expires_at)
SELECT show_id, seat_no, booking_id, fence, state, expires_at FROM seat_claims_whole ORDER BY show_id, seat_no;

DO $$
BEGIN
    IF (SELECT count(*) FROM seat_claims) <> (SELECT count(*) FROM seat_claims_whole) THEN
        RAISE EXCEPTION 'claims were lost on the way';
    END IF;
END $$;
-- Whoever may use the table may use the new one.
DO $$
DECLARE
    may record;
BEGIN
    FOR may IN SELECT DISTINCT privilege_type AS what,
                      CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END AS who
               FROM pg_class, aclexplode(relacl)
               WHERE oid = 'seat_claims_whole'::regclass AND grantee <> relowner
    LOOP
        EXECUTE format('GRANT %s ON seat_claims TO %s', may.what, may.who);
    END LOOP;
END $$;
DROP TABLE seat_claims_whole;
-- Nothing analyses a table in parts by itself, but its parts. Not while it is empty: what is known to be empty is read
-- from end to end, by plans that are kept.
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM seat_claims) THEN
        ANALYZE seat_claims;
    END IF;
END $$;

-- The planner adds up all parts where it cannot know which one is meant, and takes a list of three hundred shows for work
-- that is worth compiling: 0.15 seconds of compiling for 0.03 of reading. No statement of ours is long enough to gain by it.
DO $$
BEGIN
    EXECUTE format('ALTER DATABASE %I SET jit = off', current_database());
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'whoever owns this database should: ALTER DATABASE % SET jit = off', quote_ident(current_database());
END $$;

-- Where several regions sell, each has a database of its own with its own theatres, films and shows
-- (docs/decisions/0051). A theatre that names no region is this database's, as where there are none.
ALTER TABLE theatres ADD COLUMN region text CHECK (region ~ '^[a-z0-9][a-z0-9-]{0,30}$');

-- Seats of its shows are held and sold where it is; in a second place they would be sold once more.
CREATE FUNCTION refuse_other_region() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'theatre % is of region %; it stays there', OLD.id, OLD.region USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER theatres_keep_their_region BEFORE UPDATE OF region ON theatres FOR EACH ROW
    WHEN (OLD.region IS NOT NULL AND NEW.region IS DISTINCT FROM OLD.region) EXECUTE FUNCTION refuse_other_region();

-- Which region a show is of: rows of this database's shows, and of other regions', which are copied here so that whoever
-- follows a link to the wrong place is sent to the right one. Nothing is sold by it.
CREATE TABLE show_regions (
    show_id uuid PRIMARY KEY,
    region  text NOT NULL
);
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
