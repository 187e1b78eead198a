-- A room may have standing areas only.

ALTER TABLE layouts DROP CONSTRAINT layouts_seat_count_check;
ALTER TABLE layouts ADD CONSTRAINT layouts_seat_count_check CHECK (seat_count BETWEEN 0 AND 100000);
