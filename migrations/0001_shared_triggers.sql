-- Trigger functions that tables of several crates use.

-- Keeps a table append-only.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% rows are immutable', TG_TABLE_NAME USING ERRCODE = 'check_violation';
END $$;

-- Makes every update increment the row's version by one.
CREATE FUNCTION refuse_skipped_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.version <> OLD.version + 1 THEN
        RAISE EXCEPTION '% must step from version % to %', TG_TABLE_NAME, OLD.version, OLD.version + 1
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
