-- Every sale writes two effects down and takes them off again. Whoever does so knows the booking, and the relay gives each
-- effect back with its booking: so what is in order within a booking is the key, and the one by number alone goes. What a
-- person looks for by its number is parked, and has an index (outbox_parked). The version before finds what its relay has
-- done by reading the table, which is nearly empty, until its replicas are exchanged.
SET LOCAL lock_timeout = '5s';
ALTER TABLE outbox DROP CONSTRAINT outbox_pkey;
ALTER TABLE outbox ADD PRIMARY KEY (booking_id, id);
DROP INDEX outbox_by_booking;
