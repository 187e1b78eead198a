-- Theatres are written down and changed by people who manage them. 1: as they were first written down.
ALTER TABLE theatres ADD COLUMN version integer NOT NULL DEFAULT 1;   -- every write repeats it
