-- A booking's foreign key locks its show FOR KEY SHARE, which does not conflict with the FOR NO KEY UPDATE of an update of the
-- show: by itself it does not put the two in order. A transaction that marks a show as called off or moving tries to lock it FOR
-- UPDATE first, and locks it before it relies on having seen every booking (bookings/cancel/shows.rs,
-- bookings/relocation/carry.rs).
COMMENT ON TRIGGER bookings_begun_in_shows_that_are_on ON bookings IS
    'In order with a mark on the show only by a lock FOR UPDATE on it, before the mark or before bookings are looked for.';
COMMENT ON COLUMN shows.called_off IS 'Bookings that began before are all seen only under a lock FOR UPDATE on the show.';
COMMENT ON COLUMN shows.is_moving IS 'Bookings that began before are all seen only under a lock FOR UPDATE on the show.';
