-- A planned show is invisible, so its move is no event for other systems. While its week is planned, it may move often.

CREATE OR REPLACE TRIGGER show_moves_told AFTER UPDATE OF state ON show_moves FOR EACH ROW
    WHEN (OLD.state = 'closing' AND NEW.state = 'carried' AND NEW.sales <> 'planned') EXECUTE FUNCTION tell_moved();

COMMENT ON COLUMN shows.times_moved IS 'Number of relocations; those of a draft without bookings count as one.';
COMMENT ON COLUMN shows.terms_at IS
    'Time of the last change of the terms; replicas poll for it. A move of a draft keeps it: no replica caches drafts.';
