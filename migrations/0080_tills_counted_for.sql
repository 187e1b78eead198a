-- Who counted a till in place of the person whose it was, and why; nothing where they counted it themselves.
ALTER TABLE tills ADD COLUMN counted_by uuid REFERENCES accounts;
ALTER TABLE tills ADD COLUMN counted_why text;
ALTER TABLE tills ADD CONSTRAINT tills_counted_for CHECK (
    (counted_by IS NULL) = (counted_why IS NULL) AND (counted_by IS NULL OR closed_at IS NOT NULL)
);
-- A person's last till, which tells them whether somebody counted it for them.
CREATE INDEX tills_of_a_person ON tills (theatre_id, account_id, opened_at);

-- As before, and who counted it stays as well.
CREATE OR REPLACE FUNCTION refuse_till_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.theatre_id <> OLD.theatre_id OR NEW.account_id <> OLD.account_id OR NEW.currency <> OLD.currency
       OR NEW.opened_at <> OLD.opened_at
       OR (OLD.closed_at IS NOT NULL
           AND (NEW.closed_at, NEW.expected_minor, NEW.counted_minor, NEW.counted_by, NEW.counted_why)
               IS DISTINCT FROM (OLD.closed_at, OLD.expected_minor, OLD.counted_minor, OLD.counted_by, OLD.counted_why))
       OR (OLD.day_close IS NOT NULL AND NEW.day_close IS DISTINCT FROM OLD.day_close) THEN
        RAISE EXCEPTION 'till % is not to be changed', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
