-- Everybody buys of the same few shows, and every new booking locked the row of its show to see that it is there
-- (docs/decisions/0013-a-sale-reads-and-locks-less.md). Shows stay: that is a rule of its own now. And before anything
-- is claimed or charged, the row is read anyway, to see that the show was not called off.
CREATE FUNCTION refuse_lost_show() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'show % stays: bookings name it', OLD.id USING ERRCODE = 'foreign_key_violation';
END $$;
CREATE TRIGGER shows_stay BEFORE DELETE OR UPDATE OF id ON shows FOR EACH ROW EXECUTE FUNCTION refuse_lost_show();

-- Nobody begins to pay for a show that was called off, or is none, whatever a server still believes.
CREATE OR REPLACE FUNCTION refuse_called_off() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM shows WHERE id = NEW.show_id AND NOT called_off) THEN
        RAISE EXCEPTION 'show % was called off', NEW.show_id USING ERRCODE = 'RL001';
    END IF;
    RETURN NEW;
END $$;

ALTER TABLE bookings DROP CONSTRAINT bookings_show_id_fkey;
