-- Lists of shows need the kinds of seats. Reading whole plans for them would take longer than the rest of the list.

-- The table is rewritten, and locked for that time. Behind a long read the lists would wait: give up instead.
SET LOCAL lock_timeout = '5s';
ALTER TABLE layouts ADD COLUMN categories jsonb GENERATED ALWAYS AS (plan -> 'categories') STORED;
COMMENT ON COLUMN layouts.categories IS 'The categories of the plan.';
