-- Rehearsals of an on-sale (docs/decisions/0080). The show of a rehearsal has no row in `shows`, so that no list,
-- report or booking finds it.

CREATE TABLE rehearsals (
    show_id     uuid PRIMARY KEY REFERENCES shows,
    id          uuid NOT NULL UNIQUE,
    theatre_id  text NOT NULL REFERENCES theatres,
    started_at  timestamptz NOT NULL,
    seen_at     timestamptz,
    stop_wanted boolean NOT NULL DEFAULT false,
    ended_at    timestamptz,
    end_reason  text CHECK (end_reason IN ('sold_out', 'all_served', 'stopped', 'out_of_time', 'interrupted')),
    figures     jsonb NOT NULL,
    CHECK ((ended_at IS NULL) = (end_reason IS NULL))
);
CREATE UNIQUE INDEX rehearsals_one_per_theatre ON rehearsals (theatre_id) WHERE ended_at IS NULL;
COMMENT ON TABLE rehearsals IS 'The last rehearsal of a show''s on-sale, until a member of staff deletes it.';
COMMENT ON COLUMN rehearsals.id IS 'Random; names the rehearsed show in Redis, in waiting_rooms, and for its simulated visitors.';
COMMENT ON COLUMN rehearsals.seen_at IS 'The last report of the server that runs it: a lease. Null until a server has begun.';
COMMENT ON COLUMN rehearsals.figures IS 'domain::rehearsal::RehearsalFigures as JSON.';

-- A room of a rehearsal names the rehearsal. Shows are never deleted, so the constraint protected nothing.
ALTER TABLE waiting_rooms DROP CONSTRAINT waiting_rooms_show_id_fkey;
COMMENT ON COLUMN waiting_rooms.show_id IS 'A show, or a running rehearsal.';
