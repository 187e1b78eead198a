-- Seats of a screen that the house keeps in every show planned there, for each room the screen has had. Named by their
-- label, so that another room of the screen finds them again; those it has not are kept without a number and named.
CREATE TABLE standing_house_seats (
    screen_id text NOT NULL REFERENCES screens,
    layout_id uuid NOT NULL REFERENCES layouts,
    label     text NOT NULL,                         -- unique in the room
    seat_no   integer CHECK (seat_no >= 0),          -- none: the room has no seat of this name
    reason    text NOT NULL,
    kept_by   uuid NOT NULL REFERENCES accounts,
    kept_at   timestamptz NOT NULL,
    PRIMARY KEY (screen_id, layout_id, label)
);
CREATE UNIQUE INDEX standing_house_seats_once ON standing_house_seats (screen_id, layout_id, seat_no);

-- Whether the house keeps a seat of a show because the screen has it so: a show that moves to another screen leaves
-- these behind, and has those of the other one.
ALTER TABLE house_seats ADD COLUMN is_standing boolean NOT NULL DEFAULT false;
