-- Lists of shows need the kinds of seats. Reading whole plans for them would take longer than the rest of the list.

ALTER TABLE layouts ADD COLUMN categories jsonb GENERATED ALWAYS AS (plan -> 'categories') STORED;
COMMENT ON COLUMN layouts.categories IS 'The categories of the plan.';
